import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { newApiKey } from "#identity/api_key_format.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { bodySchemaOf, type OpenApiDocument, type Operation, operationsOf } from "#test/kit/open_api_examples.ts";

const someId = "0b7f9a52-2f3c-4c58-9a3e-0f1d5c7b9e01";
const password = "correct horse battery";

interface Issue {
  type: string;
  loc: (string | number)[];
  msg: string;
}
interface Schema {
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
}

/** A refusal's lines as a client shows them: the location without the leading body, then the message. */
function linesOf(issues: Issue[]): string[] {
  return issues.map(({ loc, msg }) => `${(loc[0] === "body" ? loc.slice(1) : loc).join(".")}: ${msg}`);
}

describe("every route of the tax service", () => {
  let api: ApiHarness;
  let operations: Operation[];
  let document: OpenApiDocument;
  let token: string;
  let organizationId: string;
  const problems: string[] = [];

  before(async () => {
    api = await openApiHarness();
    document = (await api.call("GET", "/openapi/tax.json")).body;
    operations = operationsOf(document);
    ({ token, organizationId } = await signUp());
  });
  after(() => api.close());

  async function signUp() {
    const email = `${crypto.randomUUID()}@inn.example`;
    const { body } = await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    await api.sql`update app_user set is_platform_admin = true where id = ${body.user.id}`;
    await api.sql`update organization set api_access_enabled = true where id = ${body.organization.id}`;
    const signedIn = await api.call("POST", "/v1/auth/login", { body: { email, password } });
    return {
      token: signedIn.body.access_token as string,
      userId: body.user.id as string,
      organizationId: body.organization.id as string,
    };
  }
  /** The path with parameters that could be: a UUID, a number, a token. */
  const pathOf = ({ path, parameters }: Operation) =>
    path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const { schema } = parameters.find((one) => one.name === name) as unknown as {
        schema: Schema & { format?: string };
      };
      return schema.type === "integer" ? "17" : schema.format === "uuid" ? someId : "token";
    });
  const send = async (operation: Operation, body: string | undefined, given: Record<string, string>, query = "") => {
    const headers = { "content-type": "application/json", ...given };
    const hasBody = body !== undefined && operation.method !== "GET";
    const init = { method: operation.method, headers, ...(hasBody && { body }) };
    const response = await api.app.fetch(new Request(`http://api.test${pathOf(operation)}${query}`, init));
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  const nameOf = ({ method, path }: Operation) => `${method} ${path}`;
  const signedIn = () => ({ authorization: `Bearer ${token}` });

  /** Notes what is wrong with an answer that should list issues, the first of them at `loc`. */
  function expectIssues(name: string, answer: { status: number; body: { detail?: unknown } }, loc: RegExp): void {
    const { status, body } = answer;
    const issues = body.detail as Issue[];
    const isList = status === 422 && Array.isArray(issues) && issues.length > 0;
    if (!isList) return void problems.push(`${name}: ${status} ${JSON.stringify(body).slice(0, 200)}`);
    for (const issue of issues) {
      const isWhole =
        typeof issue.type === "string" && issue.type !== "" && Array.isArray(issue.loc) && issue.loc.length > 1;
      if (!isWhole) problems.push(`${name}: ${JSON.stringify(issue)}`);
    }
    const lines = linesOf(issues);
    for (const line of lines) {
      if (!/^[\w.:]+: [A-Z][^\n]{3,}$/.test(line)) problems.push(`${name}: reads badly: ${line}`);
    }
    if (!lines.some((line) => loc.test(line))) problems.push(`${name}: nothing at ${loc}: ${lines.join("; ")}`);
  }

  it("refuses a body that is none with 422, and says so", async () => {
    problems.length = 0;
    let asked = 0;
    for (const operation of operations.filter((one) => one.requestBody)) {
      for (const body of ["{", "[1]", '"text"', "7", "null", '{"a":"\\u0000"}', "\u00ff"]) {
        asked++;
        expectIssues(`${nameOf(operation)} ${body}`, await send(operation, body, signedIn()), /./);
      }
    }
    assert.ok(asked > 100);
    assert.deepEqual(problems, []);
  });

  it("refuses a field that does not fit with 422, and names it", async () => {
    problems.length = 0;
    let asked = 0;
    for (const operation of operations) {
      const schema = bodySchemaOf(document, operation) as Schema | undefined;
      for (const [field, wanted] of Object.entries(schema?.properties ?? {})) {
        const wrong = wrongValueFor(wanted);
        if (wrong === undefined) continue;
        asked++;
        const answer = await send(operation, JSON.stringify({ [field]: wrong }), signedIn());
        expectIssues(`${nameOf(operation)} ${field}`, answer, new RegExp(`^${field}(\\.|: )`));
      }
      for (const field of schema?.required ?? []) {
        asked++;
        const answer = await send(operation, "{}", signedIn());
        expectIssues(`${nameOf(operation)} without ${field}`, answer, new RegExp(`^${field}: Required$`));
      }
    }
    assert.ok(asked > 80);
    assert.deepEqual(problems, []);
  });

  it("refuses query fields that do not fit or do not exist with 422, and names them", async () => {
    problems.length = 0;
    for (const operation of operations) {
      const isListed = operation.parameters.some((one) => one.in === "query");
      if (operation.method === "GET" && isListed) {
        const answer = await send(operation, undefined, signedIn(), "?no_such_field=1");
        expectIssues(`${nameOf(operation)} unknown field`, answer, /^query\.no_such_field: Unknown field$/);
      }
      for (const parameter of operation.parameters.filter((one) => one.in === "query")) {
        const { type, enum: words, format } = (parameter as unknown as { schema: Schema & { format?: string } }).schema;
        if (type === "string" && !words && !format) continue;
        const answer = await send(operation, undefined, signedIn(), `?${parameter.name}=never%20so`);
        expectIssues(`${nameOf(operation)} ${parameter.name}`, answer, new RegExp(`^query\\.${parameter.name}: `));
      }
    }
    assert.deepEqual(problems, []);
  });

  it("answers 401 to whoever shows no credential, a malformed one, or one that is not accepted, and says which", async () => {
    const schemes = new Set<string>();
    const guarded = operations.filter((one) => one.security.length > 0);
    assert.ok(guarded.length > 20);
    const foreign = await foreignToken(token);
    for (const operation of guarded) {
      for (const scheme of operation.security.flatMap(Object.keys)) schemes.add(scheme);
      const takesKeys = operation.security.some((one) => "api_key" in one);
      const refusal = async (headers: Record<string, string>) => {
        const answer = await send(operation, "{}", headers);
        assert.equal(answer.status, 401, `${nameOf(operation)} ${JSON.stringify(answer.body)}`);
        assert.ok(answer.headers.get("www-authenticate"));
        assert.equal(typeof answer.body.detail, "string");
        return answer.body.detail as string;
      };
      assert.match(await refusal({}), /^Missing credential: /);
      assert.match(await refusal({ authorization: "" }), /^Missing credential: /);
      for (const malformed of ["Bearer", "Bearer nonsense", "Basic dTpw", token]) {
        assert.match(await refusal({ authorization: malformed }), /^Malformed credential: /, malformed);
      }
      const notAccepted = await refusal({ authorization: `Bearer ${foreign}` });
      assert.match(notAccepted, /^Credential not accepted: /);
      if (takesKeys) {
        assert.match(await refusal({ "x-api-key": "nonsense" }), /^Malformed credential: /);
        assert.match(await refusal({ "x-api-key": newApiKey("live") }), /^Credential not accepted: /);
      }
    }
    assert.deepEqual([...schemes].sort(), ["access_token", "api_key"]);
  });

  it("answers a revoked credential as it answers an unknown one", async () => {
    const gone = await signUp();
    const [member] = await api.sql`
      insert into organization_member (organization_id, user_id, role)
      values (${organizationId}, ${gone.userId}, 'member') returning 1 as added`;
    assert.ok(member);
    const { body: key } = await api.call("POST", "/v1/api-keys", { token: gone.token, body: {} });
    const calculate = operations.find((one) => one.path === "/v1/tax/calculate") as Operation;
    const detailOf = async (headers: Record<string, string>) => {
      const { status, body } = await send(calculate, "{}", headers);
      assert.equal(status, 401);
      return body.detail as string;
    };
    assert.equal((await send(calculate, "{}", { "x-api-key": key.api_key })).status, 422, "it works before");
    await api.call("DELETE", `/v1/api-keys/${key.key_id}`, { token: gone.token });
    assert.equal(await detailOf({ "x-api-key": key.api_key }), await detailOf({ "x-api-key": newApiKey("live") }));

    const unknown = await detailOf({ authorization: `Bearer ${await foreignToken(gone.token)}` });
    await api.sql`delete from organization_member where user_id = ${gone.userId} and organization_id = ${gone.organizationId}`;
    await api.bus.publish("credential_revoked", gone.userId);
    assert.equal(await detailOf({ authorization: `Bearer ${gone.token}` }), unknown);
  });
});

/** The same claims, signed by somebody else. */
async function foreignToken(token: string): Promise<string> {
  const [header, claims] = token.split(".");
  const key = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(`${header}.${claims}`));
  return `${header}.${claims}.${Buffer.from(signature).toString("base64url")}`;
}

/** A value of a type that does not fit, or undefined for a field that takes anything. */
function wrongValueFor(schema: Schema): unknown {
  if (schema.enum) return "never so";
  const types = typesOf(schema);
  if (types.length === 0) return undefined;
  const values = { object: { wrong: true }, array: [7], boolean: true, string: "text", number: 7 };
  const fits = (name: string) => types.includes(name) || (name === "number" && types.includes("integer"));
  return Object.entries(values).find(([name]) => !fits(name))?.[1];
}

/** JSON types that a schema lets pass; none where it says nothing of them. */
function typesOf({ type, anyOf }: Schema): string[] {
  if (!anyOf) return type === undefined ? [] : [type].flat();
  const each = anyOf.map(typesOf);
  return each.some((types) => types.length === 0) ? [] : each.flat();
}
