/** What people type: e-mail addresses and passwords, as every endpoint takes them. */
import { Type } from "@sinclair/typebox";
import { invalidRequest } from "#http/validation.ts";

export const EmailAddress = Type.String({
  maxLength: 254,
  pattern: '^[^\\s@\\x00-\\x1f<>(),;:"]{1,64}@[^\\s@\\x00-\\x1f<>(),;:"]{1,189}$',
  description: "an e-mail address",
});

/** A password to set: length alone matters, as NIST SP 800-63B says. */
export const NewPassword = Type.String({
  minLength: 8,
  maxLength: 128,
  about: "8 to 128 characters, none of the first guesses",
});
/** A password to check, whatever rules there were when it was set. */
export const GivenPassword = Type.String({ minLength: 1, maxLength: 1024, about: "the account's password" });

export const PersonName = Type.String({ maxLength: 100, about: "a part of the person's name" });
export const OrganizationName = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: "\\S",
  description: "text that is not blank",
});

/** The first that any guesser tries, of those that are long enough. */
const firstGuesses = new Set([
  "12345678",
  "123456789",
  "1234567890",
  "11111111",
  "00000000",
  "87654321",
  "password",
  "password1",
  "passw0rd",
  "qwertyui",
  "qwertyuiop",
  "iloveyou",
  "1q2w3e4r",
  "1qaz2wsx",
  "abcd1234",
  "abc12345",
  "sunshine",
  "princess",
  "football",
  "baseball",
]);

/** @throws ApiError bad_request that names `password` */
export function refuseGuessable(password: string): void {
  if (firstGuesses.has(password.toLowerCase())) {
    throw invalidRequest("body", "password", "Expected a password that is not among the first to be guessed");
  }
}
