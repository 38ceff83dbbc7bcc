/** The attacker's credentials: the owner's own, one of each kind, and those of a stranger who just signed up. */
import { randomBytes } from "node:crypto";
import type { House, Told } from "./attacked_house.ts";
import type { CredentialKind } from "./authorization_matrix.ts";

export type Secrets = Readonly<Partial<Record<CredentialKind, string>>>;

export interface Crew {
  own: Secrets;
  stranger: Secrets;
}

export async function gatherCrew(house: House): Promise<Crew> {
  const { file } = house;
  const session = await signIn(house, file.email, file.password);
  const admin_session = await signIn(house, file.admin_email, file.admin_password);
  const open = async (bearer: string) => {
    const { json } = await house.ask("GET", "/v1/orgs/me", { bearer });
    const body = { api_access_enabled: true };
    needed(await house.ask("PATCH", `/v1/admin/organizations/${json.id}`, { bearer: admin_session, body }));
    return needed(await house.ask("POST", "/v1/api-keys", { bearer, body: { name: "adversary" } })).json.api_key;
  };
  const stranger = await signUp(house);
  const pat = needed(
    await house.ask("POST", "/v1/personal-access-tokens", { bearer: stranger, body: { name: "mine" } }),
  ).json.token;
  const key = await house.ask("POST", "/v1/access-keys", { bearer: pat, body: { name: "mine" } });
  return {
    own: {
      nonsense: "nonsense",
      pat: file.pat,
      access_key: file.access_key,
      session,
      admin_session,
      api_key: await open(session),
    },
    stranger: { pat, access_key: needed(key).json.data.secret, session: stranger, api_key: await open(stranger) },
  };
}

/** @returns the session of somebody new with an organization of their own */
export async function signUp(house: House): Promise<string> {
  const body = {
    email: `${randomBytes(8).toString("hex")}@adversary.example`,
    password: randomBytes(16).toString("hex"),
  };
  return needed(await house.ask("POST", "/v1/auth/signup", { body })).json.access_token;
}

async function signIn(house: House, email: string, password: string): Promise<string> {
  return needed(await house.ask("POST", "/v1/auth/login", { body: { email, password } })).json.access_token;
}

/** @throws Error where what every attack begins with does not work */
export function needed(told: Told): Told {
  if (told.status >= 300) throw new Error(`Cannot begin: ${told.status} ${told.text.slice(0, 300)}`);
  return told;
}

/** @returns the app's Host */
export async function deployApp(house: House, name: string, definition: object, policy: object = {}): Promise<string> {
  const { pat: bearer, project_id } = house.file;
  const workflow = needed(await house.ask("POST", "/v1/workflows", { bearer, body: { name, project_id, definition } }));
  const body = { name, project_id, workflow_id: workflow.json.data.id, policy };
  return needed(await house.ask("POST", "/v1/apps", { bearer, body })).json.data.hostname;
}
