/** What of a request may be kept in a log: everything but secrets and what names a person or an account. */

const depthMax = 12;
const itemsMax = 200;
const textMax = 2000;
const hidden = "[redacted]";

const sensitiveName =
  /password|passwd|passphrase|passcode|secret|token|authorization|cookie|credential|apikey|accesskey|privatekey|signature|card|cvv|cvc|iban|bic|accountnumber|passport|ssn|email|phone|birth/;
/** Too short to be looked for inside of other words (`shipping`, `author`, `company`). */
const sensitiveWords = new Set(["pwd", "pass", "auth", "pin", "pan", "otp", "jwt"]);
/** Credentials of ours, wherever they stand. */
const ownCredential = /\b(svc|uak)_[a-z_]*[A-Za-z0-9_-]{16,}/g;
/** Digits in the number of a payment card (ISO/IEC 7812), in groups or not. */
const cardLike = /(?<![\d.])[2-6](?:[ -]?\d){12,18}(?!\d|\.\d)/g;
const jwt = /\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g;

/** Whether a field of this name is kept from the log, however it is written: `api_key`, `apiKey`, `API-Key`. */
export function isSensitive(name: string): boolean {
  const squashed = name.toLowerCase().replace(/[^a-z0-9]/g, "");
  return sensitiveName.test(squashed) || wordsIn(name).some((word) => sensitiveWords.has(word));
}

function wordsIn(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/);
}

/** Whether the digits' last one checks the others, as on cards (ISO/IEC 7812-1, annex B: Luhn). */
function isCardNumber(text: string): boolean {
  const digits = [...text.replace(/\D/g, "")].reverse().map(Number);
  const sum = digits.reduce((total, digit, place) => {
    const weighted = place % 2 === 1 ? digit * 2 : digit;
    return total + (weighted > 9 ? weighted - 9 : weighted);
  }, 0);
  return sum % 10 === 0;
}

/** A copy with every sensitive field covered, in objects and arrays at any depth; what is too deep or too long is cut. */
export function redacted(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactedText(value);
  if (typeof value === "number") return redactedText(String(value)) === String(value) ? value : hidden;
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

/** Text without credentials of ours, tokens and card numbers; what is too long is cut. */
export function redactedText(text: string): string {
  const clean = text
    .slice(0, textMax)
    .replace(ownCredential, hidden)
    .replace(jwt, hidden)
    .replace(cardLike, (digits) => (isCardNumber(digits) ? hidden : digits));
  return text.length > textMax ? `${clean}[${text.length - textMax} more]` : clean;
}
