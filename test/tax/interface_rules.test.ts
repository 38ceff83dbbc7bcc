/**
 * What the tax service's interface promises, rule by rule, and the test that shows each. A rule whose test
 * is gone fails, and so does a line of the interface document, where that lies beside the repository, that
 * no rule here answers for: `marks` are words of its lines.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const documents = join(root, "..", "shared", "seeds");

interface Rule {
  rule: string;
  shownBy: string;
  marks: readonly string[];
}

const files = {
  accounts: "test/accounts/accounts.test.ts",
  log: "test/accounts/request_log.test.ts",
  places: "api/tax/places/jurisdictions.test.ts",
  known: "api/tax/places/place_at.test.ts",
  calculations: "api/tax/calculator/calculations.test.ts",
  addresses: "test/tax/addresses.test.ts",
  bookings: "test/tax/bookings.test.ts",
  changes: "test/tax/booking_changes.test.ts",
  invoices: "test/tax/invoices.test.ts",
  refusals: "test/tax/open_api_refusals.test.ts",
  hosts: "test/api/hosts.test.ts",
} as const;

const rulesIn: Readonly<Record<keyof typeof files, readonly Rule[]>> = {
  accounts: [
    {
      rule: "sign-up makes a user and an organization in one transaction; the signer owns it and is signed in",
      shownBy: "signs up a user with an organization, signs in, and says who that is",
      marks: [
        "Customers belong to organizations",
        "`/v1/auth/signup`",
        "`/v1/auth/me`",
        "Login returns a JWT access token",
        "The header and scheme used to send the JWT",
      ],
    },
    {
      rule: "users are registered by administrators",
      shownBy: "registers users for administrators alone",
      marks: ["| User | Created by sign-up", "`/v1/auth/register`"],
    },
    {
      rule: "an unverified user gets no token: 403 email_verification_required, and mail again",
      shownBy: "gives no token before the address is verified, and mails again at each sign-in",
      marks: ["`POST /v1/auth/login`", "`/v1/auth/login`", "| 403 |"],
    },
    {
      rule: "a token verifies an address once; any other is 410",
      shownBy: "verifies an address once, with any case of racing tokens",
      marks: ["`POST /v1/auth/verify-email`", "`/v1/auth/verify-email`", "| 410 |"],
    },
    {
      rule: "forgotten passwords and mail sent again are answered 200, whoever asks",
      shownBy: "answers forgot and resend alike, with the same work, whether there is an account or not",
      marks: ["`/v1/auth/forgot-password`", "`/v1/auth/resend-verification`"],
    },
    {
      rule: "a reset sets the password and ends the other reset tokens",
      shownBy: "resets a password with one of two racing requests, and ends sessions and other reset tokens",
      marks: ["Password reset tokens", "`/v1/auth/reset-password`"],
    },
    {
      rule: "an organization has members and invitations; an invitation is previewed and accepted with a password",
      shownBy: "invites, previews and accepts; of two that race one is let in",
      marks: [
        "| Organization | Has an owner",
        "| Invitation | Looked up",
        "Invitation (pending)",
        "`/v1/orgs/me` |",
        "`/v1/orgs/me/invitations`",
        "invitations/{token}/preview",
        "invitations/{token}/accept",
      ],
    },
    {
      rule: "legal fields are set and cleared one by one",
      shownBy: "sets and clears legal fields, each by itself",
      marks: ["`/v1/orgs/me/legal-profile`"],
    },
    {
      rule: "API keys are handed out once the administrator allows it, shown once, and hidden when revoked",
      shownBy: "hands out API keys once the platform's administrator allows it, and revokes them",
      marks: [
        "| API key | Integer id",
        "`DELETE /v1/api-keys/{key_id}`",
        "`/v1/api-keys`",
        "`/v1/api-keys/{key_id}`",
        "requires the organization flag",
      ],
    },
    {
      rule: "what fails without a schema is a plain sentence",
      shownBy: "answers what is not there, and failures without a schema, with a plain sentence",
      marks: ["| Most failures |"],
    },
    {
      rule: "a wrong body is 422 with type, loc and msg",
      shownBy: "answers a wrong body of every endpoint with 422 and readable lines",
      marks: ["| Validation issue |", "| 422 schema failure |"],
    },
    {
      rule: "the interface describes itself, as version 0.1.0",
      shownBy: "describes itself in OpenAPI",
      marks: ["own version is 0.1.0", "Deprecation or compatibility policy"],
    },
  ],
  log: [
    {
      rule: "billable requests are logged, redacted, unreadable ones by their size alone",
      shownBy: "are logged with a redacted payload, refused ones and unreadable ones included",
      marks: ["Billable calls are recorded", "| Request log entry |"],
    },
    {
      rule: "the log is listed by path, status, limit and cursor, to administrators",
      shownBy: "are listed by pages and filters, to the organization's administrators alone",
      marks: [
        "`/v1/orgs/me/request-log`",
        "| `path` |",
        "| `status` |",
        "| `limit` |",
        "| `cursor` |",
        "The request log is readable",
        "| Request log `limit` |",
      ],
    },
    {
      rule: "programs send X-API-Key",
      shownBy: "take an API key or an access token; with both the key decides",
      marks: ["in the header `X-API-Key`"],
    },
    {
      rule: "a missing, malformed or revoked credential is 401",
      shownBy: "say of a key whether it was missing, malformed or not accepted; unknown and revoked read alike",
      marks: ["malformed or revoked credential yields 401", "| 401 |"],
    },
  ],
  places: [
    {
      rule: "a place has name, country, type, status and parent",
      shownBy: "says of each its type, status, parent and coverage",
      marks: ["| Jurisdiction | Has `name`"],
    },
    {
      rule: "places are filtered by country, type, status and parent",
      shownBy: "filters by country, type, status and parent, alone and together",
      marks: ["`/v1/jurisdictions`"],
    },
    {
      rule: "q finds a part of a name",
      shownBy: "finds by a part of the English or local name, whatever case and accents",
      marks: [],
    },
  ],
  known: [
    {
      rule: "more than 230 countries and more than 600 places below them",
      shownBy: "are all 249 countries of ISO 3166-1 and well over 600 places below them",
      marks: ["more than 230 countries"],
    },
  ],
  calculations: [
    {
      rule: "a stay is calculated",
      shownBy: "answers what is owed, why, and by which law",
      marks: ["It calculates accommodation tax", "`/v1/tax/calculate`"],
    },
    {
      rule: "an unknown place, missing coordinates and a currency that does not fit are 400",
      shownBy: "refuses with 400 and a sentence what cannot be calculated",
      marks: ["| 400 |"],
    },
    {
      rule: "a price above 0, and a departure that fits: 422 else",
      shownBy: "refuses with 422 and the field what does not fit",
      marks: ["| `nightly_rate` |", "| 422 |"],
    },
  ],
  addresses: [
    {
      rule: "addresses are validated, and billable",
      shownBy: "are billable: each request is in its organization's log, refused ones as well, and in no other's",
      marks: ["`/v1/addresses/validate`"],
    },
  ],
  bookings: [
    {
      rule: "a booking keeps the calculation and its answer",
      shownBy: "hold what was asked, what /v1/tax/calculate answers, and how they came to be",
      marks: ["| Booking | `idempotency_key`", "First request with a key"],
    },
    {
      rule: "another organization's booking is 404",
      shownBy: "are 404 for other organizations and 401 without a credential",
      marks: ["owned by another organization yields 404", "| 404 |"],
    },
    {
      rule: "the same key with the same body is the same booking, 200",
      shownBy: "are the first one, also when it has changed meanwhile",
      marks: ["`/v1/bookings` |", "Same key and same body"],
    },
    {
      rule: "the same key with another body is 409",
      shownBy: "50 times at once with two bodies, make one booking, and refuse the other body",
      marks: ["Same key and different body", "| 409 |"],
    },
    {
      rule: "without a key every request is a new booking",
      shownBy: "are new every time without one, and with an empty one",
      marks: ["| No key |"],
    },
    {
      rule: "a key has up to 200 characters",
      shownBy: "take keys of 200 characters, one organization's apart from another's",
      marks: ["`idempotency_key` length"],
    },
  ],
  changes: [
    {
      rule: "a refund sent again answers its tax delta and never reclaims twice",
      shownBy: "never reclaims twice: sent again it answers what it gave back then",
      marks: ["`/v1/bookings/{id}/refund`"],
    },
    {
      rule: "a refund in another currency is refused",
      shownBy: "is refused another currency, more than is left, and what is no amount",
      marks: [],
    },
  ],
  invoices: [
    {
      rule: "the seller is the organization's legal profile where no issuer is named",
      shownBy: "are of the organization's legal profile where the booking names no issuer",
      marks: ["It projects bookings into e-invoice documents"],
    },
    {
      rule: "a live invoice freezes adjust, void, refund and invoice details: 409",
      shownBy: "freeze their booking while they are live, and a credit note thaws it",
      marks: ["a live invoice exists"],
    },
    {
      rule: "an e-invoice that is not ready to send is 422",
      shownBy: "are sent as UBL when they are ready, and say what is missing when not",
      marks: [],
    },
  ],
  refusals: [
    {
      rule: "every route but the public ones asks for a credential",
      shownBy:
        "answers 401 to whoever shows no credential, a malformed one, or one that is not accepted, and says which",
      marks: ["Public endpoints (no credential)"],
    },
  ],
  hosts: [
    {
      rule: "every path of the interface is there, under /v1",
      shownBy: "know every documented path of each service",
      marks: ["All paths carry the prefix"],
    },
  ],
};

describe("each rule of the tax interface", () => {
  for (const [name, rules] of Object.entries(rulesIn)) {
    const file = files[name as keyof typeof files];
    it(`has its test in ${file}`, () => {
      const text = readFileSync(join(root, file), "utf8");
      const gone = rules.filter(({ shownBy }) => !text.includes(`it(${JSON.stringify(shownBy)}`));
      assert.deepEqual(gone, []);
    });
  }

  it("answers for a line of the interface document, and no line is without one", (test) => {
    const file = existsSync(documents) ? readdirSync(documents).find((one) => one.startsWith("000")) : undefined;
    if (!file) return test.skip("the interface document is not beside the repository");
    const lines = readFileSync(join(documents, file), "utf8").split("\n");
    const isRuled = (line: string | undefined) => /^\|[-\s|]+\|$/.test(line ?? "");
    const promises = lines.filter(
      (line, index) => /^(\||- |\d+\. )/.test(line) && !isRuled(line) && !isRuled(lines[index + 1]),
    );
    const marks = Object.values(rulesIn).flatMap((rules) => rules.flatMap((one) => one.marks));
    assert.ok(promises.length > 60);
    assert.deepEqual(
      promises.filter((line) => !marks.some((mark) => line.includes(mark))),
      [],
    );
    assert.deepEqual(
      marks.filter((mark) => !promises.some((line) => line.includes(mark))),
      [],
      "marks of no line",
    );
  });
});
