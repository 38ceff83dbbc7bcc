/** Calls through the whole house, from an agent saved over the api to a vendor's twin: api, gateway and a media thread. */
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { listen } from "#api/process/http_listener.ts";
import type { CloseCallRequest, OpenedCall } from "#contracts/internal_calls.ts";
import type { PriceTable } from "#contracts/usage.ts";
import type { OpenResult } from "#gateway/api_client.ts";
import { startWorkerPool } from "#media/threads/worker_pool.ts";
import { type Answer, type ApiHarness, internalSecret, openApiHarness } from "./api_harness.ts";
import { CallClient, FakeApi, startTestGateway } from "./gateway_fixture.ts";

export interface VendorHouse {
  api: ApiHarness;
  /** The gateway's reports to the api. */
  reports: FakeApi;
  /** What its processes wrote to their logs. */
  logged: readonly string[];
  /** As the owner. */
  call(method: string, path: string, body?: unknown): Promise<Answer>;
  connect(provider: string, access: { secret: string; baseUrl: string }): Promise<string>;
  agent(config: object): Promise<string>;
  /** Reserves a call of the agent and dials it. */
  dial(agentId: string, body?: object): Promise<CallClient>;
  stop(): Promise<void>;
}

/** Opens calls where the api keeps them, and closes them there. */
class OpeningApi extends FakeApi {
  readonly #api: ApiHarness;
  constructor(api: ApiHarness) {
    super();
    this.#api = api;
  }
  override async openCall(callId: string): Promise<OpenResult> {
    const { status, body } = await this.#api.internal("POST", `/internal/calls/${callId}/open`, { gateway_id: "test" });
    assert.equal(status, 200, JSON.stringify(body));
    return { kind: "opened", call: body as OpenedCall };
  }
  override async closeCall(callId: string, request: CloseCallRequest): Promise<boolean> {
    const { status, body } = await this.#api.internal("POST", `/internal/calls/${callId}/close`, {
      ...request,
      gateway_id: "test",
    });
    assert.equal(status, 204, JSON.stringify(body));
    return super.closeCall(callId, request);
  }
}

/** @param prices of what calls may use */
export async function openVendorHouse(prices?: PriceTable): Promise<VendorHouse> {
  const logged: string[] = [];
  const note = (fields: object, message: string) => void logged.push(`${message} ${inspect(fields, { depth: 10 })}`);
  const logger = { debug: note, info: note, warn: note, error: note };
  const api = await openApiHarness(logger, { allowPrivateAddresses: true, ...(prices && { prices }) });
  const listener = await listen(api.app.fetch, { host: "127.0.0.1", port: 0 });
  const media = await startWorkerPool({
    threads: 1,
    logger,
    world: { allowPrivateAddresses: true },
    toolWorld: { api: { url: listener.url, secret: internalSecret } },
  });
  const reports = new OpeningApi(api);
  const { gateway, stop } = await startTestGateway({ transport: "ws", api: reports, media, bus: api.bus, logger });
  const call: VendorHouse["call"] = (method, path, body) =>
    api.call(method, path, { token: api.owner.token, ...(body !== undefined && { body }) });
  const made = async (path: string, body: object): Promise<Answer> => {
    const answer = await call("POST", path, body);
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer;
  };
  return {
    api,
    reports,
    logged,
    call,
    async connect(provider, { secret, baseUrl }) {
      const connection = { name: provider, project_id: api.projectId, provider, secret, base_url: baseUrl };
      return (await made("/v1/connections", connection)).body.data.id;
    },
    async agent(config) {
      const agent = { name: "Desk", project_id: api.projectId, config };
      return (await made("/v1/agents/voice/agents", agent)).body.data.id;
    },
    async dial(agentId, body = {}) {
      const reserved = await made(`/v1/agents/voice/agents/${agentId}/calls/websocket`, body);
      const { pathname } = new URL(reserved.body.data.websocket_url);
      return CallClient.call(`ws://127.0.0.1:${gateway.port}${pathname}`);
    },
    async stop() {
      await stop();
      await media.close();
      await listener.close();
      await api.close();
    },
  };
}
