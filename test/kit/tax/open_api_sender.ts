/** Sends examples of the tax service as the owner of an organization that is made for each. */
import assert from "node:assert/strict";
import { sendQueuedMail } from "#accounts/account_mail.ts";
import type { Mail } from "#outbound/mailer.ts";
import type { ApiHarness } from "../api_harness.ts";
import { type OpenApiDocument, type Sender, senderOf } from "../open_api_examples.ts";

const password = "correct horse battery";

/**
 * An owner who is a platform administrator too, of an organization with API access and a legal
 * profile: whoever may do all that the document describes.
 */
export async function openTaxSender(api: ApiHarness, document: OpenApiDocument): Promise<Sender> {
  const email = `${crypto.randomUUID()}@inn.example`;
  const post = async (path: string, body: object, token?: string) => {
    const answer = await api.call("POST", path, { body, ...(token && { token }) });
    assert.ok(answer.status < 300, `${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  api.advance(60_000);
  const { user, organization, access_token: token } = await post("/v1/auth/signup", { email, password });
  await api.sql`update app_user set is_platform_admin = true where id = ${user.id}`;
  await api.sql`update organization set api_access_enabled = true where id = ${organization.id}`;
  const { access_token: administrator } = await post("/v1/auth/login", { email, password });
  const profile =
    document.paths["/v1/orgs/me/legal-profile"]?.patch?.requestBody?.content["application/json"]?.examples;
  const [whole] = Object.values(profile ?? {});
  if (whole) await api.call("PATCH", "/v1/orgs/me/legal-profile", { token, body: whole.value });

  const invite = async () => {
    const invited = `${crypto.randomUUID()}@guest.example`;
    await post("/v1/orgs/me/invitations", { email: invited }, token);
    return tokenIn(await mailTo(api, invited));
  };
  const standIns: Record<string, () => Promise<string>> = {
    email: async () => email,
    password: async () => password,
    new_email: async () => `${crypto.randomUUID()}@guest.example`,
    organization_id: async () => organization.id,
    verification_token: async () => tokenIn(await mailTo(api, email)),
    reset_token: async () => {
      await post("/v1/auth/forgot-password", { email });
      return tokenIn(await mailTo(api, email));
    },
    invitation_token: invite,
    member_id: async () => (await post(`/v1/orgs/invitations/${await invite()}/accept`, { password })).user.id,
  };
  return senderOf(api, administrator, standIns);
}

/** The last mail to an address, sent as the worker would. */
async function mailTo(api: ApiHarness, email: string): Promise<Mail | undefined> {
  const sent: Mail[] = [];
  const mailer = { send: async (mail: Mail) => void sent.push(mail), close: () => undefined };
  const jobs = await api.sql<{ id: string; payload: unknown }[]>`
    select job.id, job.payload from graphile_worker._private_jobs job
    join graphile_worker._private_tasks task on task.id = job.task_id
    where task.identifier = 'send_mail' order by job.id`;
  for (const { id, payload } of jobs) {
    await sendQueuedMail({ sql: api.sql, mailer, publicUrl: "http://desk.example:8080", now: api.now }, payload);
    await api.sql`select graphile_worker.complete_jobs(array[${id}::bigint])`;
  }
  return sent.findLast((mail) => mail.to === email);
}

function tokenIn(mail: Mail | undefined): string {
  const token = mail?.text.match(/#token=([\w-]{43})\n/)?.[1];
  assert.ok(token, "the mail has a link with a token");
  return token;
}
