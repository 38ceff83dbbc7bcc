/** Proving an address and setting a new password, with tokens that came by mail. */

import { Type } from "@sinclair/typebox";
import { topics } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { publicAccess, type Route, route } from "#http/route.ts";
import { standingChanged } from "#identity/access_tokens.ts";
import { accountKey, countCostly } from "#identity/attempt_limits.ts";
import { EmailAddress, NewPassword, refuseGuessable } from "#identity/credentials_schema.ts";
import { hashPassword } from "#identity/password.ts";
import { revokeTokensOf } from "#identity/personal_access_tokens.ts";
import { queueMail } from "./account_mail.ts";
import { tokenLengthMax, useAccountToken } from "./account_tokens.ts";
import type { AccountDeps } from "./accounts.ts";

const Token = Type.String({ minLength: 1, maxLength: tokenLengthMax, about: "the token of the link in the mail" });
const MessageReply = named("Message", Type.Object({ message: Type.String() }), {
  message: "what happened, in a sentence",
});
const ResetReply = named(
  "PasswordReset",
  Type.Object({ message: Type.String(), revoked_personal_access_tokens: Type.Integer() }),
  {
    message: "what happened, in a sentence",
    revoked_personal_access_tokens: "how many of the person's tokens ended with the old password",
  },
);

/** Mails that one address of the network, and one mailbox, may cause in a minute. */
const mailsPerMinute = { byCaller: 60, toMailbox: 5 };
const triesPerMinute = 120;

interface MailRoute {
  path: string;
  summary: string;
  kind: "verify_email" | "reset_password";
  message: string;
}

type RecoveryDeps = Pick<AccountDeps, "sql" | "bus" | "now" | "addressOf">;

export function accountRecoveryRoutes({ sql, bus, now, addressOf }: RecoveryDeps): Route[] {
  /** The same for every address: whether there is an account is the worker's question. */
  const mailRoute = ({ path, summary, kind, message }: MailRoute): Route =>
    route({
      method: "POST",
      path,
      summary,
      guard: publicAccess,
      body: named("MailRequest", Type.Object({ email: EmailAddress })),
      reply: { status: 200, body: MessageReply },
      errors: ["too_many_requests"],
      examples: { any_address: { body: { email: "anna@inn.example" } } },
      handle: async ({ body: { email }, request }) => {
        await countCostly(bus, `mail:${kind}`, addressOf(request), mailsPerMinute.byCaller);
        await countCostly(bus, `mailbox:${kind}`, accountKey(email), mailsPerMinute.toMailbox);
        await queueMail(sql, { kind, email });
        return { message };
      },
    });
  return [
    route({
      method: "POST",
      path: "/v1/auth/verify-email",
      summary: "Confirm an e-mail address with the token that was sent there",
      guard: publicAccess,
      body: named("EmailVerification", Type.Object({ token: Token })),
      reply: { status: 200, body: MessageReply },
      errors: ["gone", "too_many_requests"],
      examples: {
        token_from_the_mail: { body: { token: "{{verification_token}}" } },
        unknown_token: {
          body: { token: "nonsense" },
          status: 410,
          answer: { detail: "The verification link was used already or has expired" },
        },
      },
      handle: async ({ body, request }) => {
        await countCostly(bus, "verify", addressOf(request), triesPerMinute);
        const verified = await sql.begin(async (transaction) => {
          const at = now();
          const userId = await useAccountToken(transaction, { token: body.token, purpose: "verify_email", now: at });
          if (!userId) return false;
          const rows = await transaction`
            update app_user set email_verified_at = ${at}, updated_at = ${at}
            where id = ${userId} and email_verified_at is null returning 1`;
          return rows.length > 0;
        });
        if (!verified) throw new ApiError("gone", { detail: "The verification link was used already or has expired" });
        return { message: "The e-mail address is verified" };
      },
    }),
    mailRoute({
      path: "/v1/auth/resend-verification",
      summary: "Send the verification mail again; the answer is the same whether there is such an account or not",
      kind: "verify_email",
      message: "If the account exists and is not verified yet, a mail is on its way",
    }),
    mailRoute({
      path: "/v1/auth/forgot-password",
      summary: "Send a link for a new password; the answer is the same whether there is such an account or not",
      kind: "reset_password",
      message: "If the account exists, a mail is on its way",
    }),
    route({
      method: "POST",
      path: "/v1/auth/reset-password",
      summary:
        "Set a new password with the token that was sent; ends all sessions, and the person's own access tokens unless told not to",
      guard: publicAccess,
      body: named(
        "NewPassword",
        Type.Object({
          token: Token,
          password: NewPassword,
          keep_personal_access_tokens: Type.Optional(
            Type.Boolean({ description: "true: programs that use the person's tokens go on; default false" }),
          ),
        }),
        {
          password: "the new one",
        },
      ),
      reply: { status: 200, body: ResetReply },
      errors: ["bad_request", "too_many_requests"],
      examples: {
        token_from_the_mail: { body: { token: "{{reset_token}}", password: "another correct horse" } },
        a_forgotten_password: {
          body: { token: "{{reset_token}}", password: "another correct horse", keep_personal_access_tokens: true },
        },
      },
      handle: async ({ body, request }) => {
        await countCostly(bus, "reset", addressOf(request), triesPerMinute);
        refuseGuessable(body.password);
        const passwordHash = await hashPassword(body.password);
        const keepsTokens = body.keep_personal_access_tokens ?? false;
        const reset = await sql.begin(async (transaction) => {
          const at = now();
          const userId = await useAccountToken(transaction, { token: body.token, purpose: "reset_password", now: at });
          if (!userId) return undefined;
          await transaction`
            update app_user
            set password_hash = ${passwordHash}, token_version = token_version + 1, updated_at = ${at}
            where id = ${userId}`;
          return { userId, revoked: keepsTokens ? [] : await revokeTokensOf(transaction, userId, at) };
        });
        if (!reset) throw new ApiError("bad_request", { detail: "The reset link was used already or has expired" });
        const { userId, revoked } = reset;
        await standingChanged(bus, userId);
        await Promise.all(revoked.map((secret) => bus.publish(topics.credentialRevoked, secret)));
        const kept = keepsTokens ? "Personal access tokens go on working" : "So have all personal access tokens";
        return {
          message: `The new password is set and all sessions have ended. ${kept}; keys of the organization are not touched`,
          revoked_personal_access_tokens: revoked.length,
        };
      },
    }),
  ];
}
