/**
 * Keeps today's database for the tests of later migrations: starts everything, drives the public port
 * as customers do, and writes `schema_NNNN.sql` (every row) and `schema_NNNN.json` (the credentials,
 * and what reading answered) beside this file. NNNN is the newest migration.
 *
 *     node --import tsx test/snapshots/make_snapshot.ts
 *
 * The keys are this snapshot's own and open nothing else. The job queue is left out: it holds wake-ups.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { request } from "undici";
import { WebSocket } from "ws";
import { readStandaloneConfig } from "#standalone/config.ts";
import { startEmbeddedPostgres } from "#standalone/embedded_postgres.ts";
import { startStandalone } from "#standalone/standalone.ts";
import { openSql, type Sql } from "#store/sql.ts";
import { answering, approving, eventually } from "#test/kit/app_client.ts";
import type { Snapshot, SnapshotRead } from "./snapshot.ts";

// biome-ignore lint/suspicious/noExplicitAny: bodies are read as a client in JavaScript does
type Body = any;

const secrets = {
  INTERNAL_SECRET: "internal-secret-of-the-snapshot",
  ENCRYPTION_KEY: "encryption-key-of-the-snapshot",
  JWT_SECRET: "jwt-secret-of-the-snapshot",
};
const password = "correct horse battery";
const deadAddress = "https://127.0.0.1:9";

interface Call {
  as?: string;
  host?: string;
  body?: unknown;
  headers?: Record<string, string>;
  expect?: number;
}

/** Everything that leaves rows, and then every way of reading them. */
async function live(gatewayUrl: string, bootstrap: Record<string, string>): Promise<Snapshot> {
  const credentials: Record<string, string> = { pat: bootstrap.pat ?? "", access_key: bootstrap.access_key ?? "" };
  const call = async (method: string, path: string, { as, host, body, headers, expect }: Call = {}): Promise<Body> => {
    const answer = await request(`${gatewayUrl}${path}`, {
      method: method as "GET",
      headers: {
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(as !== undefined && { authorization: `Bearer ${credentials[as] ?? as}` }),
        ...(host !== undefined && { host: `${host}:${new URL(gatewayUrl).port}` }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    const isExpected = expect === undefined ? answer.statusCode < 300 : answer.statusCode === expect;
    assert.ok(isExpected, `${method} ${path}: ${answer.statusCode} ${text}`);
    return answer.headers["content-type"]?.includes("json") ? JSON.parse(text) : text;
  };
  const manage = (method: string, path: string, body?: unknown) =>
    call(method, path, { as: "pat", ...(body !== undefined && { body }) });

  const paths = [
    ...(await liveTax(call, credentials, bootstrap)),
    ...(await liveCalls(manage, bootstrap)),
    ...(await liveRuns(call, manage, bootstrap)),
  ];
  const reads: SnapshotRead[] = [];
  for (const path of paths) reads.push({ ...path, body: await call("GET", path.path, path) });
  return {
    made_at: new Date().toISOString(),
    public_url: gatewayUrl,
    secrets,
    credentials: { pat: credentials.pat ?? "", access_key: credentials.access_key ?? "" },
    sign_ins: {
      owner: { email: "owner@inn.example", password },
      administrator: { email: bootstrap.admin_email ?? "", password: bootstrap.admin_password ?? "" },
    },
    reads,
  };
}

type Paths = Omit<SnapshotRead, "body">[];
type CallFunction = (method: string, path: string, call?: Call) => Promise<Body>;
type Manage = (method: string, path: string, body?: unknown) => Promise<Body>;

/** Accounts, keys, calculations, bookings in each state, issuers, invoices and credit notes. */
async function liveTax(
  call: CallFunction,
  credentials: Record<string, string>,
  bootstrap: Record<string, string>,
): Promise<Paths> {
  const signUp = { email: "owner@inn.example", password, first_name: "Anna", organization_name: "Inn" };
  const owner = await call("POST", "/v1/auth/signup", { body: signUp });
  const admin = { email: bootstrap.admin_email, password: bootstrap.admin_password };
  credentials.owner = owner.access_token;
  credentials.administrator = (await call("POST", "/v1/auth/login", { body: admin })).access_token;
  await call("POST", "/v1/auth/login", { body: { email: signUp.email, password: "wrong password" }, expect: 401 });
  await call("POST", "/v1/auth/forgot-password", { body: { email: signUp.email } });
  const as = "owner";
  const opening = { api_access_enabled: true };
  await call("PATCH", `/v1/admin/organizations/${owner.organization.id}`, { as: "administrator", body: opening });
  for (const email of ["clerk@inn.example", "manager@inn.example"]) {
    await call("POST", "/v1/orgs/me/invitations", { as, body: { email, role: "member" } });
  }
  await call("PATCH", "/v1/orgs/me/legal-profile", { as, body: { legal_name: "Inn GmbH", country: "DE" } });
  for (const environment of ["live", "test"]) {
    const key = await call("POST", "/v1/api-keys", { as, body: { name: environment, environment } });
    credentials[environment] = key.api_key;
  }
  const lost = await call("POST", "/v1/api-keys", { as, body: { environment: "live" } });
  await call("DELETE", `/v1/api-keys/${lost.key_id}`, { as });
  const token = await call("POST", "/v1/personal-access-tokens", { as, body: { name: "laptop" } });
  await call("POST", "/v1/personal-access-tokens", { as, body: { name: "desk" } });
  await call("DELETE", `/v1/personal-access-tokens/${token.id}`, { as });

  const stay = {
    jurisdiction_code: "DE-BW-BADEN",
    stay_date: "2026-12-01",
    nights: 3,
    nightly_rate: 120,
    currency: "EUR",
    number_of_guests: 2,
  };
  await call("POST", "/v1/tax/calculate", { as, body: stay });
  await call("POST", "/v1/tax/calculate", { headers: { "x-api-key": credentials.live ?? "" }, body: stay });
  const hotel = { ...seller, invoice_series: "SEE" };
  const issuer = await call("POST", "/v1/issuers", { as, body: hotel });
  const closed = await call("POST", "/v1/issuers", { as, body: { ...seller, legal_name: "Closed GmbH" } });
  await call("POST", `/v1/issuers/${closed.id}/archive`, { as });
  const book = async (body: object = {}, headers?: Record<string, string>): Promise<string> => {
    const credential = headers ? { headers } : { as };
    return (await call("POST", "/v1/bookings", { ...credential, body: { calculation: stay, ...body } })).id;
  };
  const change = (id: string, action: string, body: object = {}) =>
    call("POST", `/v1/bookings/${id}/${action}`, { as, body });

  const confirmed = await book({ external_reference: "A-1", idempotency_key: "booking-1" });
  const ofTest = await book({}, { "x-api-key": credentials.test ?? "" });
  const adjusted = await book();
  await change(adjusted, "adjust", { nights: 5, reason: "Longer stay" });
  const partly = await book();
  await change(partly, "refund", { nights: 1, refund_idempotency_key: "refund-1", reason: "Left early" });
  const refunded = await book({ calculation: { ...stay, nightly_rate: "99.90" } });
  await change(refunded, "refund");
  const voided = await book();
  await change(voided, "void", { reason: "Booked twice" });
  const invoiced = await book({ issuer_id: issuer.id });
  const credited = await book({ issuer_id: issuer.id });
  const details = { buyer, buyer_reference: "4711", note: "Thanks" };
  for (const id of [invoiced, credited])
    await call("PATCH", `/v1/bookings/${id}/invoice-details`, { as, body: details });
  const invoice = await change(invoiced, "invoice");
  const first = await change(credited, "invoice");
  await change(credited, "invoice/credit", { reason: "Wrong nights" });
  await change(credited, "adjust", { nights: 2 });
  await change(credited, "invoice");

  const bookings = [confirmed, adjusted, partly, refunded, voided, invoiced, credited];
  return [
    ...["/v1/auth/me", "/v1/orgs/me", "/v1/orgs/me/invitations"].map((path) => ({ path, as })),
    ...["/v1/api-keys", "/v1/personal-access-tokens"].map((path) => ({ path, as })),
    ...["/v1/issuers?include_archived=true", "/v1/bookings", "/v1/invoices"].map((path) => ({ path, as })),
    ...["/v1/liability?from=2026-01-01&to=2027-12-31"].map((path) => ({ path, as })),
    ...["/v1/orgs/me/request-log?path=/v1/tax/calculate"].map((path) => ({ path, as })),
    ...bookings.map((id) => ({ path: `/v1/bookings/${id}`, as })),
    { path: `/v1/bookings/${ofTest}`, headers: { "x-api-key": credentials.test ?? "" } },
    ...[invoiced, credited].flatMap((id) =>
      ["document", "invoice", "invoice/ubl"].map((part) => ({ path: `/v1/bookings/${id}/${part}`, as })),
    ),
    ...[invoice.id, first.id].flatMap((id) => [
      { path: `/v1/invoices/${id}`, as },
      { path: `/v1/invoices/${id}/ubl`, as },
    ]),
    { path: "/v1/admin/organizations", as: "administrator" },
  ];
}

const seller = {
  legal_name: "Hotel am See GmbH",
  vat_id: "DE123456789",
  address_line1: "Seestrasse 1",
  city: "Baden-Baden",
  postal_code: "76530",
  country: "DE",
  electronic_address: "7300010000001",
  electronic_address_scheme: "0088",
  contact_name: "Accounts",
  contact_phone: "+49 7221 12345",
  contact_email: "accounts@hotel.example",
  iban: "DE89370400440532013000",
  payment_terms: "Due within 14 days",
  time_zone: "Europe/Berlin",
};
const buyer = {
  name: "Example Travel GmbH",
  vat_id: "DE987654321",
  address_line1: "Hauptstrasse 5",
  city: "Berlin",
  postal_code: "10115",
  country: "DE",
  electronic_address: "DE987654321",
  electronic_address_scheme: "9930",
};

/** Agents in each status, a call that was held, one that nobody took, and one in a room. */
async function liveCalls(manage: Manage, bootstrap: Record<string, string>): Promise<Paths> {
  const agents = "/v1/agents/voice/agents";
  const place = { project_id: bootstrap.project_id };
  const reserve = (id: string, body: object = {}) => manage("POST", `${agents}/${id}/calls/websocket`, body);
  const draft = await manage("POST", agents, {
    ...place,
    name: "Night desk",
    config: { welcome_message: "Good night" },
  });
  const archived = await manage("POST", agents, { ...place, name: "Old desk", config: {} });
  await manage("DELETE", `${agents}/${archived.data.id}`);
  const asked = { variables: { guest: "Ms Rossi" }, metadata: { room: 12 } };
  const held = (await reserve(bootstrap.voice_agent_id ?? "", asked)).data;
  await converse(held.websocket_url);
  const untaken = (await reserve(bootstrap.echo_agent_id ?? "")).data;
  const calls = "/v1/agents/voice/calls";
  await eventually(
    async () => (await manage("GET", `${calls}/${held.call_id}`)).data.state === "ended",
    "the call ended",
  );
  const roomCall = await insertRoomCall(sql, held.call_id);
  return [
    ...["/v1/organizations/me", "/v1/projects", "/v1/access-keys", agents, calls].map((path) => ({ path, as: "pat" })),
    ...[bootstrap.voice_agent_id, bootstrap.echo_agent_id, draft.data.id].map((id) => ({
      path: `${agents}/${id}`,
      as: "pat",
    })),
    ...[held.call_id, untaken.call_id, roomCall].map((id) => ({ path: `${calls}/${id}`, as: "pat" })),
  ];
}

/** Asks for breakfast in writing, hears the answer, and hangs up. */
function converse(websocketUrl: string): Promise<void> {
  const socket = new WebSocket(websocketUrl, "voice.v1");
  let asked = false;
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) return;
    const message = JSON.parse(data.toString());
    if (message.type === "mark") socket.send(JSON.stringify({ type: "mark", name: message.name }));
    if (message.type !== "agent_speech_done") return;
    socket.send(JSON.stringify(asked ? { type: "hang_up" } : { type: "user_message", text: "When is breakfast?" }));
    asked = true;
  });
  return new Promise((resolve, reject) => socket.once("close", () => resolve()).once("error", reject));
}

/** What a call in a room leaves, made of one that was held: rooms need a LiveKit server, which few machines have. */
async function insertRoomCall(database: Sql, callId: string): Promise<string> {
  const id = crypto.randomUUID();
  await database`
    insert into call
      (id, organization_id, project_id, agent_id, state, secret_sha256, protocol, input_format, output_format,
       client_buffer_ms, variables, metadata, config_overrides, initial_messages, created_at, created_by, expires_at,
       gateway_id, started_at, heartbeat_at, ended_at, duration_ms, end_reason, usage, transport, room_name, inline_config)
    select ${id}, organization_id, project_id, null, state, '', protocol, input_format, output_format,
       client_buffer_ms, variables, metadata, config_overrides, initial_messages, created_at, created_by, expires_at,
       gateway_id, started_at, heartbeat_at, ended_at, duration_ms, end_reason, usage, 'room', ${`draft-${id}`},
       '{"name": "Draft desk", "mode": "pipeline"}'
    from call where id = ${callId}`;
  return id;
}

const step = (id: string, type: string, rest: object = {}) => ({ id, type, ...rest });
const chain = (nodes: { id: string }[]) => nodes.slice(1).map(({ id }, index) => ({ from: nodes[index]?.id, to: id }));
const workflowOf = (...nodes: { id: string }[]) => ({ ...answering, nodes, edges: chain(nodes) });

/** Workflows, connections and apps, and runs in each status that lasts. */
async function liveRuns(call: CallFunction, manage: Manage, bootstrap: Record<string, string>): Promise<Paths> {
  const place = { project_id: bootstrap.project_id };
  const connection = await manage("POST", "/v1/connections", {
    ...place,
    name: "Models",
    provider: "openai",
    base_url: deadAddress,
    secret: "sk-of-the-snapshot",
  });
  const save = async (definition: unknown) =>
    (await manage("POST", "/v1/workflows", { ...place, name: "Front désk", definition })).data;
  const apps: { id: string; host: string }[] = [];
  const deploy = async (definition: unknown, change: object = {}): Promise<string> => {
    const workflow = await save(definition);
    const app = await manage("POST", "/v1/apps", { ...place, name: "Desk", workflow_id: workflow.id, ...change });
    apps.push({ id: app.data.id, host: app.data.hostname });
    return app.data.hostname;
  };
  const runs: Paths = [];
  const start = async (host: string, body: object, status: string, headers?: Record<string, string>) => {
    const sent = { as: "access_key", host, body: { background: true, ...body }, ...(headers && { headers }) };
    const { id } = (await call("POST", "/v1/runs", sent)).data;
    const read = async () => (await call("GET", `/v1/runs/${id}`, { as: "access_key", host })).data;
    await eventually(async () => (await read()).status === status, `a run of ${host} is ${status}`);
    for (const part of ["", "/events?page_size=100"])
      runs.push({ path: `/v1/runs/${id}${part}`, as: "access_key", host });
    return read();
  };
  const input = { question: "When is breakfast?" };

  const greeting = await deploy(answering, { policy: { retention_days: 365 } });
  const told = { input, session_id: "s-1", user_id: "guest-17", metadata: { channel: "web" } };
  await start(greeting, told, "succeeded", { "idempotency-key": "run-1" });
  await call("POST", "/", { as: "access_key", host: greeting, body: input });
  const callback = { url: `${deadAddress}/hook`, auth: { type: "bearer", token: "token-of-the-snapshot" } };
  const later = { input, execution_mode: "async", callbacks: [{ ...callback, metadata: { order: 7 } }] };
  await call("POST", "/", { as: "access_key", host: greeting, body: later });
  const exists = async (rows: Promise<readonly unknown[]>) => (await rows).length > 0;
  await eventually(() => exists(sql`select 1 from callback where outcome is not null`), "the callback was attempted");
  await call("POST", "/v1/connect/tokens", { as: "access_key", host: greeting, body: { user_id: "guest-17" } });

  const approval = await deploy(approving, { access_control: { access_type: "public" } });
  await start(approval, { input }, "awaiting_input");
  const asked = await start(approval, { input }, "awaiting_input");
  const answer = { input_request_id: asked.input_requests[0].id, decision: "approve", params: { text: "At eight" } };
  await call("POST", `/v1/runs/${asked.id}/resume`, {
    as: "access_key",
    host: approval,
    body: { responses: [answer] },
  });
  const approved = async () =>
    (await call("GET", `/v1/runs/${asked.id}`, { as: "access_key", host: approval })).data.status;
  await eventually(async () => (await approved()) === "succeeded", "the approved run succeeded");
  const unwanted = await start(approval, { input }, "awaiting_input");
  await call("POST", `/v1/runs/${unwanted.id}/cancel`, {
    as: "access_key",
    host: approval,
    body: { reason: "Wrong guest" },
  });

  const messages = [{ role: "user", template: "{{q}}" }];
  const model = { connection_id: connection.data.id, model: "small", messages };
  const broken = await deploy(
    workflowOf(
      step("in", "input"),
      step("ask", "llm", { config: model, inputs: { q: "$.input.question" } }),
      step("out", "output"),
    ),
  );
  await start(broken, { input }, "failed");
  await start(
    await deploy(
      workflowOf(step("in", "input"), step("rest", "delay", { config: { seconds: 2_592_000 } }), step("out", "output")),
    ),
    { input },
    "pending",
  );
  await eventually(() => exists(sql`select 1 from run where wake_at is not null`), "the delayed run waits");
  const inner = await save(answering);
  const body = workflowOf(
    step("say", "template", { config: { template: "{{g}}" }, inputs: { g: "$.item" } }),
    step("said", "output", { inputs: { text: "$.nodes.say.output.text" } }),
  );
  const mapping = { items: ["Anna", "Ben"], body: { nodes: body.nodes, edges: body.edges } };
  const use = { workflow_id: inner.id, version_id: inner.latest_version_id };
  const nested = await deploy(
    workflowOf(
      step("in", "input"),
      step("each", "map", { config: mapping }),
      step("sub", "subworkflow", { config: use, inputs: { question: "$.input.question" } }),
      step("out", "output", { inputs: { all: "$.nodes.each.output.items", one: "$.nodes.sub.output" } }),
    ),
  );
  await start(nested, { input }, "succeeded");
  await manage("POST", `/v1/workflows/${inner.id}/versions`, { definition: approving });

  const hosts = [...new Set(apps.map(({ host }) => host))];
  return [
    ...["/v1/workflows", "/v1/connections", "/v1/apps"].map((path) => ({ path, as: "pat" })),
    { path: `/v1/workflows/${inner.id}/versions`, as: "pat" },
    ...apps.map(({ id }) => ({ path: `/v1/apps/${id}`, as: "pat" })),
    ...apps.map(({ id }) => ({ path: `/v1/apps/${id}/sessions`, as: "pat" })),
    ...hosts.map((host) => ({ path: "/v1/runs?page_size=100", as: "access_key", host })),
    ...runs,
  ];
}

/** Writes both files. */
async function keep(snapshot: Snapshot): Promise<void> {
  const [newest] = await sql<{ version: number }[]>`select max(version) as version from schema_migration`;
  const name = `schema_${String(newest?.version).padStart(4, "0")}`;
  const file = (ending: string) => new URL(`./${name}.${ending}`, import.meta.url);
  await writeFile(file("json"), `${JSON.stringify(snapshot, null, 1)}\n`);
  await writeFile(file("sql"), await rowsAsSql());
  process.stdout.write(`Wrote ${name}.sql and ${name}.json: ${snapshot.reads.length} reads\n`);
}

/** One insert a table, as text that Postgres reads back as the same values. */
async function rowsAsSql(): Promise<string> {
  const columns = await sql<{ table_name: string; column_name: string; is_identity: string }[]>`
    select table_name, column_name, is_identity from information_schema.columns
    where table_schema = 'public' order by table_name, ordinal_position`;
  const parts: string[] = [];
  for (const table of new Set(columns.map(({ table_name }) => table_name))) {
    const own = columns.filter(({ table_name }) => table_name === table);
    const names = own.map(({ column_name }) => column_name);
    const literals = names.map((name) => `quote_nullable("${name}"::text)`).join(", ");
    const rows = await sql.unsafe<{ line: string }[]>(
      `select concat_ws(', ', ${literals}) as line from "${table}" order by ctid`,
    );
    if (rows.length === 0) continue;
    const list = names.map((name) => `"${name}"`).join(", ");
    const values = rows.map(({ line }) => `(${line})`).join(",\n");
    parts.push(`insert into "${table}" (${list}) overriding system value values\n${values};\n`);
    for (const { column_name } of own.filter(({ is_identity }) => is_identity === "YES")) {
      parts.push(
        `select setval(pg_get_serial_sequence('${table}', '${column_name}'), (select max("${column_name}") from "${table}"));\n`,
      );
    }
  }
  return parts.join("\n");
}

const dataDir = await mkdtemp(join(tmpdir(), "frontdesk-snapshot-"));
const postgres = await startEmbeddedPostgres({ dataDir: join(dataDir, "database"), durable: false });
const sql = openSql({ databaseUrl: postgres.url });
try {
  const config = readStandaloneConfig({
    ...secrets,
    DATA_DIR: join(dataDir, "house"),
    DATABASE_URL: postgres.url,
    GATEWAY_PORT: "0",
    API_PORT: "0",
    WORKER_PORT: "0",
    MEDIA_THREADS: "1",
    TRANSPORT: "ws",
    ALLOW_PRIVATE_ADDRESSES: "true",
  });
  const house = await startStandalone(config, pino({ level: "silent" }));
  try {
    await keep(await live(house.gatewayUrl, JSON.parse(await readFile(house.bootstrapFile, "utf8"))));
  } finally {
    await house.close();
  }
} finally {
  await sql.end({ timeout: 5 });
  await postgres.stop();
  await rm(dataDir, { recursive: true, force: true });
}
