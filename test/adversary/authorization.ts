/** The matrix, cell by cell: each operation with each kind of credential, and with the right kind of another organization. */
import type { Area, Asked, House, Told } from "./attacked_house.ts";
import {
  type Access,
  accesses,
  type CredentialKind,
  credentialKinds,
  type DocumentName,
  matrix,
} from "./authorization_matrix.ts";
import { type Crew, gatherCrew } from "./crew.ts";

const nobodys = "00000000-0000-4000-8000-00000000dead";

export const authorization: Area = {
  name: "authorization",
  async attack(house, report) {
    const crew = await gatherCrew(house);
    const ids = await idsOf(house);
    for (const [document, operations] of Object.entries(matrix)) {
      const host = hostOf(document as DocumentName, house);
      for (const [operation, access] of Object.entries(operations)) {
        const [method = "", path = ""] = operation.split(" ");
        const send = (headers: Record<string, string>) =>
          house.ask(method, pathWith(path, ids), { headers, ...(host && { host }), ...bodyFor(method) });
        for (const kind of credentialKinds) {
          if (isOpenTo(access, kind)) continue;
          const told = await send(headersFor(kind, crew.own[kind]));
          if (!isRefusal(told, kind)) report(`${operation} with ${kind}: ${told.status} ${told.text.slice(0, 200)}`);
        }
        if (access !== "anybody") await tryAsStranger(operation, access, send, crew, ids, report);
      }
    }
  },
};

/** Undefined for the house's own. */
function hostOf(document: DocumentName, { file }: House): string | undefined {
  if (document.startsWith("an app")) return file.app_host;
  return document.startsWith("the collector") ? "collector.localhost" : undefined;
}

function isOpenTo(access: Access, kind: CredentialKind): boolean {
  return (accesses[access] as readonly CredentialKind[]).includes(kind);
}

/** A good key in the wrong place is told so (403); where both services could be meant a resource may be unknown. */
function isRefusal({ status, headers }: Told, kind: CredentialKind): boolean {
  if (status === 401) return headers["www-authenticate"] !== undefined;
  return (
    (status === 403 && kind !== "nothing" && kind !== "nonsense") ||
    (status === 503 && headers["retry-after"] !== undefined)
  );
}

/** The right kind of credential, of somebody else: what is named does not exist, and lists show nothing. */
async function tryAsStranger(
  operation: string,
  access: Access,
  send: (headers: Record<string, string>) => Promise<Told>,
  crew: Crew,
  ids: Readonly<Record<string, string>>,
  report: (what: string) => void,
): Promise<void> {
  for (const kind of credentialKinds) {
    const secret = crew.stranger[kind];
    if (!isOpenTo(access, kind) || secret === undefined) continue;
    const told = await send(headersFor(kind, secret));
    if (told.status >= 500) report(`${operation} as a stranger's ${kind}: ${told.status}`);
    const shown = Object.entries(ids).find(([, id]) => told.status < 300 && told.text.includes(id));
    if (shown) report(`${operation} shows a stranger's ${kind} our ${shown[0]}`);
    if (operation.includes("{") && told.status < 300) report(`${operation} as a stranger's ${kind}: ${told.status}`);
  }
}

function headersFor(kind: CredentialKind, secret: string | undefined): Record<string, string> {
  if (kind === "nothing" || secret === undefined) return {};
  return kind === "api_key" ? { "x-api-key": secret } : { authorization: `Bearer ${secret}` };
}

/** Something that each operation may refuse for its own reasons: credentials come first. */
function bodyFor(method: string): Asked {
  return ["GET", "DELETE"].includes(method) ? {} : { body: {} };
}

function pathWith(path: string, ids: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? (name === "key_id" ? "1" : nobodys));
}

/** What the owner has, by the name of the path parameter. */
async function idsOf(house: House): Promise<Record<string, string>> {
  const { file } = house;
  const first = async (path: string, asked: Asked): Promise<string | undefined> =>
    (await house.ask("GET", path, asked)).json?.data?.[0]?.id;
  const bearer = file.pat;
  const run = await house.ask("POST", "/v1/runs", {
    host: file.app_host,
    bearer: file.access_key,
    body: { background: true, input: { question: "When is breakfast?" } },
  });
  const found: Record<string, string | undefined> = {
    project_id: file.project_id,
    agent_id: file.voice_agent_id,
    app_id: file.app_id,
    workflow_id: await first("/v1/workflows", { bearer }),
    access_key_id: await first("/v1/access-keys", { bearer }),
    call_id: await first("/v1/agents/voice/calls", { bearer }),
    run_id: run.json?.data?.id,
  };
  return Object.fromEntries(Object.entries(found).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
