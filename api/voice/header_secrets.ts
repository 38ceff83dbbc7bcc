/**
 * Values of the headers that an agent's tools and MCP servers are called with. They are keys of other
 * people's services: kept sealed, shown masked, opened for a call alone. A masked value that comes back means
 * "as stored", so that a configuration can be read, edited and written again.
 */
import { ApiError } from "#contracts/errors.ts";
import type { HttpTool, VoiceAgentConfig } from "#contracts/voice_agent.ts";
import type { Encryption } from "#store/encryption.ts";
import { type AnySql, json, type Sql } from "#store/sql.ts";

const mask = "********";
/** A value shorter than this shows none of its characters. */
const shownFromLength = 16;

/** Values by their place, for example `tools/find_room/x-api-key`. */
type Values = Readonly<Record<string, string>>;

interface Header {
  key: string;
  value: string;
}

export interface SealedConfig {
  /** With masks in place of the values. */
  config: VoiceAgentConfig;
  /** Null where there is no header. */
  secrets: Buffer | null;
}

/**
 * What is stored of a configuration. `id` is the row's: what is sealed opens for it alone.
 * @throws ApiError bad_request for a masked value that stands for none of `stored`
 */
export function sealHeaders(
  encryption: Encryption,
  id: string,
  config: VoiceAgentConfig,
  stored: Uint8Array | null = null,
): SealedConfig {
  const old = valuesIn(encryption, id, stored);
  const values = new Map<string, string>();
  const masked = mapHeaders(config, (header, place, path) => {
    const value = header.value.startsWith(mask) ? storedValue(old, place, `config.${path}`) : header.value;
    values.set(place, value);
    return maskOf(value);
  });
  if (values.size === 0) return { config, secrets: null };
  return { config: masked, secrets: encryption.seal(JSON.stringify(Object.fromEntries(values)), id) };
}

/** The configuration as a call needs it: with the values of its headers. */
export function openHeaders(
  encryption: Encryption,
  id: string,
  config: VoiceAgentConfig,
  stored: Uint8Array | null,
): VoiceAgentConfig {
  const values = valuesIn(encryption, id, stored);
  return mapHeaders(config, (header, place) => values[place] ?? header.value);
}

/** What an agent's row has sealed of its headers. */
export interface StoredSecrets {
  id: string;
  sealed: Buffer | null;
}

/**
 * A tool as somebody tries it, with the values of its headers: masked ones are those of `stored`.
 * @throws ApiError bad_request for a masked value that stands for none of them
 */
export function openTriedTool(encryption: Encryption, tool: HttpTool, stored: StoredSecrets | undefined): HttpTool {
  const values = stored ? valuesIn(encryption, stored.id, stored.sealed) : {};
  const { tools } = mapHeaders({ tools: [tool] }, ({ value }, place, path) =>
    value.startsWith(mask) ? storedValue(values, place, path.replace("tools.0", "tool")) : value,
  );
  return { ...tool, ...tools?.[0] };
}

/** @throws ApiError bad_request where nothing is stored at `place` */
function storedValue(values: Values, place: string, path: string): string {
  const value = values[place];
  if (value !== undefined) return value;
  throw new ApiError("bad_request", {
    details: { [path]: "Expected the header's value: a masked one stands for what is stored here" },
  });
}

function valuesIn(encryption: Encryption, id: string, stored: Uint8Array | null): Values {
  return stored === null ? {} : (JSON.parse(encryption.open(stored, id)) as Values);
}

function maskOf(value: string): string {
  return value.length < shownFromLength ? mask : `${mask}${value.slice(-4)}`;
}

/** `config` with each header's value replaced by what `replaced` says. */
function mapHeaders(
  config: VoiceAgentConfig,
  replaced: (header: Header, place: string, path: string) => string,
): VoiceAgentConfig {
  const mapped = <T extends { name: string; headers?: Header[] }>(list: T[], field: string): T[] =>
    list.map((entry, at) => {
      if (!entry.headers) return entry;
      const headers = entry.headers.map((header, n) => {
        const place = `${field}/${entry.name}/${header.key.toLowerCase()}`;
        return { ...header, value: replaced(header, place, `${field}.${at}.headers.${n}.value`) };
      });
      return { ...entry, headers };
    });
  // Fields keep the order that they were written in.
  return Object.fromEntries(
    Object.entries(config).map(([field, value]) =>
      field === "tools" || field === "mcp_servers"
        ? [field, mapped(value as { name: string; headers?: Header[] }[], field)]
        : [field, value],
    ),
  ) as VoiceAgentConfig;
}

/** Seals what was stored before values were: once, and harmless when several processes start at once. */
export async function sealStoredHeaders(sql: Sql, encryption: Encryption): Promise<void> {
  for (const [table, column] of [
    ["voice_agent", "config"],
    ["call", "inline_config"],
  ] as const) {
    await sql.begin(async (transaction) => {
      const rows = await transaction<{ id: string; config: VoiceAgentConfig }[]>`
        select id, ${sql(column)} as config from ${sql(table)}
        where header_secrets is null and ${sql(column)}::text like '%"headers"%' for update skip locked`;
      for (const { id, config } of rows)
        await storeSealed(transaction, table, column, id, sealHeaders(encryption, id, config));
    });
  }
}

async function storeSealed(
  sql: AnySql,
  table: string,
  column: string,
  id: string,
  sealed: SealedConfig,
): Promise<void> {
  await sql`
    update ${sql(table)} set ${sql(column)} = ${json(sql, sealed.config)}, header_secrets = ${sealed.secrets}
    where id = ${id}`;
}
