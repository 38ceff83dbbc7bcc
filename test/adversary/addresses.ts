/** Addresses that lead inside, wherever a user may give one: each is refused before anything is dialled. */
import type { Area } from "./attacked_house.ts";

const inside = [
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f.1",
  "0177.0.0.1",
  "①②⑦.⓪.⓪.①",
  "localhost",
  "localhost.",
  "a.localhost",
  "0.0.0.0",
  "10.0.0.1",
  "172.16.0.1",
  "192.168.0.1",
  "100.64.0.1",
  "169.254.169.254",
  "168.63.129.16",
  "metadata.google.internal",
  "printer.local",
  "router",
  "224.0.0.1",
  "255.255.255.255",
  "[::1]",
  "[::]",
  "[::ffff:127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[2002:7f00:1::]",
  "[fe80::1]",
  "[fd00:ec2::254]",
];
const shapes = [
  "user:pass@127.0.0.1",
  "127.0.0.1:80\\@example.com",
  "example.com@127.0.0.1",
  "127.0.0.1%2f.example.com",
];

export const addresses: Area = {
  name: "addresses",
  async attack(house, report) {
    const { file } = house;
    for (const place of [...inside, ...shapes]) {
      const url = `https://${place}/x`;
      const callback = await house.ask("POST", "/", {
        host: file.app_host,
        bearer: file.access_key,
        body: { input: { question: "?" }, execution_mode: "async", callbacks: [{ url }] },
      });
      if (callback.status !== 400) report(`a callback to ${url}: ${callback.status}`);
      const connection = await house.ask("POST", "/v1/connections", {
        bearer: file.pat,
        body: { name: "x", project_id: file.project_id, provider: "openai", base_url: url, secret: "x" },
      });
      if (connection.status !== 400) report(`a connection to ${url}: ${connection.status}`);
      for (const [kind, asked] of [
        ["mcp", { url }],
        ["http", { tool: { name: "x", url } }],
      ] as const) {
        const probe = await house.ask("POST", `/v1/agents/voice/tools/${kind}/test`, {
          bearer: file.pat,
          body: { project_id: file.project_id, ...asked },
        });
        // A probe tells what came of it; that it was refused, not that nobody listened.
        const isRefused = probe.status === 400 || /public|URL/.test(probe.json?.error ?? "");
        if (!isRefused) report(`a probe (${kind}) of ${url}: ${probe.status} ${probe.text.slice(0, 200)}`);
      }
    }
    for (const url of ["file:///etc/passwd", "gopher://example.com/", "ftp://example.com/", "//example.com", "x"]) {
      const body = { input: { question: "?" }, execution_mode: "async", callbacks: [{ url }] };
      const told = await house.ask("POST", "/", { host: file.app_host, bearer: file.access_key, body });
      if (told.status !== 400) report(`a callback to ${url}: ${told.status}`);
    }
  },
};
