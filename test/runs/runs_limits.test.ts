/** What an app bounds, seen from its host: waiting, places, sessions, time, sizes, and how long runs are kept. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { runLimits } from "#contracts/run_event.ts";
import { silentLogger } from "#http/logger.ts";
import { purgeRuns } from "#runs/run_sweeper.ts";
import { type ApiHarness, openApiHarness, startTestWorker } from "#test/kit/api_harness.ts";
import { type AppClient, answering, approving, eventually, openAppClient } from "#test/kit/app_client.ts";

/** `in → pause → out`. */
const pausing = (seconds: number) => ({
  schema_version: 1,
  nodes: [
    { id: "in", type: "input" },
    { id: "pause", type: "delay", config: { seconds } },
    { id: "out", type: "output", inputs: { done: "yes" } },
  ],
  edges: [
    { from: "in", to: "pause" },
    { from: "pause", to: "out" },
  ],
});

/** Never says anything: works until it is stopped. */
const hanging = structuredClone(answering);
Object.assign(hanging.nodes[1]?.config ?? {}, { options: { hang_on: [1] } });

/** Two questions side by side. */
const askingTwice = {
  schema_version: 1,
  nodes: [
    { id: "in", type: "input" },
    { id: "one", type: "approval", config: { prompt: "One?" } },
    {
      id: "two",
      type: "feedback",
      config: {
        prompt: "Two?",
        response_schema: { type: "object", properties: { stars: { type: "integer", required: true } } },
      },
    },
    { id: "out", type: "output", inputs: { stars: "$.nodes.two.output.feedback.stars" } },
  ],
  edges: [
    { from: "in", to: "one" },
    { from: "in", to: "two" },
    { from: "one", to: "out", handle: "approved" },
    { from: "two", to: "out" },
  ],
};

describe("the bounds of an app", () => {
  let api: ApiHarness;
  let client: AppClient;
  let worker: { close(): Promise<void> };

  before(async () => {
    api = await openApiHarness(silentLogger, { syncWaitMs: 100 });
    client = await openAppClient(api);
    worker = await startTestWorker(api);
  });
  after(async () => {
    await worker.close();
    await api.close();
  });

  const start = (host: string, body: object = {}) =>
    client.call(host, "POST", "/v1/runs", { body: { input: { question: "?" }, ...body } });
  const startInBackground = (host: string, body: object = {}) => start(host, { background: true, ...body });

  describe("waiting", () => {
    it("answers 202 once the wait is over, and the run is followed to its end", async () => {
      const { host } = await client.deploy(pausing(1));
      const { status, body } = await start(host);
      assert.equal(status, 202);
      assert.match(body.data.status, /^(pending|running)$/);
      const run = await client.until(host, body.data.id, "succeeded");
      assert.deepEqual(run.output, { done: "yes" });
      const events = await client.call(
        host,
        "GET",
        `/v1/runs/${run.id}/events?starting_after=${run.last_event_id - 1}`,
      );
      assert.deepEqual(
        events.body.data.map(({ type }: { type: string }) => type),
        ["run.succeeded"],
      );
    });

    it("answers an invocation with 202 and the run, when it takes longer and when it asks", async () => {
      for (const [definition, expected, then] of [
        [pausing(1), /^(pending|running)$/, "succeeded"],
        // On a busy machine the wait may be over before the run has come to its question.
        [approving, /^(pending|running|awaiting_input)$/, "awaiting_input"],
      ] as const) {
        const { host } = await client.deploy(definition);
        const { status, body } = await client.call(host, "POST", "/", { body: { question: "?" } });
        assert.equal(status, 202);
        assert.match(body.data.status, expected);
        await client.until(host, body.data.id, then);
      }
    });
  });

  describe("places", () => {
    it("runs no more at once than it may, and those that wait for a person take no place", async () => {
      const { host } = await client.deploy(pausing(0.5), { policy: { max_concurrent_runs: 1 } });
      const ids = (await Promise.all([1, 2, 3].map(() => startInBackground(host)))).map(({ body }) => body.data.id);
      const runs = await Promise.all(ids.map((id) => client.until(host, id, "succeeded")));
      runs.sort((a, b) => a.started_at.localeCompare(b.started_at));
      for (const [i, run] of runs.entries()) {
        const earlier = runs[i - 1];
        if (earlier) assert.ok(run.started_at >= earlier.ended_at, `${run.started_at} before ${earlier.ended_at}`);
      }

      const asking = await client.deploy(approving, { policy: { max_concurrent_runs: 1 } });
      for (let i = 0; i < 3; i += 1) {
        const { body } = await startInBackground(asking.host);
        await client.until(asking.host, body.data.id, "awaiting_input");
      }
    });

    it("refuses what its queue does not hold, however many ask at once", async () => {
      const { host } = await client.deploy(hanging, { policy: { max_concurrent_runs: 1, max_queued_runs: 2 } });
      const running = (await startInBackground(host)).body.data.id;
      await client.until(host, running, "running");
      const answers = await Promise.all(Array.from({ length: 6 }, () => startInBackground(host)));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 202, 429, 429, 429, 429]);
      const refused = answers.find(({ status }) => status === 429);
      assert.equal(refused?.body.error.code, "too_many_requests");
      assert.match(refused?.body.error.details.app, /fewer than 2 queued runs/);
      assert.equal(refused?.headers.get("retry-after"), "1");
    });

    it("refuses everything beyond its places where nothing may wait", async () => {
      const { host } = await client.deploy(hanging, { policy: { max_concurrent_runs: 2, max_queued_runs: 0 } });
      const answers = await Promise.all(Array.from({ length: 5 }, () => startInBackground(host)));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 202, 429, 429, 429]);
      const one = answers.find(({ status }) => status === 202)?.body.data.id;
      await client.until(host, one, "running");
      await client.call(host, "POST", `/v1/runs/${one}/cancel`, { body: {} });
      assert.equal((await startInBackground(host)).status, 202);
    });
  });

  describe("sessions", () => {
    const inSession = (host: string) => startInBackground(host, { session_id: "s" });

    it("let one of several begin where others are refused", async () => {
      const { host } = await client.deploy(approving, { policy: { session_policy: "reject" } });
      const answers = await Promise.all([1, 2, 3, 4].map(() => inSession(host)));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 409, 409, 409]);
      const refused = answers.find(({ status }) => status === 409);
      assert.equal(refused?.body.error.code, "conflict");
      assert.match(refused?.body.error.details.session_id, /without a run under way/);
      assert.equal((await startInBackground(host, { session_id: "another" })).status, 202);
      assert.equal((await startInBackground(host)).status, 202);
    });

    it("leave the newest of several where it cancels the others", async () => {
      const { host } = await client.deploy(approving, { policy: { session_policy: "cancel_previous" } });
      const answers = await Promise.all([1, 2, 3, 4].map(() => inSession(host)));
      assert.ok(answers.every(({ status }) => status === 202));
      const statuses = async (): Promise<string[]> => {
        const { body } = await client.call(host, "GET", "/v1/runs?session_id=s");
        return body.data.map(({ status }: { status: string }) => status).sort();
      };
      await eventually(
        async () => (await statuses()).join() === "awaiting_input,canceled,canceled,canceled",
        "one run is left",
      );
    });

    it("follow each other in the order of their beginning where they queue", async () => {
      const { host } = await client.deploy(pausing(0.1), { policy: { session_policy: "enqueue" } });
      const ids: string[] = [];
      for (let i = 0; i < 3; i += 1) ids.push((await inSession(host)).body.data.id);
      const runs = await Promise.all(ids.map((id) => client.until(host, id, "succeeded")));
      assert.ok(runs[1].started_at >= runs[0].ended_at && runs[2].started_at >= runs[1].ended_at);
    });
  });

  describe("time", () => {
    it("ends a run that works longer than it may: its own time, at most the app's", async () => {
      const { host } = await client.deploy(hanging, { policy: { run_timeout_s: 1.5 } });
      const [own, capped] = await Promise.all([
        startInBackground(host, { timeout_s: 1 }),
        startInBackground(host, { timeout_s: 3600 }),
      ]);
      for (const [started, seconds] of [
        [own, "1"],
        [capped, "1.5"],
      ] as const) {
        const run = await client.until(host, started?.body.data.id, "failed");
        assert.equal(run.error.code, "run_timeout");
        assert.match(run.error.message, new RegExp(`longer than ${seconds} s$`));
      }
      const refused = await startInBackground(host, { timeout_s: 0.5 });
      assert.deepEqual([refused.status, Object.keys(refused.body.error.details)], [400, ["timeout_s"]]);
    });

    it("keeps ended runs for as many days as the app says, and waiting ones for as long as they wait", async () => {
      const { host } = await client.deploy(approving, { policy: { retention_days: 2 } });
      const [ended, waiting] = [(await start(host)).body.data.id, (await start(host)).body.data.id];
      await client.until(host, ended, "awaiting_input");
      await client.until(host, waiting, "awaiting_input");
      await client.call(host, "POST", `/v1/runs/${ended}/cancel`, { body: {} });
      const statuses = async () =>
        Promise.all(
          [`/v1/runs/${ended}`, `/v1/runs/${ended}/events`, `/v1/runs/${waiting}`].map(
            async (path) => (await client.call(host, "GET", path)).status,
          ),
        );
      const inDays = (days: number) => ({ sql: api.sql, now: () => new Date(Date.now() + days * 86_400_000) });
      await purgeRuns(inDays(1.9));
      assert.deepEqual(await statuses(), [200, 200, 200]);
      await purgeRuns(inDays(2.1));
      assert.deepEqual(await statuses(), [404, 404, 200]);
      const rows = await api.sql`select 1 from run_event where run_id = ${ended} limit 1`;
      assert.equal(rows.length, 0);
    });
  });

  describe("sizes", () => {
    const text = (bytes: number) => "x".repeat(bytes);
    const wrapping = Buffer.byteLength(JSON.stringify({ question: "" }));

    it("takes an input as large as an event, and refuses a larger one by name", async () => {
      const { host } = await client.deploy({
        schema_version: 1,
        nodes: [
          { id: "in", type: "input" },
          { id: "out", type: "output", inputs: { done: "yes" } },
        ],
        edges: [{ from: "in", to: "out" }],
      });
      const post = (path: string, question: string) =>
        client.call(host, "POST", path, { body: { input: { question }, ...(path !== "/" && { background: true }) } });
      const largest = text(runLimits.eventBytesMax - wrapping);
      const taken = await post("/v1/runs", largest);
      assert.equal(taken.status, 202);
      await client.until(host, taken.body.data.id, "succeeded");
      for (const path of ["/v1/runs", "/"]) {
        const { status, body } = await post(path, `${largest}y`);
        assert.deepEqual(
          [status, body.error.code, Object.keys(body.error.details)],
          [413, "payload_too_large", ["input"]],
        );
        const enormous = await post(path, text(10_000_000));
        assert.deepEqual([enormous.status, Object.keys(enormous.body.error.details)], [413, ["body"]]);
      }
    });

    it("refuses an answer that no event could hold, and takes the next one", async () => {
      const { host } = await client.deploy(approving);
      const { body } = await client.call(host, "POST", "/v1/runs", { body: { input: { question: "?" } } });
      const run = await client.until(host, body.data.id, "awaiting_input");
      const answer = (words: string) =>
        client.call(host, "POST", `/v1/runs/${run.id}/resume`, {
          body: {
            responses: [{ input_request_id: run.input_requests[0].id, decision: "approve", params: { text: words } }],
          },
        });
      const refused = await answer(text(runLimits.eventBytesMax));
      assert.deepEqual([refused.status, Object.keys(refused.body.error.details)], [413, ["responses.0"]]);
      assert.equal((await answer("short")).status, 200);
      assert.deepEqual((await client.until(host, run.id, "succeeded")).output, { sent: "short" });
    });
  });

  describe("answers", () => {
    async function asked() {
      const { host } = await client.deploy(askingTwice);
      const { body } = await start(host);
      for (;;) {
        const run = (await client.call(host, "GET", `/v1/runs/${body.data.id}`)).body.data;
        if (run.input_requests.length < 2) continue;
        const idOf = (type: string): string =>
          run.input_requests.find((request: { type: string }) => request.type === type).id;
        const resume = (...responses: object[]) =>
          client.call(host, "POST", `/v1/runs/${run.id}/resume`, { body: { responses } });
        return { host, run, approval: idOf("approval_request"), feedback: idOf("feedback_request"), resume };
      }
    }

    it("are taken together or not at all", async () => {
      const { host, run, approval, feedback, resume } = await asked();
      const approve = { input_request_id: approval, decision: "approve" };
      const refused = await resume(approve, {
        input_request_id: feedback,
        decision: "respond",
        feedback: { stars: "many" },
      });
      assert.deepEqual(
        [refused.status, Object.keys(refused.body.error.details)],
        [400, ["responses.1.feedback.stars"]],
      );
      assert.equal((await client.call(host, "GET", `/v1/runs/${run.id}`)).body.data.input_requests.length, 2);
      const both = await resume(approve, { input_request_id: feedback, decision: "respond", feedback: { stars: 5 } });
      assert.equal(both.status, 200);
      assert.deepEqual((await client.until(host, run.id, "succeeded")).output, { stars: 5 });
    });

    it("are refused with what is wrong about them", async () => {
      const { approval, feedback, resume } = await asked();
      const refusals: [object[], string][] = [
        [[], "responses"],
        [[{ decision: "approve" }], "responses.0.input_request_id"],
        [[{ input_request_id: approval, decision: "perhaps" }], "responses.0.decision"],
        [[{ input_request_id: approval, decision: "respond" }], "responses.0.decision"],
        [[{ input_request_id: feedback, decision: "approve" }], "responses.0.decision"],
        [[{ input_request_id: approval, decision: "approve", params: { text: "x" } }], "text"],
        [[{ input_request_id: approval, decision: "approve", feedback: 1 }], "responses.0.feedback"],
        [[{ input_request_id: feedback, decision: "respond" }], "responses.0.feedback"],
        [[{ input_request_id: feedback, decision: "respond", feedback: {} }], "responses.0.feedback.stars"],
        [[{ input_request_id: approval, decision: "approve", by: "me" }], "responses.0.by"],
        [[{ input_request_id: crypto.randomUUID(), decision: "approve" }], "responses.0.input_request_id"],
        [
          [
            { input_request_id: approval, decision: "approve" },
            { input_request_id: approval, decision: "reject" },
          ],
          "responses.1.input_request_id",
        ],
      ];
      for (const [responses, field] of refusals) {
        const { status, body } = await resume(...responses);
        assert.deepEqual([status, Object.keys(body.error.details)], [400, [field]], JSON.stringify(responses));
      }
    });

    it("have one winner of twenty that race, and come too late once the run is over", async () => {
      const { host } = await client.deploy(approving);
      const run = (await start(host)).body.data;
      const asking = await client.until(host, run.id, "awaiting_input");
      const answer = (text: string) =>
        client.call(host, "POST", `/v1/runs/${run.id}/resume`, {
          body: {
            responses: [{ input_request_id: asking.input_requests[0].id, decision: "approve", params: { text } }],
          },
        });
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => answer(`answer ${i}`)));
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      assert.equal(answers.filter(({ status }) => status === 400).length, 19);
      const winner = answers.findIndex(({ status }) => status === 200);
      assert.deepEqual((await client.until(host, run.id, "succeeded")).output, { sent: `answer ${winner}` });
      const late = await answer("late");
      assert.match(late.body.error.details["responses.0.input_request_id"], /it is resolved/);
    });

    it("are refused once the run is canceled", async () => {
      const { host } = await client.deploy(approving);
      const run = (await start(host)).body.data;
      const asking = await client.until(host, run.id, "awaiting_input");
      await client.call(host, "POST", `/v1/runs/${run.id}/cancel`, { body: {} });
      const { status, body } = await client.call(host, "POST", `/v1/runs/${run.id}/resume`, {
        body: { responses: [{ input_request_id: asking.input_requests[0].id, decision: "approve" }] },
      });
      assert.equal(status, 400);
      assert.match(body.error.details["responses.0.input_request_id"], /it is canceled/);
    });
  });
});
