/**
 * Which service a request is for, by its Host and its path: the one table, for gateway and api alike.
 *
 *     Host                     path form             service
 *     <label>.<APP_DOMAIN>     /-/apps/<label>/…     app: the Runs API of the app with this label
 *     <label>.kb.…             /-/kb/<label>/…       knowledge_base
 *     router.…                 /-/router/…           router: language models behind one address
 *     collector.…              /-/collector/…        collector: traces of other programs
 *     api.… and any other                            accounts and tax by their paths, else platform
 *
 * A path form means the same as its host and takes the same credentials. It is for clients that do not
 * resolve `*.localhost`: browsers and curl do, Node and Python do not. Hosts go before path forms.
 */

export type Service = "app" | "knowledge_base" | "router" | "collector" | "accounts" | "tax" | "platform";

export interface Destination {
  service: Service;
  /** Of an app or a knowledge base: the first part of its host's name. */
  label?: string;
  /** The path at that service: without what makes it a path form. */
  path: string;
}

const servicesWithLabel = { apps: "app", kb: "knowledge_base" } as const;

/** First parts of paths below `/v1` of the services whose errors are `{detail}`. */
const accountsPaths = ["auth", "orgs", "api-keys", "personal-access-tokens", "admin"];
const taxPaths = [
  ...["jurisdictions", "coverage", "tax", "addresses", "bookings", "recheck-reports", "law-changes"],
  ...["invoices", "issuers", "liability"],
];

const accountsPath = new RegExp(`^/(v1/(${accountsPaths.join("|")})|account)(/|$)`);
const taxPath = new RegExp(`^/(v1/(${taxPaths.join("|")})|openapi/tax\\.json)(/|$)`);
const labelledPath = /^\/-\/(apps|kb)\/([a-zA-Z0-9-]{1,63})(\/.*)?$/;
const plainPath = /^\/-\/(router|collector)(\/.*)?$/;

/** @param host as the header has it, port included; undefined for none. @param path without the query */
export function destinationOf(host: string | undefined, path: string, appDomain: string): Destination {
  return byHost(host ?? "", path, appDomain) ?? byPathForm(path) ?? { service: servicePath(path), path };
}

/** Whether every path there is the api's: the gateway's own pages and sockets are elsewhere. */
export function isApisAlone({ service }: Destination): boolean {
  return service === "app" || service === "knowledge_base" || service === "router" || service === "collector";
}

/** `front-desk-k3x9q2` as `/-/apps/front-desk-k3x9q2`: where an app is served besides its host. */
export function appPathOf(label: string): string {
  return `/-/apps/${label}`;
}

/** Where the traces collector is served besides its host. */
export const collectorPath = "/-/collector";

function byHost(host: string, path: string, appDomain: string): Destination | undefined {
  const name = host.toLowerCase().replace(/:\d+$/, "");
  const suffix = `.${appDomain.toLowerCase()}`;
  if (name.endsWith(suffix)) return { service: "app", label: name.slice(0, -suffix.length), path };
  const [first = "", second] = name.split(".", 2);
  if (second === "kb" && name.length > `${first}.kb.`.length) return { service: "knowledge_base", label: first, path };
  if (first === "router" || first === "collector") return second === undefined ? undefined : { service: first, path };
  return undefined;
}

function byPathForm(path: string): Destination | undefined {
  const [, kind, label = "", ofLabel = "/"] = labelledPath.exec(path) ?? [];
  if (kind) {
    const service = servicesWithLabel[kind as keyof typeof servicesWithLabel];
    return { service, label: label.toLowerCase(), path: ofLabel };
  }
  const [, service, rest = "/"] = plainPath.exec(path) ?? [];
  return service ? { service: service as "router" | "collector", path: rest } : undefined;
}

function servicePath(path: string): Service {
  if (accountsPath.test(path)) return "accounts";
  return taxPath.test(path) ? "tax" : "platform";
}
