/** Secrets in what the house says: in answers to all attacks so far, in lists and records, in errors, in its log. */
import type { Area, House } from "./attacked_house.ts";
import { gatherCrew, needed } from "./crew.ts";

/** Routes that show a secret once, as what they are for. */
const showsOnce =
  /^POST \/v1\/(auth\/(signup|login)|api-keys|personal-access-tokens|access-keys|connect\/tokens|sign-in-links)/;

/** @param log what the house has written so far, empty where nobody kept it */
export function secretsArea(log: () => string): Area {
  return {
    name: "secrets",
    async attack(house, report) {
      const { file } = house;
      const { own } = await gatherCrew(house);
      const connectionSecret = `planted-${crypto.randomUUID()}`;
      const body = { name: "planted", project_id: file.project_id, provider: "openai", secret: connectionSecret };
      needed(await house.ask("POST", "/v1/connections", { bearer: file.pat, body }));
      const cardNumber = "4111111111111111";
      const headers = { "x-api-key": own.api_key ?? "" };
      await house.ask("POST", "/v1/tax/calculate", {
        headers,
        body: { pin: "planted-pin", pwd: "planted-pwd", notes: cardNumber },
      });

      await readAround(house, own.session ?? "");
      const requestLog = await house.ask("GET", "/v1/orgs/me/request-log", { bearer: own.session ?? "" });
      for (const planted of ["planted-pin", "planted-pwd", cardNumber]) {
        if (requestLog.text.includes(planted)) report(`the request log keeps ${planted}`);
      }
      const secrets: Record<string, string | undefined> = {
        password: file.password,
        "administrator's password": file.admin_password,
        "personal access token": file.pat,
        "access key": file.access_key,
        "API key": own.api_key,
        session: own.session,
        "connection's secret": connectionSecret,
      };
      const said = house.answers.filter(({ asked }) => !showsOnce.test(asked));
      const kept = log();
      for (const [name, secret] of Object.entries(secrets)) {
        if (secret === undefined) continue;
        const shown = said.find(({ text }) => text.includes(secret));
        if (shown) report(`${shown.asked} shows the ${name}`);
        if (kept.includes(secret)) report(`the log holds the ${name}`);
      }
      const stack = said.find(({ text }) => /\bat .*\.ts:\d+|node_modules|SELECT .* FROM/.test(text));
      if (stack) report(`${stack.asked} tells of the inside: ${stack.text.slice(0, 200)}`);
    },
  };
}

/** Whatever lists and records there are, and errors that could echo what was sent. */
async function readAround(house: House, session: string): Promise<void> {
  const { file } = house;
  const lists = [
    "access-keys",
    "connections",
    "apps",
    "workflows",
    "projects",
    "agents/voice/agents",
    "agents/voice/calls",
  ];
  for (const list of lists) await house.ask("GET", `/v1/${list}?page_size=100`, { bearer: file.pat });
  for (const path of ["/v1/api-keys", "/v1/personal-access-tokens", "/v1/auth/me", "/v1/orgs/me"]) {
    await house.ask("GET", path, { bearer: session });
  }
  await house.ask("GET", "/v1/runs?page_size=100", { host: file.app_host, bearer: file.access_key });
  for (const bearer of [file.pat, file.access_key, session]) {
    await house.ask("POST", "/v1/projects", { bearer, body: "{" });
    await house.ask("GET", "/v1/bookings/x", { bearer });
    await house.ask("GET", "/v1/runs/x", { host: file.app_host, bearer });
  }
}
