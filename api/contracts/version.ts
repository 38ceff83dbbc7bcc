/** What this is the code of; `package.json` says the same. */
export const version = "0.1.0";
