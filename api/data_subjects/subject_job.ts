/** The job behind a request about a person: one kind of record after the other, a portion at a time. */
import type { Encryption } from "#store/encryption.ts";
import type { PersonalData, Subject, SubjectKind } from "#store/personal_data.ts";
import { json, type Sql } from "#store/sql.ts";
import { type SubjectAction, type SubjectResult, subjectRequestTask } from "./subject_requests.ts";

/** Records read, or erased, at once. */
const portionIds = 20;
/** Text is searched in all that an organization keeps. */
const searchMsMax = 10 * 60_000;
/** What was under way is looked at again this much later. */
const againS = 60;

export interface SubjectJobDeps {
  sql: Sql;
  encryption: Encryption;
  now(): Date;
  /** In the order in which they are erased: what others are made of first. */
  rooms: readonly PersonalData[];
}

interface Taken {
  organization_id: string;
  action: SubjectAction;
  identified_by: SubjectKind;
  subject_sealed: Buffer;
  result: SubjectResult[];
}

/** Done again from its beginning after a crash: what was erased is not found any more. */
export async function answerSubjectRequest(deps: SubjectJobDeps, payload: unknown): Promise<void> {
  const { sql, encryption } = deps;
  const { request_id: id } = payload as { request_id: string };
  const [taken] = await sql<Taken[]>`
    update data_subject_request set status = 'running'
    where id = ${id} and status in ('pending', 'running') and subject_sealed is not null
    returning organization_id, action, identified_by, subject_sealed, result`;
  if (!taken) return;
  const subject: Subject = { by: taken.identified_by, value: encryption.open(taken.subject_sealed, id) };
  if (taken.action === "export") await exportAll(deps, id, taken, subject);
  else await eraseAll(deps, id, taken, subject);
}

async function exportAll({ sql, now, rooms }: SubjectJobDeps, id: string, taken: Taken, subject: Subject) {
  await sql`delete from data_subject_record where request_id = ${id}`;
  const result: SubjectResult[] = [];
  for (const room of rooms) {
    const ids = await findIds(sql, room, taken.organization_id, subject);
    for (const portion of portions(ids)) {
      const records = (await room.read(sql, portion)).map((record) => ({ kind: room.kind, record }));
      await sql`
        insert into data_subject_record (request_id, kind, record)
        select ${id}, kind, record from json_to_recordset(${json(sql, records)}) as given (kind text, record json)`;
    }
    result.push({ kind: room.kind, found: ids.length });
  }
  await end(sql, id, result, now());
}

async function eraseAll({ sql, now, rooms }: SubjectJobDeps, id: string, taken: Taken, subject: Subject) {
  const result: SubjectResult[] = [];
  let left = 0;
  for (const room of rooms) {
    const before = taken.result.find(({ kind }) => kind === room.kind);
    const ids = await findIds(sql, room, taken.organization_id, subject);
    if (!room.erase) {
      result.push({ kind: room.kind, found: ids.length, kept_because: room.keptBecause ?? "It is kept" });
      continue;
    }
    for (const portion of portions(ids)) await room.erase(portion);
    const rest = ids.length > 0 ? (await findIds(sql, room, taken.organization_id, subject)).length : 0;
    const erased = (before?.erased ?? 0) + Math.max(0, ids.length - rest);
    result.push({ kind: room.kind, found: erased + rest, erased });
    left += rest;
  }
  if (left === 0) {
    await end(sql, id, result, now());
    return;
  }
  // Runs and calls that were under way end first.
  await sql`
    with told as (update data_subject_request set result = ${json(sql, result)} where id = ${id})
    select graphile_worker.add_job(
      ${subjectRequestTask}, json_build_object('request_id', ${id}::text), run_at := now() + make_interval(secs => ${againS}))`;
}

/** Who it was is forgotten. */
async function end(sql: Sql, id: string, result: readonly SubjectResult[], now: Date): Promise<void> {
  await sql`
    update data_subject_request
    set status = 'succeeded', result = ${json(sql, result)}, subject_sealed = null, ended_at = ${now}
    where id = ${id}`;
}

function findIds(sql: Sql, room: PersonalData, organizationId: string, subject: Subject): Promise<string[]> {
  return sql.begin(async (transaction) => {
    await transaction`select set_config('statement_timeout', ${String(searchMsMax)}, true)`;
    return (await room.find(transaction, organizationId, subject)).map(({ id }) => id);
  }) as Promise<string[]>;
}

function portions(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / portionIds) }, (_, i) =>
    ids.slice(i * portionIds, (i + 1) * portionIds),
  );
}

const keptForMs = 7 * 24 * 60 * 60 * 1000;

/** What exports found is kept for a week; that there was a request, for as long as the organization. */
export async function purgeSubjectRecords({ sql, now }: { sql: Sql; now(): Date }): Promise<void> {
  const before = new Date(now().getTime() - keptForMs);
  await sql`
    delete from data_subject_record
    where request_id in (select id from data_subject_request where ended_at < ${before})`;
}
