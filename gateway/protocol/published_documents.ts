/** What this folder publishes: each file's name and the content that it must have. */
import { messageSchemaOf, voiceAsyncapi } from "./asyncapi.ts";
import { withTables } from "./tables.ts";

const asText = (document: unknown) => `${JSON.stringify(document, null, 2)}\n`;

/** Names (in this folder) and contents, made from the contracts; `read` gives README.md's present text. */
export async function publishedDocuments(read: (path: URL) => Promise<string>): Promise<ReadonlyMap<string, string>> {
  const readme = await read(new URL("README.md", import.meta.url));
  return new Map([
    ["voice.v1.asyncapi.json", asText(voiceAsyncapi())],
    ["voice.v1.server.schema.json", asText(messageSchemaOf("server"))],
    ["voice.v1.client.schema.json", asText(messageSchemaOf("client"))],
    ["README.md", withTables(readme)],
  ]);
}
