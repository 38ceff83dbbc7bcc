/** What of a request may be kept in a log: everything but secrets and what names a person or an account. */

const depthMax = 12;
const itemsMax = 200;
const textMax = 2000;
const hidden = "[redacted]";

const sensitiveName =
  /password|passwd|passphrase|secret|token|authorization|cookie|credential|apikey|privatekey|signature|card|cvv|cvc|iban|bic|accountnumber|passport|ssn|email|phone|birth/;
/** Credentials of ours, wherever they stand. */
const ownCredential = /\b(svc|uak)_[a-z_]*[A-Za-z0-9_-]{16,}/g;
const jwt = /\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g;

/** Whether a field of this name is kept from the log, however it is written: `api_key`, `apiKey`, `API-Key`. */
export function isSensitive(name: string): boolean {
  return sensitiveName.test(name.toLowerCase().replace(/[^a-z0-9]/g, ""));
}

/** A copy with every sensitive field covered, in objects and arrays at any depth; what is too deep or too long is cut. */
export function redacted(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactedText(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= depthMax) return "[too deep]";
  if (Array.isArray(value)) {
    const items = value.slice(0, itemsMax).map((item) => redacted(item, depth + 1));
    return value.length > itemsMax ? [...items, `[${value.length - itemsMax} more]`] : items;
  }
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, itemsMax)
      .map(([name, item]) => [redactedText(name), isSensitive(name) ? hidden : redacted(item, depth + 1)]),
  );
}

function redactedText(text: string): string {
  const clean = text.slice(0, textMax).replace(ownCredential, hidden).replace(jwt, hidden);
  return text.length > textMax ? `${clean}[${text.length - textMax} more]` : clean;
}
