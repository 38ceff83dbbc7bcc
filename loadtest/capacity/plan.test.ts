import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { costNames, readCosts } from "./costs.ts";
import { capacityOptions } from "./options.ts";
import { carriedBy, type Demand, headroom, planFor, pods, shortOfSlots } from "./plan.ts";

const costs = readCosts();
const demandOf = (demand: Partial<Demand>): Demand => ({ ...capacityOptions([]).demand, ...nothing, ...demand });
const nothing = { calls: 0, streams: 0, runsPerS: 0 };

describe("the costs", () => {
  it("are all there, each with its day and the command that measures it", () => {
    assert.deepEqual(Object.keys(costs), [...costNames]);
    for (const [name, { value, unit, measured, by }] of Object.entries(costs)) {
      assert.ok(value > 0 && unit.length > 0, name);
      assert.match(measured, /^\d{4}-\d{2}-\d{2}$/, name);
      assert.match(by, /^(npm run (loadtest|capacity) -- |settings? in )/, name);
    }
  });
});

describe("a plan", () => {
  it("has two of everything for nothing at all", () => {
    const { gateway, api, worker, postgres } = planFor(costs, demandOf({}));
    assert.deepEqual([gateway.pods, api.pods, worker.pods], [2, 2, 2]);
    assert.deepEqual([postgres.cores, postgres.gibPerMonth], [0, 0]);
    assert.equal(postgres.connections, 2 * costs.api_connections.value + 2 * costs.worker_connections.value);
  });

  it("keeps 30 % of the slots free", () => {
    const full = pods.gateway.callSlots;
    assert.equal(planFor(costs, demandOf({ calls: 0.7 * 3 * full })).gateway.pods, 3);
    const { gateway } = planFor(costs, demandOf({ calls: 0.7 * 3 * full + 1 }));
    assert.deepEqual([gateway.pods, gateway.because], [4, "call slots"]);
  });

  it("counts pods by the CPU of runs with head-room, and what Postgres keeps of them", () => {
    const runsPerS = 10_000;
    const { worker, postgres } = planFor(costs, demandOf({ runsPerS, eventsPerRun: 100, retentionDays: 2 }));
    assert.equal(worker.pods, Math.ceil((headroom * runsPerS * costs.run_worker_cpu.value) / 1000));
    assert.equal(worker.because, "CPU");
    const bytes = costs.run_storage.value + 100 * costs.event_storage.value;
    assert.ok(Math.abs(postgres.gibKept - (runsPerS * bytes * 2 * 86_400) / 1024 ** 3) < 1e-6);
  });

  it("never lets one process write more than one core to its readers", () => {
    const { gateway } = planFor(costs, demandOf({ streams: 100_000, eventsPerS: 50 }));
    const cores = (100_000 * 50 * costs.delivery_cpu.value) / 1e6;
    assert.ok(gateway.pods >= cores * headroom, `${gateway.pods} pods for ${cores} cores`);
  });

  it("finds the pod that is too small for its slots", () => {
    assert.deepEqual(shortOfSlots(costs, pods.gateway), []);
    assert.match(shortOfSlots(costs, { ...pods.gateway, callSlots: 1000 }).join(), /cores.*MiB/);
  });
});

describe("a machine", () => {
  const small = { cores: 2, memoryGib: 4 };
  const pace = { eventsPerS: 1, vad: "energy" } as const;

  it("carries more when it is larger, less with the costlier detector, and says what bounds it", () => {
    const one = carriedBy(costs, small, pace);
    const two = carriedBy(costs, { cores: 4, memoryGib: 8 }, pace);
    assert.ok(two.calls > one.calls && two.runsPerS > one.runsPerS);
    assert.ok(carriedBy(costs, small, { ...pace, vad: "silero" }).calls < one.calls);
    assert.equal(carriedBy(costs, { cores: 64, memoryGib: 4 }, pace).bounds.calls, "memory");
    assert.equal(one.bounds.calls, "CPU");
  });

  it("carries no calls when the roles alone fill its memory", () => {
    assert.equal(carriedBy(costs, { cores: 2, memoryGib: 1 }, pace).calls, 0);
  });
});

describe("npm run capacity", () => {
  it("refuses what is no number and what it does not know", () => {
    assert.throws(() => capacityOptions(["--calls", "many"]), /--calls/);
    assert.throws(() => capacityOptions(["--gateways", "3"]), /gateways/);
  });
});
