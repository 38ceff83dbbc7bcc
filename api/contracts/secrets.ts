/**
 * Formats of the credentials that Frontdesk hands out, and how they are recognized.
 * A secret is stored as SHA-256, shown once, and afterwards known by its prefix and last four.
 */

export const secretPrefixes = {
  personalAccessToken: "svc_pat_",
  legacyPersonalAccessToken: "uak_",
  accessKey: "svc_acc_",
  connectToken: "svc_con_",
  runToken: "svc_run_",
} as const;

/** Random bytes behind every credential and behind the secret of a call's URL. */
export const secretBytes = 32;

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether `text` can be an id of ours; anything else cannot exist and is a 404, not a 500. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}

/** The token of an `Authorization: Bearer …` header, or undefined when it is missing or malformed. */
export function bearerTokenOf(header: string | null | undefined): string | undefined {
  const match = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(header ?? "");
  return match?.[1];
}
