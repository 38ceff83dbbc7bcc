/** `npm run schema`: migrates a database of its own and prints its schema to `api/store/schema.sql`. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createTestDatabase } from "#test/kit/database.ts";
import { root } from "./rooms.ts";
import { schemaSql } from "./schema_sql.ts";

const database = await createTestDatabase();
try {
  await writeFile(join(root, "api", "store", "schema.sql"), await schemaSql(database.sql));
} finally {
  await database.drop();
}
