/**
 * A person's data: a request to hand out, or to erase, what the organization keeps of one person, done as a job
 * over all rooms. Who the person is stands sealed in the request until it is done, and is forgotten then.
 */
import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { type Caller, requireAdministrator } from "#identity/caller.ts";
import { listRoute } from "#identity/list_route.ts";
import type { Encryption } from "#store/encryption.ts";
import { type Subject, subjectKinds } from "#store/personal_data.ts";
import { type AnySql, oneRow, type Sql } from "#store/sql.ts";

export const subjectRequestTask = "data_subject_request";

const actions = ["export", "erase"] as const;
const statuses = ["pending", "running", "succeeded", "failed"] as const;
export type SubjectAction = (typeof actions)[number];

const text = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 500, pattern: "\\S", description }));
const SubjectBody = named(
  "DataSubject",
  Type.Object(
    {
      user_id: text("the id that runs, calls and traces of theirs have"),
      phone: text("a number with at least 6 digits"),
      email: text("an address"),
    },
    { additionalProperties: false },
  ),
);

/** What became of one kind of record. */
const SubjectResult = Type.Object({
  kind: Type.String({ description: "`runs`, `calls`, `traces` …" }),
  found: Type.Integer({ minimum: 0, description: "records that were found" }),
  erased: Type.Optional(Type.Integer({ minimum: 0, description: "of these, those that are gone" })),
  kept_because: Type.Optional(Type.String({ description: "why they are not erased" })),
});
export type SubjectResult = Static<typeof SubjectResult>;

const SubjectRequest = named(
  "DataSubjectRequest",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    action: oneOf(actions),
    identified_by: oneOf(subjectKinds),
    status: oneOf(statuses),
    result: Type.Array(SubjectResult),
    created_at: Timestamp,
    created_by: nullableText,
    ended_at: OptionalTimestamp,
  }),
  {
    action: "what is asked",
    status: "`running` until what is under way is over",
    identified_by: "what the person was named by; who it is, is not kept",
    result: "what was found, by kind of record",
  },
);
type SubjectRequest = Static<typeof SubjectRequest>;

export interface SubjectRequestDeps extends ApiDeps {
  encryption: Encryption;
}

const columns = (sql: AnySql) => sql`id, action, identified_by, status, result, created_at, created_by, ended_at`;

export function subjectRequestRoutes(deps: SubjectRequestDeps): Route[] {
  const { sql, personalAccessToken: guard } = deps;
  const path = "/v1/data-subjects/requests";
  const paramsFrom = { request_id: { route: "POST /v1/data-subjects/export", field: "data.id" } };
  const creation = (action: SubjectAction, summary: string, examples: object) =>
    route({
      method: "POST",
      path: `/v1/data-subjects/${action}`,
      summary,
      guard,
      body: SubjectBody,
      reply: { status: 202, body: dataOf(SubjectRequest) },
      errors: ["forbidden"],
      examples: examples as { a_person: { body: Static<typeof SubjectBody> } },
      handle: async ({ principal, body }) => {
        requireAdministrator(principal);
        return { data: await createRequest(deps, principal, action, subjectOf(body)) };
      },
    });
  return [
    creation("export", "Hand out what is kept of a person; for administrators", {
      a_person: { body: { email: "guest@example.com" } },
    }),
    creation("erase", "Erase what is kept of a person; for administrators", {
      a_person: { body: { user_id: "guest 9" } },
    }),
    listRoute(sql, {
      path,
      summary: "List requests about persons, the newest first; for administrators",
      guard,
      row: SubjectRequest,
      filters: {
        action: { ...oneOf(actions), about: "those that ask this" },
        status: { ...oneOf(statuses), about: "those that are so far" },
      },
      times: ["created_at"],
      sort: ["created_at", "ended_at"],
      errors: ["forbidden"],
      examples: { erasures: { query: { action: "erase" } } },
      rows: ({ principal }) => {
        requireAdministrator(principal);
        return {
          columns: columns(sql),
          from: sql`data_subject_request`,
          where: sql`organization_id = ${principal.organizationId}`,
        };
      },
    }),
    route({
      method: "GET",
      path: `${path}/{request_id}`,
      summary: "Get a request about a person; for administrators",
      guard,
      reply: { status: 200, body: dataOf(SubjectRequest) },
      errors: ["forbidden"],
      paramsFrom,
      examples: { a_request: {} },
      handle: async ({ principal, params }) => ({ data: await findRequest(sql, principal, params.request_id) }),
    }),
    route({
      method: "GET",
      path: `${path}/{request_id}/records`,
      summary: "Download what an export found, as a JSON array; for administrators, for a week",
      guard,
      reply: { status: 200, body: named("DataSubjectRecords", Type.Array(SubjectRecord)) },
      errors: ["forbidden", "conflict"],
      paramsFrom,
      examples: {
        not_yet: { status: 409, answer: { error: { code: "conflict", message: "Conflict" } } },
      },
      handle: async ({ principal, params }) => {
        const request = await findRequest(sql, principal, params.request_id);
        if (request.action !== "export" || request.status !== "succeeded") {
          throw new ApiError("conflict", { details: { request_id: "Expected an export that has succeeded" } });
        }
        return new Response(recordsOf(sql, request.id), {
          headers: {
            "content-type": "application/json",
            "content-disposition": `attachment; filename="${request.id}-records.json"`,
          },
        });
      },
    }),
  ];
}

const SubjectRecord = Type.Object({
  kind: Type.String({ description: "`runs`, `calls`, `traces` …" }),
  record: Type.Unknown({ description: "the record as it is kept" }),
});

const digitsMin = 6;

/** @throws ApiError bad_request unless it names one person in one way */
function subjectOf(body: Static<typeof SubjectBody>): Subject {
  const given = subjectKinds.filter((kind) => body[kind] !== undefined);
  const [by] = given;
  const value = by && body[by]?.trim();
  if (given.length !== 1 || !by || !value) {
    throw new ApiError("bad_request", { details: { user_id: "Expected exactly one of user_id, phone and email" } });
  }
  if (by === "phone" && value.replace(/\D/g, "").length < digitsMin) {
    throw new ApiError("bad_request", { details: { phone: `Expected at least ${digitsMin} digits` } });
  }
  if (by === "email" && !/^[^@\s]+@[^@\s]+$/.test(value)) {
    throw new ApiError("bad_request", { details: { email: "Expected an e-mail address" } });
  }
  return { by, value };
}

async function createRequest(
  { sql, now, encryption }: SubjectRequestDeps,
  caller: Caller,
  action: SubjectAction,
  subject: Subject,
): Promise<SubjectRequest> {
  const id = crypto.randomUUID();
  const rows = await sql<SubjectRequest[]>`
    with created as (
      insert into data_subject_request
        (id, organization_id, action, identified_by, subject_sealed, status, created_at, created_by)
      values (${id}, ${caller.organizationId}, ${action}, ${subject.by}, ${encryption.seal(subject.value, id)}, 'pending',
              ${now()}, ${caller.userId})
      returning ${columns(sql)})
    select created.* from created, (
      select graphile_worker.add_job(${subjectRequestTask}, json_build_object('request_id', ${id}::text))) job`;
  return oneRow(rows);
}

async function findRequest(sql: Sql, caller: Caller, id: string): Promise<SubjectRequest> {
  requireAdministrator(caller);
  const [request] = await sql<SubjectRequest[]>`
    select ${columns(sql)} from data_subject_request
    where id = ${id} and organization_id = ${caller.organizationId}`;
  if (!request) throw new ApiError("not_found");
  return request;
}

const recordsAtOnce = 20;

interface Found {
  kind: string;
  record: unknown;
}

/** One after the other, as they are read: the whole may be large. */
function recordsOf(sql: Sql, requestId: string): ReadableStream<Uint8Array> {
  const rows = sql<Found[]>`
    select kind, record from data_subject_record where request_id = ${requestId} order by position`
    .cursor(recordsAtOnce)
    [Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let isFirst = true;
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = (await rows.next()) as IteratorResult<Found[], undefined>;
      const text = (value ?? []).map((row) => JSON.stringify(row)).join(",\n");
      const before = isFirst ? "[" : text ? ",\n" : "";
      isFirst = false;
      controller.enqueue(encoder.encode(`${before}${text}${done ? "]\n" : ""}`));
      if (done) controller.close();
    },
    async cancel() {
      await rows.return?.();
    },
  });
}
