import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { Counter, Registry } from "prom-client";
import { serveMetrics } from "./metrics_listener.ts";

const registryWith = (count: number) => {
  const registry = new Registry();
  new Counter({ name: "things_total", help: "Things", labelNames: ["kind"], registers: [registry] }).inc(
    { kind: "x" },
    count,
  );
  return registry;
};
const host = "127.0.0.1";

describe("the port of figures", () => {
  const open: { close(): Promise<void> }[] = [];
  after(() => Promise.all(open.map((one) => one.close())));
  const serve = async (port: number, isGiven: boolean, roles: Record<string, Registry>) => {
    const listener = await serveMetrics({ host, port, isGiven }, roles);
    open.push(listener);
    return listener.port;
  };
  const ask = (port: number, path: string, method = "GET") => fetch(`http://${host}:${port}${path}`, { method });

  it("tells what one role tells, and of several whose each sample is", async () => {
    const one = await serve(0, true, { api: registryWith(3) });
    assert.match(await (await ask(one, "/metrics")).text(), /^things_total\{kind="x"\} 3$/m);
    const both = await serve(0, true, { api: registryWith(3), worker: registryWith(4) });
    const text = await (await ask(both, "/metrics?x=1")).text();
    assert.match(text, /^things_total\{kind="x",role="api"\} 3\nthings_total\{kind="x",role="worker"\} 4$/m);
    assert.equal(text.match(/# TYPE things_total counter/g)?.length, 1);
  });

  it("serves nothing else", async () => {
    const port = await serve(0, true, { api: registryWith(1) });
    assert.equal((await ask(port, "/")).status, 404);
    const posted = await ask(port, "/metrics", "POST");
    assert.deepEqual([posted.status, posted.headers.get("allow")], [405, "GET, HEAD"]);
  });

  it("steps aside where nobody chose it, and is had or fails where somebody did", async () => {
    const taken = await serve(0, true, { api: registryWith(1) });
    assert.notEqual(await serve(taken, false, { api: registryWith(2) }), taken);
    await assert.rejects(serveMetrics({ host, port: taken, isGiven: true }, {}), { code: "EADDRINUSE" });
  });
});
