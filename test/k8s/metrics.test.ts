/** Alerts, scalers and dashboards: each fires and is silent as it should, and names what a role tells. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse, stringify } from "yaml";
import { startApi } from "#api/process/server.ts";
import { silentLogger } from "#http/logger.ts";
import { type ApiHarness, appConfig, openApiHarness, startTestWorker } from "#test/kit/api_harness.ts";
import { startTestGateway } from "#test/kit/gateway_fixture.ts";
import { k8sFolder, type Manifest, noPromtool } from "#test/kit/k8s/k8s_manifests.ts";

const monitoring = join(k8sFolder, "components", "monitoring");
const rulesOf = (): Manifest => parse(readFileSync(join(monitoring, "rules.yaml"), "utf8")).spec;
const casesOf = (): Manifest => parse(readFileSync(join(monitoring, "rules_test.yaml"), "utf8"));

/** Told by others than us, each by whom. */
const foreign: Readonly<Record<string, string>> = {
  kubelet_volume_stats_available_bytes: "the kubelet",
  cnpg_collector_last_available_backup_timestamp: "CloudNativePG",
  certmanager_certificate_expiration_timestamp_seconds: "cert-manager",
};

describe("alerts", { skip: noPromtool }, () => {
  /** What promtool says of these rules under these cases. */
  function promtool(rules: Manifest, cases: Manifest): { status: number | null; output: string } {
    const folder = mkdtempSync(join(tmpdir(), "frontdesk-rules-"));
    try {
      writeFileSync(join(folder, "rules.groups.yaml"), stringify(rules));
      writeFileSync(join(folder, "rules_test.yaml"), stringify(cases));
      const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", "rules_test.yaml"], {
        cwd: folder,
        encoding: "utf8",
      });
      return { status, output: stdout + stderr };
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  it("fire and are silent as their cases say", () => {
    const { status, output } = promtool(rulesOf(), casesOf());
    assert.equal(status, 0, output);
  });

  it("have a case that fires and one that does not each, and say what to do", () => {
    const cases = casesOf().tests.flatMap((test: Manifest) => test.alert_rule_test);
    for (const { rules } of rulesOf().groups) {
      for (const { alert, annotations, labels } of rules) {
        const fires = cases.filter(({ alertname }: Manifest) => alertname === alert);
        const counts = fires.map(({ exp_alerts }: Manifest) => exp_alerts.length > 0).sort();
        assert.deepEqual(counts, [false, true], alert);
        assert.match(labels.severity, /^(critical|warning)$/);
        assert.ok(annotations.summary && annotations.runbook, alert);
      }
    }
  });

  it("fail their cases when they never fire", () => {
    const rules = rulesOf();
    const alerts = rules.groups.flatMap((group: Manifest) => group.rules);
    for (const rule of alerts) rule.expr = "vector(0) > 1";
    const { tests, ...rest } = casesOf();
    const firing = tests.filter(({ alert_rule_test: [{ exp_alerts }] }: Manifest) => exp_alerts.length > 0);
    const { status, output } = promtool(rules, { ...rest, tests: firing });
    assert.equal(status, 1);
    for (const { alert } of alerts) assert.match(output, new RegExp(`alertname: ${alert},`));
  });

  it("fail their cases when they always fire", () => {
    const rules = rulesOf();
    const alerts = rules.groups.flatMap((group: Manifest) => group.rules);
    for (const rule of alerts) Object.assign(rule, { expr: "vector(1)", for: "0s" });
    const { tests, ...rest } = casesOf();
    const silent = tests.filter(({ alert_rule_test: [{ exp_alerts }] }: Manifest) => exp_alerts.length === 0);
    const { status, output } = promtool(rules, { ...rest, tests: silent });
    assert.equal(status, 1);
    for (const { alert } of alerts) assert.match(output, new RegExp(`alertname: ${alert},`));
  });
});

/** Names of metrics in an expression of PromQL: what is neither a function, a keyword nor a label. */
function metricsIn(expression: string): string[] {
  const bare = expression
    .replaceAll(/"[^"]*"/g, "")
    .replaceAll(/\{[^}]*\}/g, "")
    .replaceAll(/\b(by|without|on|ignoring)\s*\([^)]*\)/g, "");
  return [...bare.matchAll(/[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?!\w*\()/g)]
    .map(([name]) => name)
    .filter((name) => !/^(histogram_quantile|predict_linear)$/.test(name));
}

describe("the metrics that alerts, scalers and dashboards name", () => {
  let api: ApiHarness;
  const told = new Set<string>();
  const closers: (() => Promise<void>)[] = [];

  before(async () => {
    api = await openApiHarness();
    closers.push(() => api.close());
    const config = { ...appConfig, bindAddress: "127.0.0.1", apiPort: 0 };
    const server = await startApi({ config, sql: api.productSql, bus: api.bus, logger: silentLogger });
    closers.unshift(() => server.close());
    const worker = await startTestWorker(api);
    closers.unshift(() => worker.close());
    const gateway = await startTestGateway({ transport: "ws", bus: api.bus });
    closers.unshift(() => gateway.stop());
    for (const { metrics } of [server, worker, gateway.gateway]) {
      const text = await metrics.metrics();
      for (const [, name = "", type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
        told.add(name);
        if (type === "histogram") for (const part of ["bucket", "count", "sum"]) told.add(`${name}_${part}`);
      }
    }
  });
  after(async () => {
    for (const close of closers) await close();
  });

  const unknownIn = (expressions: readonly string[]) =>
    [...new Set(expressions.flatMap(metricsIn))].filter((name) => !told.has(name) && !foreign[name]);

  it("are told by a role that runs", () => {
    const alerts = rulesOf().groups.flatMap(({ rules }: Manifest) => rules.map(({ expr }: Manifest) => expr));
    const scalers = ["gateway", "worker"].flatMap((name) => {
      const { spec } = parse(readFileSync(join(k8sFolder, "components", "keda", `${name}.yaml`), "utf8"));
      return spec.triggers.map(({ metadata }: Manifest) => metadata.query);
    });
    const folder = join(monitoring, "dashboards");
    const panels = readdirSync(folder).flatMap((file) =>
      JSON.parse(readFileSync(join(folder, file), "utf8")).panels.flatMap(({ targets }: Manifest) =>
        targets.map(({ expr }: Manifest) => expr),
      ),
    );
    for (const expressions of [alerts, scalers, panels]) {
      assert.ok(expressions.flatMap(metricsIn).length > 1);
      assert.deepEqual(unknownIn(expressions), []);
    }
  });

  it("are missed when nobody tells them", () => {
    assert.deepEqual(unknownIn(["sum(rate(frontdesk_calls_lost_total[5m])) by (pod) > 0"]), [
      "frontdesk_calls_lost_total",
    ]);
  });
});
