/** Who writes which table: read out of the statements that stand in the source files. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Room, readRooms, root } from "./rooms.ts";
import { readSources } from "./sources.ts";

export interface TableWrite {
  table: string;
  path: string;
}

/** Statements as they are written in the product; tests may write what they want. */
export function tableWrites(tables: readonly string[], rooms: readonly Room[] = readRooms()): TableWrite[] {
  return productFiles(rooms).flatMap((path) =>
    writesIn(readFileSync(join(root, path), "utf8"), tables).map((table) => ({ table, path })),
  );
}

export function productFiles(rooms: readonly Room[] = readRooms()): string[] {
  return readSources(rooms)
    .map(({ path }) => path)
    .filter((path) => path.endsWith(".ts") && !path.startsWith("test/") && !path.endsWith(".test.ts"));
}

/** Each table that the text writes, once. Only known tables: prose has `update` and `insert into` too. */
export function writesIn(text: string, tables: readonly string[]): string[] {
  const statements =
    /\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate(?:\s+table)?)\s+(?:only\s+)?"?(\w+)"?/gi;
  // A table that is handed to whoever makes the statement: `purgeBefore(sql, { table: "livekit_webhook", …`.
  const handedOn = /\btable: "(\w+)"/g;
  const found = [...text.matchAll(statements), ...text.matchAll(handedOn)].map((match) => match[1] ?? "");
  return [...new Set(found)].filter((table) => tables.includes(table));
}
