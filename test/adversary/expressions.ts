/** Workflows that cost more than they may: refused when deployed, or failed within seconds while others' runs finish. */
import type { Area, House } from "./attacked_house.ts";
import { deployApp } from "./crew.ts";

const failsWithinMs = 10_000;
const pollMs = 200;
const many = Array.from({ length: 300 }, (_, i) => ({ i, inner: Array.from({ length: 30 }, (_, k) => k) }));

type Node = Record<string, unknown>;
const through = (...middle: Node[]) => ({
  schema_version: 1,
  nodes: [{ id: "in", type: "input" }, ...middle, { id: "out", type: "output", inputs: { done: true } }],
  edges: [...[...middle.map(({ id }) => id), "out"].map((to, i) => ({ from: i === 0 ? "in" : middle[i - 1]?.id, to }))],
});
const template = (text: string, reference = "$.input.rows") =>
  through({ id: "t", type: "template", config: { template: text }, inputs: { rows: reference } });
const reference = (path: string) => through({ id: "t", type: "transform", config: { map: { value: path } } });

const hostile: Readonly<Record<string, object>> = {
  "descendants of descendants": reference("$.input..*..*..*"),
  "wildcards of wildcards": reference("$.input.rows[*][*][*]..*"),
  "a filter over everything": reference("$.input..[?@.i > 0 && count(@..*) > 1]"),
  "sections in sections": template("{{#rows}}{{#rows}}{{#rows}}{{#rows}}x{{/rows}}{{/rows}}{{/rows}}{{/rows}}"),
  "a section that repeats the whole": template("{{#rows}}{{rows}}{{#rows}}{{rows}}{{/rows}}{{/rows}}"),
  "a pattern that backtracks": reference("$.input.rows[?match(@.i, '(a+)+(b+)+$')]"),
};

export const expressions: Area = {
  name: "expressions",
  async attack(house, report) {
    const harmless = await deployApp(house, "harmless", reference("$.input.rows[0].i"));
    // What is refused below is refused for its cost: the same form is taken.
    await deployApp(house, "a small template", template("{{#rows}}{{i}}{{/rows}}"));
    for (const [name, definition] of Object.entries(hostile)) {
      const { pat: bearer, project_id } = house.file;
      const created = await house.ask("POST", "/v1/workflows", { bearer, body: { name, project_id, definition } });
      if (created.status === 400) continue;
      if (created.status !== 201) {
        report(`${name}: saving it answers ${created.status}`);
        continue;
      }
      const host = await deployApp(house, name, definition);
      const [worst, other] = await Promise.all([runToEnd(house, host), runToEnd(house, harmless)]);
      if (worst.tookMs > failsWithinMs) report(`${name}: ${worst.status} after ${worst.tookMs} ms`);
      if (other.status !== "succeeded") report(`${name}: another run beside it is ${other.status}`);
      if (other.tookMs > failsWithinMs) report(`${name}: another run beside it takes ${other.tookMs} ms`);
    }
  },
};

async function runToEnd(house: House, host: string): Promise<{ status: string; tookMs: number }> {
  const startedMs = performance.now();
  const took = () => Math.round(performance.now() - startedMs);
  const asked = { host, bearer: house.file.access_key };
  const { json } = await house.ask("POST", "/v1/runs", { ...asked, body: { background: true, input: { rows: many } } });
  const id = json?.data?.id;
  for (let status = "unknown"; ; ) {
    const read = await house.ask("GET", `/v1/runs/${id}`, asked);
    status = read.json?.data?.status ?? `answered with ${read.status}`;
    if (["succeeded", "failed", "canceled"].includes(status) || took() > 2 * failsWithinMs)
      return { status, tookMs: took() };
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
