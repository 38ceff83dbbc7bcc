import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { eventually } from "#test/kit/gateway_fixture.ts";
import { createSeatPool, type SeatPool, type SeatReport } from "./seat_pool.ts";

/** Nobody listens there: joining fails. */
const nowhere = { url: "ws://127.0.0.1:9", token: "token" };

describe("the processes that sit in rooms", () => {
  let pool: SeatPool;
  let warnings: object[];
  /** Takes connections and says nothing: joining never ends. */
  let silent: Server;
  let others: ReadonlySet<number>;
  before(async () => {
    silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
  });
  after(() => silent.close());
  beforeEach(() => {
    warnings = [];
    others = new Set(childProcesses());
    const log = { info() {}, warn: (fields: object) => warnings.push(fields), error() {} };
    pool = createSeatPool({ log, seatsPerProcess: 2 });
  });
  afterEach(() => pool.close());

  const open = (room = nowhere) => {
    const reports: SeatReport[] = [];
    return { reports, seat: pool.open(room, (report) => reports.push(report)) };
  };
  const seatProcesses = () => childProcesses().filter((pid) => !others.has(pid));

  it("say that a room cannot be joined, and are there for the next", async () => {
    const first = open();
    await eventually(() => first.reports.length > 0, "a report");
    assert.deepEqual(
      first.reports.map(({ kind }) => kind),
      ["failed"],
    );
    const [pid] = seatProcesses();
    const second = open();
    await eventually(() => second.reports.length > 0, "a report");
    assert.deepEqual(seatProcesses(), [pid]);
    assert.deepEqual(warnings, []);
  });

  it("report nothing of a seat that was left", async () => {
    const left = open();
    left.seat.leave();
    const other = open();
    await eventually(() => other.reports.length > 0, "a report");
    assert.deepEqual(left.reports, []);
  });

  it("are as many as their seats need, and one that is killed ends its own seats alone", async () => {
    const quiet = { url: `ws://127.0.0.1:${(silent.address() as AddressInfo).port}`, token: "token" };
    const first = [open(quiet), open(quiet)];
    const [pid = 0] = seatProcesses();
    const third = open();
    assert.equal(seatProcesses().length, 2);
    process.kill(pid, "SIGKILL");
    await eventually(() => first.every(({ reports }) => reports.length > 0), "reports");
    for (const { reports } of first) assert.deepEqual(reports, [{ kind: "ended", reason: "seat_process_lost" }]);
    assert.equal(warnings.length, 1);
    await eventually(() => third.reports.length > 0, "a report");
    assert.deepEqual(
      third.reports.map(({ kind }) => kind),
      ["failed"],
    );
  });

  it("end with the pool", async () => {
    open();
    assert.equal(seatProcesses().length, 1);
    await pool.close();
    assert.deepEqual(seatProcesses(), []);
  });
});

/** Children of this process that live. */
function childProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return state !== "Z" && Number(parent) === process.pid;
      } catch {
        return false; // It has ended meanwhile.
      }
    });
}
