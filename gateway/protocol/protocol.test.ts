import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { describe, it } from "node:test";
import { Ajv, type AnySchemaObject } from "ajv";
import { closeCodes, refusals } from "#contracts/voice_protocol.ts";
import { voiceAsyncapi } from "./asyncapi.ts";
import { publishedDocuments } from "./published_documents.ts";

const read = (path: URL) => readFile(path, "utf8");

describe("the published protocol", () => {
  it("is what the contracts say: run `npm run protocol` when this differs", async () => {
    for (const [name, expected] of await publishedDocuments(read)) {
      const published = await read(new URL(name, import.meta.url));
      assert.ok(published === expected, `${name} is out of date`);
    }
  });

  it("is valid AsyncAPI 3.0", () => {
    const require = createRequire(import.meta.url);
    const schema = require("@asyncapi/specs/schemas/3.0.0-without-$id.json") as AnySchemaObject;
    const ajv = new Ajv({ strict: false, logger: false, validateFormats: false });
    const validate = ajv.compile(schema);
    assert.ok(validate(voiceAsyncapi()), JSON.stringify(validate.errors?.slice(0, 3)));
    assert.ok(!validate({ ...voiceAsyncapi(), channels: [] }), "a wrong document must not pass");
  });

  it("has no reference that leads nowhere", () => {
    const document = voiceAsyncapi();
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#([^"]+)"/g)].map(
      ([, pointer]) => pointer ?? "",
    );
    assert.ok(references.length > 100);
    for (const pointer of references) assert.notEqual(resolve(document, pointer), undefined, pointer);
  });

  it("lists in its tables exactly the close codes and refusals of the contract", async () => {
    const readme = await read(new URL("README.md", import.meta.url));
    const section = (name: string) =>
      readme.slice(readme.indexOf(`<!-- begin ${name} -->`), readme.indexOf(`<!-- end ${name} -->`));
    const codes = [...section("close codes").matchAll(/^\| (\d{4}) \| `(\w+)`/gm)].map(([, code, reason]) => [
      reason,
      Number(code),
    ]);
    assert.deepEqual(
      codes,
      Object.entries(closeCodes).map(([reason, { code }]) => [reason, code]),
    );
    const answers = [...section("refusals").matchAll(/^\| (\d{3}) \| `\{"code":"(\w+)"\}`/gm)].map(
      ([, status, code]) => [code, Number(status)],
    );
    assert.deepEqual(answers, Object.entries(refusals));
  });
});

function resolve(document: unknown, pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], document);
}
