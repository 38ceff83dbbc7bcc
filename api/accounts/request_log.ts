/**
 * The request log: an organization's billable requests, with a redacted copy of what was sent. An
 * answer waits until its entry is written; entries that come together are written together.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import type { Logger } from "#http/logger.ts";
import { type Guard, type RequestRecord, type Route, route } from "#http/route.ts";
import { taxStatusOf } from "#http/tax_face.ts";
import { Timestamp } from "#http/timestamp.ts";
import type { AccessTokens } from "#identity/access_tokens.ts";
import type { BillableCaller } from "#identity/api_keys.ts";
import { requireAdministrator } from "#identity/caller.ts";
import { purgeBefore } from "#store/purge.ts";
import { json, type Sql } from "#store/sql.ts";
import { redacted, redactedText } from "./redaction.ts";

/** A payload that is longer is kept as its byte count. */
const payloadCharsMax = 64 * 1024;
/** Entries written by one statement. */
const batchMax = 200;

const Entry = named(
  "LoggedRequest",
  Type.Object({
    id: Type.Integer(),
    method: Type.String(),
    endpoint: Type.String({ description: "the path with its parameters by name" }),
    path: Type.String({ description: "the path as it was asked" }),
    status: Type.Integer(),
    duration_ms: Type.Integer(),
    user_id: Type.Unsafe<string | null>({ type: ["string", "null"] }),
    api_key_id: Type.Unsafe<number | null>({ type: ["integer", "null"] }),
    payload: Type.Unknown({ description: "redacted; {bytes} for a body that is no JSON" }),
    created_at: Timestamp,
  }),
  {
    id: "its number; later requests have higher ones",
    method: "of HTTP",
    status: "of the answer",
    duration_ms: "from the credential to the answer",
    user_id: "who asked, by a session; null for an API key",
    api_key_id: "the API key that asked; null for a session",
  },
);
type Entry = Static<typeof Entry>;

const RequestLogReply = named(
  "RequestLogPage",
  Type.Object({
    items: Type.Array(Entry),
    next_cursor: Type.Unsafe<number | null>({ type: ["integer", "null"], description: "null on the last page" }),
  }),
  {
    items: "the latest first",
    next_cursor: "`cursor` of the next page",
  },
);

const exampleEntry = {
  id: 1017,
  method: "POST",
  endpoint: "/v1/tax/calculate",
  path: "/v1/tax/calculate",
  status: 422,
  duration_ms: 2,
  user_id: null,
  api_key_id: 3,
  payload: { jurisdiction_code: "IT-RM-ROM", stay_date: "2026-05-10", nights: 0 },
  created_at: "2026-11-21T09:00:00.000Z",
};

export function requestLogRoutes({
  sql,
  accessTokens,
}: {
  sql: Sql;
  accessTokens: Pick<AccessTokens, "member">;
}): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/orgs/me/request-log",
      summary: "List the organization's billable requests, newest first; for its administrators",
      guard: accessTokens.member,
      query: {
        path: Type.Optional(Type.String({ maxLength: 500, description: "an endpoint, or a path as it was asked" })),
        status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599, about: "of the answer" })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "default 50" })),
        cursor: Type.Optional(
          Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: "next_cursor of the page before" }),
        ),
      },
      reply: { status: 200, body: RequestLogReply },
      errors: ["forbidden"],
      examples: {
        refused_calculations: { query: { path: "/v1/tax/calculate", status: 422, limit: 20 } },
        one_entry: { answer: { items: [exampleEntry], next_cursor: null } },
      },
      handle: async ({ principal, query }) => {
        requireAdministrator(principal);
        const limit = query.limit ?? 50;
        const ofPath = query.path === undefined ? sql`true` : sql`${query.path} in (endpoint, path)`;
        const ofStatus = query.status === undefined ? sql`true` : sql`status = ${query.status}`;
        const before = query.cursor === undefined ? sql`true` : sql`id < ${query.cursor}`;
        const rows = await sql<(Omit<Entry, "id"> & { id: string })[]>`
          select id, method, endpoint, path, status, duration_ms, user_id, api_key_id, payload, created_at
          from request_log
          where organization_id = ${principal.organizationId} and ${ofPath} and ${ofStatus} and ${before}
          order by id desc limit ${limit + 1}`;
        const items = rows.slice(0, limit).map((row) => ({ ...row, id: Number(row.id) }));
        return { items, next_cursor: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
      },
    }),
  ];
}

interface NewEntry {
  organization_id: string;
  method: string;
  endpoint: string;
  path: string;
  status: number;
  duration_ms: number;
  user_id: string | null;
  api_key_id: number | null;
  payload: unknown;
  created_at: Date;
}

/** What every billable route takes in: spread it into the route. */
export interface Billable {
  guard: Guard<BillableCaller>;
  record(record: RequestRecord<BillableCaller>): Promise<void>;
}

export function billableWith(deps: { sql: Sql; logger: Logger; now(): Date; guard: Guard<BillableCaller> }): Billable {
  const append = createWriter(deps);
  return { guard: deps.guard, record: (record) => append(entryFor(record, deps.now())) };
}

function entryFor(record: RequestRecord<BillableCaller>, now: Date): NewEntry {
  const { principal, request, endpoint, outcome, body, durationMs } = record;
  return {
    organization_id: principal.organizationId,
    method: request.method,
    endpoint,
    path: redactedText(new URL(request.url).pathname.slice(0, 500)),
    status: statusOf(outcome),
    duration_ms: Math.round(durationMs),
    user_id: principal.userId,
    api_key_id: principal.apiKeyId,
    payload: payloadFor(body),
    created_at: now,
  };
}

/** Deletes entries older than so many days, some at a time: the log goes on being written. */
export async function purgeRequestLog({ sql, now }: { sql: Sql; now(): Date }, days: number): Promise<void> {
  const before = new Date(now().getTime() - days * 24 * 60 * 60 * 1000);
  await purgeBefore(sql, { table: "request_log", column: "created_at" }, before);
}

function statusOf(outcome: RequestRecord<BillableCaller>["outcome"]): number {
  if ("response" in outcome) return outcome.response.status;
  return outcome.error instanceof ApiError ? taxStatusOf(outcome.error) : 500;
}

/** A body that is no JSON leaves its length alone. */
export function payloadFor(body: Uint8Array | undefined): unknown {
  if (body === undefined || body.length === 0) return null;
  const bytes = { bytes: body.length };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    const payload = redacted(JSON.parse(text));
    const kept = JSON.stringify(payload);
    // Postgres takes neither U+0000 nor halves of surrogate pairs, which JSON can name.
    return kept.length > payloadCharsMax || /\\u(0000|d[89a-f])/i.test(kept) ? bytes : payload;
  } catch {
    return bytes;
  }
}

/** Writes entries in the order of their coming, one statement at a time with all that wait meanwhile. */
function createWriter({ sql, logger }: { sql: Sql; logger: Logger }): (entry: NewEntry) => Promise<void> {
  let waiting: { entry: NewEntry; done(): void }[] = [];
  let writing = false;
  const write = async () => {
    writing = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchMax);
      waiting = waiting.slice(batchMax);
      try {
        await insertEntries(
          sql,
          batch.map(({ entry }) => entry),
        );
      } catch (err) {
        // The work is done and the caller is owed the answer.
        logger.error({ err, entries: batch.length }, "could not write the request log");
      }
      for (const { done } of batch) done();
    }
    writing = false;
  };
  return (entry) =>
    new Promise((done) => {
      waiting.push({ entry, done });
      if (!writing) void write();
    });
}

async function insertEntries(sql: Sql, entries: readonly NewEntry[]): Promise<void> {
  await sql`
    insert into request_log
      (organization_id, method, endpoint, path, status, duration_ms, user_id, api_key_id, payload, created_at)
    select organization_id, method, endpoint, path, status, duration_ms, user_id, api_key_id,
           coalesce(payload, 'null'), created_at
    from json_to_recordset(${json(sql, entries)}) as entry(
      organization_id uuid, method text, endpoint text, path text, status integer, duration_ms integer,
      user_id uuid, api_key_id integer, payload json, created_at timestamptz)`;
}
