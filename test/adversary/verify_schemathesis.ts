/**
 * `npm run verify:schemathesis`: schemathesis (PyPI) sends what each OpenAPI document of a house allows, and
 * what it does not, with real credentials: no 5xx, and each answer's status, content type, headers and body
 * as documented. The house is its own, in a folder of its own, and thrown away.
 *
 *     npm run verify:schemathesis                    about five minutes
 *     npm run verify:schemathesis -- --seconds 60    in short
 *     npm run verify:schemathesis -- --seed 42       the same requests again
 *
 * Needs Python 3. The first run installs schemathesis into `~/.cache/frontdesk-ci`.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startRole } from "#test/kit/role_process.ts";
import { type House, openHouse } from "./attacked_house.ts";
import { gatherCrew, needed, type Secrets } from "./crew.ts";

const version = "4.32.5";
/** Reading a document takes some of them. */
const secondsMin = 15;
const checks = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "unsupported_method",
  "allow_header_conformance",
];

/** A document and whom it is asked as. */
interface Target {
  name: string;
  path: string;
  headers: Record<string, string>;
  /** Of the whole time. */
  share: number;
  /** Of the document's paths, a pattern; absent: all. */
  only?: string;
}

/** Without a LiveKit server there are no rooms, and every answer says so: 503, as documented. */
const withoutRooms = `
[[operations]]
include-path-regex = "/rooms($|/)"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]
`;

const { values: options } = parseArgs({
  options: { seconds: { type: "string", default: "300" }, seed: { type: "string" } },
});
const secondsInAll = Number(options.seconds);
if (!(secondsInAll >= 60)) {
  console.error("Cannot share out the time: expected --seconds of at least 60");
  process.exit(1);
}

const program = installed();
const folder = mkdtempSync(join(tmpdir(), "frontdesk-schemathesis-"));
const dataDir = join(folder, "data");
writeFileSync(join(folder, "schemathesis.toml"), withoutRooms);
const ports = { GATEWAY_PORT: "0", API_PORT: "0", WORKER_PORT: "0", METRICS_PORT: "0" };
const start = startRole("standalone/main.ts", { ...ports, DATA_DIR: dataDir, MEDIA_THREADS: "1" });
const failed: string[] = [];
try {
  await start.until(/Ctrl-C stops it/);
  const house = openHouse(dataDir);
  for (const target of targetsOf(house, (await gatherCrew(house)).own)) {
    if (!(await holds(house, target))) failed.push(target.name);
  }
  await house.close();
} finally {
  await start.stop("SIGINT");
  rmSync(folder, { recursive: true, force: true });
}
console.log(failed.length === 0 ? "Everything held." : `Did not hold: ${failed.join(", ")}.`);
process.exit(failed.length === 0 ? 0 : 1);

/** Those who destroy their own credential, which a random request may do, come last. */
function targetsOf(house: House, { access_key, admin_session, api_key, pat, session }: Secrets): Target[] {
  const bearer = (secret?: string) => ({ authorization: `Bearer ${secret}` });
  const tax = "/openapi/tax.json";
  return [
    {
      name: "an app's host",
      path: "/openapi.json",
      headers: { ...bearer(access_key), host: house.file.app_host },
      share: 0.25,
    },
    { name: "the platform", path: "/openapi.json", headers: bearer(pat), share: 0.3 },
    { name: "administration", path: tax, headers: bearer(admin_session), share: 0.1, only: "/v1/admin/" },
    // Both credentials: routes for people take the session, the others the key.
    { name: "the tax service", path: tax, headers: { ...bearer(session), "x-api-key": api_key ?? "" }, share: 0.35 },
  ];
}

async function holds(house: House, { name, path, headers, share, only }: Target): Promise<boolean> {
  const document = join(folder, "document.json");
  const { host } = headers;
  writeFileSync(document, needed(await house.ask("GET", path, host === undefined ? {} : { host })).text);
  const seconds = Math.max(secondsMin, Math.round(secondsInAll * share));
  console.log(`\n=== ${name}, ${seconds} s`);
  const sent = Object.entries(headers).flatMap(([header, value]) => ["--header", `${header}: ${value}`]);
  const words = [
    ...["--config-file", join(folder, "schemathesis.toml"), "run", document, "--url", house.file.gateway_url, ...sent],
    ...["--max-time", String(seconds), "--checks", checks.join(","), "--request-timeout", "30"],
    ...["--continue-on-failure", "--no-shrink", "--warnings", "off"],
    ...(only === undefined ? [] : ["--include-path-regex", only]),
    ...(options.seed === undefined ? [] : ["--seed", options.seed]),
  ];
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"], cwd: folder });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    process.stdout.write(text);
  });
  const status = await new Promise((resolve) => child.once("close", resolve));
  // What had no time for a single request has shown nothing.
  return status === 0 && /\b\d+ passed\b/.test(said);
}

/** @returns where schemathesis is. @throws Error where Python or the package cannot be had */
function installed(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  const python = join(cache, "frontdesk-ci", `schemathesis-${version}`);
  const found = join(python, "bin", "schemathesis");
  if (existsSync(found)) return found;
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", `schemathesis==${version}`];
  for (const [command, ...words] of [
    ["python3", "-m", "venv", python],
    [join(python, "bin", "python"), ...pip],
  ] as const) {
    const { status } = spawnSync(command, words, { stdio: "inherit" });
    if (status !== 0) {
      rmSync(python, { recursive: true, force: true });
      throw new Error(`Cannot install schemathesis: ${command} ${words.join(" ")} ended with ${status}`);
    }
  }
  return found;
}
