/**
 * Callbacks of asynchronous invocations, as clients ask for them: checked, and their tokens sealed, before
 * a run is made. `callback_delivery.ts` sends them.
 */
import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { runLimits } from "#contracts/run_event.ts";
import { AddressRefusedError, checkPublicUrl, type Resolve } from "#outbound/address_guard.ts";
import type { Encryption } from "#store/encryption.ts";
import type { NewRun } from "./run_creation.ts";

export const Callback = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 4096 }),
    auth: Type.Optional(
      Type.Object(
        {
          type: Type.Literal("bearer"),
          token: Type.String({ minLength: 1, maxLength: 8192, pattern: "^[\\x21-\\x7e]+$" }),
        },
        { additionalProperties: false },
      ),
    ),
    metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { additionalProperties: false },
);
export type Callback = Static<typeof Callback>;
export const Callbacks = Type.Array(Callback, { maxItems: runLimits.callbacksMax });

export interface CallbackRules {
  encryption: Encryption;
  allowPrivateAddresses: boolean;
  resolve?: Resolve;
}

/** Checks the addresses and seals the tokens. @throws ApiError bad_request naming each refused address */
export async function prepareCallbacks(
  callbacks: readonly Callback[],
  { encryption, allowPrivateAddresses, resolve }: CallbackRules,
): Promise<NonNullable<NewRun["callbacks"]>> {
  const rules = { protocols: ["https:"], allowPrivateAddresses, ...(resolve && { resolve }) };
  const problems = await Promise.all(
    callbacks.map(({ url }) =>
      checkPublicUrl(url, rules).then(
        () => undefined,
        (error: unknown) => {
          if (error instanceof AddressRefusedError) return error.message;
          throw error;
        },
      ),
    ),
  );
  const details = Object.fromEntries(
    problems.flatMap((problem, i) => (problem ? [[`callbacks.${i}.url`, problem]] : [])),
  );
  if (Object.keys(details).length > 0) throw new ApiError("bad_request", { details });
  return callbacks.map(({ url, auth, metadata }) => ({
    url,
    tokenEncrypted: auth ? encryption.seal(auth.token, sealedFor(url)) : null,
    metadata: metadata ?? null,
  }));
}

/** A token opens for its own address only. */
export const sealedFor = (url: string) => `callback:${url}`;
