/** Every kind of tool, and everything that goes wrong with tools: one table. Hosts are real, clocks are moved. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, describe, it } from "node:test";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { completeConfig } from "#contracts/voice_agent.ts";
import type { ServerMessageOf } from "#contracts/voice_protocol.ts";
import { defaultProviders } from "#providers/catalogue.ts";
import { VirtualClock } from "#test/kit/virtual_clock.ts";
import type { SessionMessage } from "../media_host.ts";
import { Notices } from "../session/notices.ts";
import { appToolOf } from "./app_tools.ts";
import { builtinTools } from "./builtin_tools.ts";
import { CallTools, type ToolOutcome } from "./call_tools.ts";
import { ClientTools } from "./client_tools.ts";
import { httpToolOf } from "./http_tools.ts";
import { findMcpTools } from "./mcp_tools.ts";
import type { RemoteTools } from "./remote_tools.ts";
import { resultBytesMax, type Tool } from "./tool.ts";
import { createToolRunner, type ToolRunner } from "./tool_runner.ts";
import { Transfers } from "./transfers.ts";

const kinds = ["http", "mcp", "client", "house", "app"] as const;
type Kind = (typeof kinds)[number];
/** What the far side does: a host, an MCP server, the client's program, our own api. */
type Behaviour = "answers" | "fails" | "hangs" | "floods";

const callId = "00000000-0000-4000-8000-000000000001";
const rooms = "two rooms";
const flood = "x".repeat(10 * 1024 * 1024);

/** The far side of all kinds on one port; what it asks of a test is told by `asked`. */
class FarSide {
  behaviour: Behaviour = "answers";
  /** Tools that were called. */
  calls = 0;
  #called = () => {};
  /** The newest request of a tool that gets no answer; resolves when who asked has gone. */
  gone: Promise<unknown> = Promise.resolve();
  readonly server = createServer((request, response) => void this.#serve(request, response));
  readonly #mcp = new Map<string, StreamableHTTPServerTransport>();

  /** Resolves when a tool is called next. */
  called(): Promise<void> {
    return new Promise((resolve) => {
      this.#called = resolve;
    });
  }

  /** What the far side answers a call with; undefined while it hangs. */
  answerTo(request: IncomingMessage | undefined): { text?: string; error?: string } | undefined {
    this.calls += 1;
    this.#called();
    if (this.behaviour === "answers") return { text: rooms };
    if (this.behaviour === "fails") return { error: "no such day" };
    if (this.behaviour === "floods") return { text: flood };
    if (request) this.gone = once(request.socket, "close");
    return undefined;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    if (path === "/mcp") return this.#serveMcp(request, response);
    for await (const _ of request);
    const json = (body: object) => response.end(JSON.stringify(body));
    if (path.endsWith("/runs")) return void json({ run_id: "r1" });
    if (path.endsWith("/cancel")) return void response.writeHead(204).end();
    const answer = this.answerTo(request);
    if (!answer) return;
    const { text, error } = answer;
    if (path.includes("/runs/r1/events")) {
      const data = text === undefined ? { error: { code: "x", message: error } } : { output: { text } };
      const type = text === undefined ? "run.failed" : "run.succeeded";
      json({ events: [{ id: 1, type, json: JSON.stringify({ type, data }) }], status: "running", last_event_id: 1 });
    } else if (path.startsWith("/internal")) json(text === undefined ? { error } : { result: { text } });
    else if (text === undefined) response.writeHead(409).end(error);
    else response.end(text);
  }

  async #serveMcp(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers["mcp-session-id"];
    let transport = this.#mcp.get(String(id));
    if (!transport) {
      const opened = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (session) => void this.#mcp.set(session, opened),
      });
      transport = opened;
      const mcp = new Server({ name: "hotel", version: "1" }, { capabilities: { tools: {} } });
      mcp.setRequestHandler(ListToolsRequestSchema, async () => ({
        tools: [{ name: "find_room", inputSchema: { type: "object" } }],
      }));
      mcp.setRequestHandler(CallToolRequestSchema, async (_, { signal }) => {
        const answer = this.answerTo(undefined);
        if (!answer) {
          this.gone = once(signal, "abort");
          await this.gone;
        }
        return { content: [{ type: "text", text: answer?.text ?? answer?.error ?? "" }], isError: !!answer?.error };
      });
      await mcp.connect(opened as never);
    }
    await transport.handleRequest(request, response);
  }

  async close(): Promise<void> {
    for (const transport of this.#mcp.values()) await transport.close();
    this.server.closeAllConnections();
    this.server.close();
  }
}

describe("a tool", () => {
  const far = new FarSide();
  let url = "";
  let runner: ToolRunner;
  let guarded: ToolRunner;
  before(async () => {
    await once(far.server.listen(0, "127.0.0.1"), "listening");
    url = `http://127.0.0.1:${(far.server.address() as AddressInfo).port}`;
    const api = { url, secret: "internal" };
    runner = createToolRunner({ allowPrivateAddresses: true, api });
    guarded = createToolRunner({ api });
  });
  after(async () => {
    await Promise.all([runner.close(), guarded.close()]);
    await far.close();
  });
  let end = () => {};
  afterEach(() => end());

  /** A call with one tool of the kind, whose far side behaves so. */
  async function callWith(
    kind: Kind,
    behaviour: Behaviour,
    over: { on_interrupt?: "cancel" | "finish" } = {},
    by = runner,
  ) {
    far.behaviour = behaviour;
    far.calls = 0;
    const clock = new VirtualClock();
    const told: { phase: string; outcome?: ToolOutcome }[] = [];
    const messages: SessionMessage[] = [];
    const sink = {
      audio() {},
      message: (message: SessionMessage) => take(message),
      dropUnsent() {},
      record() {},
      ended() {},
    };
    const notices = new Notices(sink, () => {});
    const clientTools = new ClientTools(notices);
    /** The client's program. */
    function take(message: SessionMessage): void {
      messages.push(message);
      if (message.type === "client_tool_call") queueMicrotask(() => answerAsClient(message));
    }
    function answerAsClient(message: ServerMessageOf<"client_tool_call">): void {
      const answer = far.answerTo(undefined);
      const { tool_call_id } = message;
      if (!answer) return;
      const result = answer.text ?? answer.error;
      clientTools.take({ type: "client_tool_result", tool_call_id, result, is_error: answer.error !== undefined });
    }
    const desk = new CallTools(clock, {
      started: () => told.push({ phase: "started" }),
      progress() {},
      ended: (_, outcome) => told.push({ phase: outcome.phase, outcome }),
      goesOn() {},
      tasks() {},
      fault: (cause) => assert.fail(String(cause)),
    });
    const remote: RemoteTools = { ask: (request, signal, tell) => by.run(request, signal, tell ?? (() => {})) };
    const host = { callId, credentials: {}, remote, notices, send() {}, tasks: desk };
    const tool = await toolOf(kind);
    desk.add([tool]);
    const answering = new AbortController();
    end = () => desk.close();
    return {
      clock,
      desk,
      told,
      messages,
      tool,
      answering,
      run: () =>
        desk.run({ kind: "tool_call", id: "c1", name: tool.spec.name, arguments: { day: "today" } }, answering.signal),
    };

    async function toolOf(of: Kind): Promise<Tool> {
      const name = "find_room";
      switch (of) {
        case "http":
          return httpToolOf({ name, url: `${url}/rooms`, method: "POST", ...over }, host);
        case "client":
          return clientTools.of({ name, ...over });
        case "app":
          return appToolOf({ app_id: callId, name, long_running: false, timeout_s: 10, ...over }, host);
        case "house": {
          const config = { ...completeConfig({}, defaultProviders), builtin_tools: ["find_stay" as const] };
          const transfers = new Transfers(notices, () => {});
          const [stay] = builtinTools(config, { ...host, transfers });
          // What the model gives is the table's business, not the house's.
          const { problemOf: _, ...open } = stay as Tool;
          return open;
        }
        case "mcp": {
          const found: Tool[] = [];
          const add = (_: unknown, tools: Tool[]) => found.push(...tools);
          await findMcpTools([{ name: "pms", url: `${url}/mcp` }], host, new AbortController().signal, add);
          return found[0] ?? assert.fail(JSON.stringify(messages));
        }
      }
    }
  }

  for (const kind of kinds) {
    describe(`that is ${kind}`, () => {
      it("succeeds", async () => {
        const { run, told } = await callWith(kind, "answers");
        const { text, isError } = await run();
        assert.ok(!isError && text.includes(rooms), text);
        assert.deepEqual(
          told.map(({ phase }) => phase),
          ["started", "completed"],
        );
      });

      it("fails in the words of who failed", async () => {
        const { run, told } = await callWith(kind, "fails");
        const { text, isError } = await run();
        assert.ok(isError && text.includes("no such day"), text);
        assert.equal(told.at(-1)?.phase, "failed");
      });

      it("is given up when its time is over, and its far side is told", async () => {
        const call = await callWith(kind, "hangs");
        const called = far.called();
        const result = call.run();
        await called;
        const { gone } = far;
        await call.clock.advance(call.tool.policy.timeoutMs);
        assert.deepEqual(await result, { text: '{"error":"timeout"}', isError: true });
        assert.equal(call.told.at(-1)?.phase, "timeout");
        if (kind !== "client") await gone;
        else assert.equal(call.messages.at(-1)?.type, "client_tool_cancel");
      });

      it("that hangs ends with the call, and its far side is told", async () => {
        const call = await callWith(kind, "hangs");
        const called = far.called();
        const result = call.run();
        await called;
        const { gone } = far;
        call.desk.close();
        assert.equal(call.told.at(-1)?.phase, "cancelled");
        assert.equal((await result).text, '{"error":"cancelled"}');
        if (kind !== "client") await gone;
        else assert.equal(call.messages.at(-1)?.type, "client_tool_cancel");
      });

      it("gives no more than the model may be told", async () => {
        const { run } = await callWith(kind, "floods");
        const { text, isError } = await run();
        assert.ok(Buffer.byteLength(text) <= resultBytesMax);
        assert.match(text, isError ? /more than \d+ MiB|too large/ : /x… \(cut\)$/);
      });

      for (const on_interrupt of ["cancel", "finish"] as const) {
        it(`is interrupted in mid-call: ${on_interrupt}`, async () => {
          const call = await callWith(kind, "hangs", { on_interrupt });
          const called = far.called();
          const result = call.run();
          await called;
          const { gone } = far;
          call.answering.abort();
          assert.equal((await result).text, '{"error":"cancelled"}');
          // A tool of a server runs to its end; one of the house that only looks something up does not.
          const cancels = kind === "house" || (kind !== "mcp" && on_interrupt === "cancel");
          assert.equal(call.tool.policy.onInterrupt, cancels ? "cancel" : "finish");
          await call.clock.advance(0);
          assert.equal(call.told.at(-1)?.phase, cancels ? "cancelled" : "started");
          if (cancels && kind !== "client") await gone;
        });
      }

      it("reaches no private address", async () => {
        // The client's program and our own api have no address that anybody gives.
        const has = kind === "http" || kind === "mcp";
        if (kind === "mcp") {
          const refused = await callWith(kind, "answers", {}, guarded).catch((error: Error) => error);
          assert.match(String(refused), /Expected a public address/);
        } else {
          const { text, isError } = await (await callWith(kind, "answers", {}, guarded)).run();
          if (has) assert.match(text, /^Expected a public address/);
          else assert.ok(!isError, text);
        }
        assert.equal(far.calls, has ? 0 : 1);
      });
    });
  }
});
