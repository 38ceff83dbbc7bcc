/** Takes credentials out of what a host answers: some repeat the key that they were shown, in an echo or in an error. Pure. */

/** A shorter value is no key, and may stand in any text. */
const secretLengthMin = 8;

/** `text` with stars where one of `values`, or the credential behind its scheme ("Bearer …"), stands in it. */
export function withoutSecrets(text: string, values: readonly string[]): string {
  const secrets = values.flatMap((value) => [value, value.slice(value.indexOf(" ") + 1)]);
  return secrets
    .filter((secret) => secret.length >= secretLengthMin)
    .reduce((left, secret) => left.replaceAll(secret, "********"), text);
}
