/**
 * The first start: an organization with its owner, a platform administrator, a project, credentials,
 * two agents and an app, and `DATA_DIR/bootstrap.json` (mode 0600) that names them.
 *
 * A row in `bootstrap` says that it happened; a lock in Postgres lets one process at a time do it.
 * A start that was killed in between, or whose file was lost, gets new secrets for the same things.
 */

import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { insertMember, insertOrganization, insertUser, replacePassword } from "#accounts/account_rows.ts";
import { findApp, insertApp } from "#apps/apps.ts";
import { appPathOf, collectorPath } from "#contracts/hosts.ts";
import { createAccessKey } from "#identity/access_keys.ts";
import type { Caller } from "#identity/caller.ts";
import { hashPassword } from "#identity/password.ts";
import { createPersonalAccessToken } from "#identity/personal_access_tokens.ts";
import { insertProject } from "#identity/projects.ts";
import { sha256Hex } from "#identity/secret.ts";
import type { AnySql, Sql } from "#store/sql.ts";
import { configProblems } from "#voice/agent_config.ts";
import { insertVoiceAgent, type NewAgent } from "#voice/voice_agents.ts";
import { workflowProblems } from "#workflows/workflow_rules.ts";
import { insertWorkflow } from "#workflows/workflows.ts";
import { echoConfig, frontDeskConfig } from "./first_agents.ts";
import { frontDeskWorkflow } from "./first_app.ts";

/** The content of `bootstrap.json`. */
export interface BootstrapFile {
  gateway_url: string;
  api_url: string;
  email: string;
  password: string;
  pat: string;
  access_key: string;
  project_id: string;
  voice_agent_id: string;
  echo_agent_id: string;
  /** The demo app; null when its project was deleted. */
  app_id: string | null;
  /** As its requests' `Host` header has it, port included. */
  app_host: string | null;
  /** The same app by path, for clients that do not resolve `*.localhost`. */
  app_url: string | null;
  /** The traces collector by path. */
  collector_url: string;
  admin_email: string;
  admin_password: string;
}

export interface BootstrapOptions {
  /** On a migrated database. */
  sql: Sql;
  gatewayUrl: string;
  apiUrl: string;
  /** An existing folder. */
  dataDir: string;
  /** Apps answer below this domain; `apps.localhost` unless given. */
  appDomain?: string;
  now?: () => Date;
}

export interface Bootstrapped {
  /** Of `bootstrap.json`. */
  path: string;
  file: BootstrapFile;
  /** Whom a sign-in link is for. */
  ownerId: string;
  organizationId: string;
}

/** Any constant will do: it names our lock in `pg_locks`. */
const lockKey = 7_305_003;
const ownerEmail = "owner@frontdesk.example";
const adminEmail = "admin@frontdesk.example";

interface BootstrapRow {
  organization_id: string;
  owner_id: string;
  admin_id: string;
  project_id: string;
  voice_agent_id: string;
  echo_agent_id: string;
  /** Null before it was made, and after it was deleted. */
  app_id: string | null;
}

/** Makes what is missing, keeps what is there, and brings the addresses in the file up to date. */
export async function bootstrap({
  sql,
  gatewayUrl,
  apiUrl,
  dataDir,
  appDomain = "apps.localhost",
  now = () => new Date(),
}: BootstrapOptions): Promise<Bootstrapped> {
  const path = join(dataDir, "bootstrap.json");
  return sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${lockKey})`;
    const row = (await findRow(transaction)) ?? (await createFirst(transaction, now()));
    const app = await ensureFirstApp({ sql: transaction, appDomain }, row, now());
    const kept = await readValidFile(transaction, path, row);
    const secrets = kept ?? (await mintSecrets(transaction, row, now()));
    const file: BootstrapFile = {
      gateway_url: gatewayUrl,
      api_url: apiUrl,
      email: secrets.email,
      password: secrets.password,
      pat: secrets.pat,
      access_key: secrets.access_key,
      project_id: row.project_id,
      voice_agent_id: row.voice_agent_id,
      echo_agent_id: row.echo_agent_id,
      app_id: app?.id ?? null,
      app_host: app ? hostOf(app.hostname, gatewayUrl) : null,
      app_url: app ? `${gatewayUrl}${appPathOf(app.hostname.slice(0, -appDomain.length - 1))}` : null,
      collector_url: `${gatewayUrl}${collectorPath}`,
      admin_email: secrets.admin_email,
      admin_password: secrets.admin_password,
    };
    // Under the lock: of several that start in one folder the last file names what works. Secrets of a
    // transaction that fails after this do not, and the next start sees that.
    await writePrivateFile(path, `${JSON.stringify(file, null, 2)}\n`);
    return { path, file, ownerId: row.owner_id, organizationId: row.organization_id };
  });
}

async function findRow(sql: AnySql): Promise<BootstrapRow | undefined> {
  const [row] = await sql<BootstrapRow[]>`
    select organization_id, owner_id, admin_id, project_id, voice_agent_id, echo_agent_id, app_id
    from bootstrap`;
  return row;
}

async function createFirst(sql: AnySql, now: Date): Promise<BootstrapRow> {
  const organization = await insertOrganization(sql, "Frontdesk", now);
  const person = { passwordHash: null, verifiedAt: now, now };
  const owner = await insertUser(sql, { ...person, email: ownerEmail, first_name: "Front", last_name: "Desk" });
  const admin = await insertUser(sql, {
    ...person,
    email: adminEmail,
    first_name: "Platform",
    last_name: "Administrator",
    isPlatformAdmin: true,
  });
  await insertMember(sql, organization.id, owner.id, "owner", now);
  const caller: Caller = { userId: owner.id, organizationId: organization.id, role: "owner" };
  const project = await insertProject(sql, caller, { name: "Front desk", description: "Made by the first start" }, now);
  const frontDesk = await insertFirstAgent(sql, caller, now, {
    name: "Front desk",
    description: "Answers questions about a hotel, by rules and with real speech",
    project_id: project.id,
    config: frontDeskConfig,
  });
  const echo = await insertFirstAgent(sql, caller, now, {
    name: "Echo",
    description: "Says back what it hears",
    project_id: project.id,
    config: echoConfig,
  });
  const row: BootstrapRow = {
    organization_id: organization.id,
    owner_id: owner.id,
    admin_id: admin.id,
    project_id: project.id,
    voice_agent_id: frontDesk.id,
    echo_agent_id: echo.id,
    app_id: null,
  };
  await sql`insert into bootstrap ${sql({ ...row, created_at: now })}`;
  return row;
}

function insertFirstAgent(sql: AnySql, caller: Caller, now: Date, agent: NewAgent) {
  const problems = configProblems(agent.config, "config");
  if (problems) throw new Error(`Cannot make agent ${agent.name}: ${JSON.stringify(problems)}`);
  return insertVoiceAgent(sql, caller, agent, now);
}

/**
 * The demo app, made where there is none: databases from before there were apps get it too, and so
 * do those where it was deleted. Undefined when its project is gone.
 */
async function ensureFirstApp(store: { sql: AnySql; appDomain: string }, row: BootstrapRow, now: Date) {
  const { sql } = store;
  const caller: Caller = { userId: row.owner_id, organizationId: row.organization_id, role: "owner" };
  if (row.app_id) return findApp(store, caller, row.app_id);
  const { project_id } = row;
  const [project] = await sql`select 1 from project where id = ${project_id} and deleted_at is null for share`;
  if (!project) return undefined;
  const problems = workflowProblems(frontDeskWorkflow);
  if (Object.keys(problems).length > 0) throw new Error(`Cannot make the demo app: ${JSON.stringify(problems)}`);
  const described = {
    name: "Front desk",
    description: "Answers a guest's question; a person approves what binds the house",
  };
  const workflow = await insertWorkflow(sql, caller, { ...described, project_id, definition: frontDeskWorkflow }, now);
  const policy = { log_io: true };
  const app = await insertApp(store, caller, { ...described, project_id, workflow_id: workflow.id, policy }, now);
  await sql`update bootstrap set app_id = ${app.id}`;
  return app;
}

/** The gateway's port belongs to the host that its apps are asked for by. */
function hostOf(hostname: string, gatewayUrl: string): string {
  const { port } = new URL(gatewayUrl);
  return port ? `${hostname}:${port}` : hostname;
}

type Secrets = Pick<BootstrapFile, "email" | "password" | "pat" | "access_key" | "admin_email" | "admin_password">;

/** New passwords, token and key. Older tokens and keys go on working: somebody may have copied them. */
async function mintSecrets(sql: AnySql, row: BootstrapRow, now: Date): Promise<Secrets> {
  const { organization_id: organizationId, owner_id: userId } = row;
  const owner = await givePassword(sql, row.owner_id, now);
  const admin = await givePassword(sql, row.admin_id, now);
  const pat = await createPersonalAccessToken(sql, { userId, organizationId, name: "Bootstrap", now });
  const { secret } = await createAccessKey(sql, { organizationId, userId, name: "Bootstrap", now });
  return {
    email: owner.email,
    password: owner.password,
    pat,
    access_key: secret,
    admin_email: admin.email,
    admin_password: admin.password,
  };
}

async function givePassword(sql: AnySql, userId: string, now: Date): Promise<{ email: string; password: string }> {
  const password = randomBytes(18).toString("base64url");
  const email = await replacePassword(sql, userId, await hashPassword(password), now);
  return { email, password };
}

/** The file's content when it is whole and its token and key still open this database. */
async function readValidFile(sql: AnySql, path: string, row: BootstrapRow): Promise<Secrets | undefined> {
  const file = await readJsonFile(path);
  if (!file || !isWhole(file) || file.voice_agent_id !== row.voice_agent_id) return undefined;
  const [token] = await sql`
    select 1 from personal_access_token where secret_sha256 = ${sha256Hex(file.pat)} and revoked_at is null`;
  const [key] = await sql`
    select 1 from access_key where secret_sha256 = ${sha256Hex(file.access_key)} and revoked_at is null`;
  return token && key ? file : undefined;
}

async function readJsonFile(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return undefined; // Missing or cut short: it is written anew.
  }
}

function isWhole(file: unknown): file is BootstrapFile {
  const names = ["email", "password", "pat", "access_key", "voice_agent_id", "admin_email", "admin_password"];
  return names.every((name) => typeof (file as Record<string, unknown>)[name] === "string");
}

/** Never half there and never readable by others: written aside, flushed, then renamed. */
async function writePrivateFile(path: string, content: string): Promise<void> {
  const aside = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    const handle = await open(aside, "wx", 0o600);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(aside, path);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}
