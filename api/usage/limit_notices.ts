/** The mail that a ceiling was reached: once a day for each, to everybody who administers the organization. */
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { renderLetter, singleLine } from "#accounts/account_letters.ts";
import { oneOf } from "#contracts/one_of.ts";
import type { Mailer } from "#outbound/mailer.ts";
import { type AnySql, json, type Sql } from "#store/sql.ts";
import { dayOf, subjectKinds } from "./day.ts";
import { atLimits, limitWords, reachedLimits } from "./limits.ts";

export const sendLimitMailTask = "send_limit_mail";
const attemptsMax = 12;

const LimitMail = Type.Object({
  to: Type.String(),
  kind: oneOf(subjectKinds),
  subject_id: Type.String(),
  reached: Type.String(),
  at_limit: oneOf(atLimits),
  day: Type.String(),
});
type LimitMail = Static<typeof LimitMail>;

/** Queues the mail of what was reached and not told of today. In the transaction that counted. */
export async function noticeReached(sql: AnySql, organizationIds: readonly string[], now: Date): Promise<void> {
  const day = dayOf(now);
  for (const limit of await reachedLimits(sql, organizationIds, now)) {
    const told = await sql`
      insert into usage_notice (organization_id, day, subject_id)
      values (${limit.organization_id}, ${day}::date, ${limit.subject_id}) on conflict do nothing`;
    if (told.count === 0) continue;
    const { kind, subject_id, at_limit } = limit;
    const administrators = await sql<{ email: string }[]>`
      select email from organization_member member join app_user on app_user.id = member.user_id
      where member.organization_id = ${limit.organization_id} and member.role in ('owner', 'admin') order by email`;
    for (const { email } of administrators) {
      const mail: LimitMail = { to: email, kind, subject_id, reached: limitWords(limit), at_limit, day };
      await sql`select graphile_worker.add_job(${sendLimitMailTask}, ${json(sql, mail)}, max_attempts := ${attemptsMax})`;
    }
  }
}

/** The worker's task. @throws Error when the mail was not taken; the queue then tries again, ever later */
export async function sendLimitMail({ sql, mailer }: { sql: Sql; mailer: Mailer }, payload: unknown): Promise<void> {
  const mail = Value.Parse(LimitMail, payload);
  const [named] = await sql<{ name: string }[]>`
    select name from organization where id = ${mail.subject_id}
    union all select name from voice_agent where id = ${mail.subject_id}
    union all select name from app where id = ${mail.subject_id}`;
  const what = { organization: "The organization", agent: "The voice agent", app: "The app" }[mail.kind];
  const who = `${what} ${singleLine(named?.name ?? "")}`;
  const under = mail.at_limit === "end" ? "Those under way end." : "Those under way go on to their end.";
  await mailer.send({
    to: mail.to,
    ...renderLetter({
      subject: `${who} has reached its daily limit`,
      paragraphs: [
        `${who} has used ${mail.reached} on ${mail.day}, which is its limit for a day.`,
        `New calls and runs are refused until midnight UTC. ${under}`,
      ],
      closing: "An administrator can change the limit at any time: it holds from then on.",
    }),
  });
}
