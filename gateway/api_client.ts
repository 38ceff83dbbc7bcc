/** The gateway's way to the api: one pool of connections, the internal secret, bounded waits. */
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { type Dispatcher, Pool } from "undici";
import {
  type CloseCallRequest,
  HeartbeatReply,
  type HeartbeatRequest,
  OpenedCall,
  ReservedCall,
} from "#contracts/internal_calls.ts";
import type { RefusalCode } from "#contracts/voice_protocol.ts";

/** The api did not answer, or not sensibly: the caller's request is not at fault. */
export class ApiUnavailableError extends Error {
  constructor(action: string, options?: ErrorOptions) {
    super(`Cannot ${action}: the api does not answer as expected`, options);
    this.name = "ApiUnavailableError";
  }
}

export type OpenResult =
  | { kind: "opened"; call: OpenedCall }
  | { kind: "refused"; code: Extract<RefusalCode, "not_found" | "consumed" | "expired" | "gone" | "usage_limit"> };

/** `/internal/calls/*` as `contracts/internal_calls.ts` describes it. Every method throws `ApiUnavailableError`. */
export interface CallsApi {
  getCall(callId: string): Promise<ReservedCall | undefined>;
  openCall(callId: string, gatewayId: string): Promise<OpenResult>;
  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReply>;
  /** @returns false when the api refuses the record for good */
  closeCall(callId: string, request: CloseCallRequest): Promise<boolean>;
  /** Whether the api is ready, for `/readyz`. Never throws. */
  isReady(): Promise<boolean>;
  close(): Promise<void>;
}

const connectionsMax = 32;
const openTimeoutMs = 5000;
const reportTimeoutMs = 15_000;
const readyTimeoutMs = 2000;

const isReservedCall = TypeCompiler.Compile(ReservedCall);
const isOpenedCall = TypeCompiler.Compile(OpenedCall);
const isHeartbeatReply = TypeCompiler.Compile(HeartbeatReply);

export function createApiClient(options: { apiUrl: string; internalSecret: string }): CallsApi {
  const pool = new Pool(options.apiUrl, { connections: connectionsMax, pipelining: 1 });

  async function ask(action: string, method: "GET" | "POST", path: string, body: unknown, timeoutMs: number) {
    let reply: Dispatcher.ResponseData;
    try {
      reply = await pool.request({
        method,
        path,
        headers: { authorization: `Bearer ${options.internalSecret}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      const text = await reply.body.text();
      if (reply.statusCode >= 500 || reply.statusCode === 401 || reply.statusCode === 429) {
        throw new Error(`The api answered ${reply.statusCode}`);
      }
      return { status: reply.statusCode, json: text === "" ? undefined : (JSON.parse(text) as unknown) };
    } catch (cause) {
      throw new ApiUnavailableError(action, { cause });
    }
  }

  return {
    async getCall(callId) {
      const reply = await ask("look up a call", "GET", `/internal/calls/${callId}`, undefined, openTimeoutMs);
      if (reply.status === 404) return undefined;
      if (reply.status !== 200 || !isReservedCall.Check(reply.json)) throw new ApiUnavailableError("look up a call");
      return reply.json;
    },

    async openCall(callId, gatewayId): Promise<OpenResult> {
      const body = { gateway_id: gatewayId };
      const reply = await ask("open a call", "POST", `/internal/calls/${callId}/open`, body, openTimeoutMs);
      if (reply.status === 200 && isOpenedCall.Check(reply.json)) return { kind: "opened", call: reply.json };
      if (reply.status === 402) return { kind: "refused", code: "usage_limit" };
      if (reply.status === 404) return { kind: "refused", code: "not_found" };
      if (reply.status === 409) return { kind: "refused", code: "consumed" };
      if (reply.status === 410) return { kind: "refused", code: isExpiry(reply.json) ? "expired" : "gone" };
      throw new ApiUnavailableError("open a call", { cause: `The api answered ${reply.status}` });
    },

    async heartbeat(request) {
      const reply = await ask("report calls", "POST", "/internal/calls/heartbeat", request, reportTimeoutMs);
      if (reply.status !== 200 || !isHeartbeatReply.Check(reply.json)) throw new ApiUnavailableError("report calls");
      return reply.json;
    },

    async closeCall(callId, request) {
      const path = `/internal/calls/${callId}/close`;
      return (await ask("close a call's record", "POST", path, request, reportTimeoutMs)).status < 300;
    },

    async isReady() {
      try {
        const signal = AbortSignal.timeout(readyTimeoutMs);
        const reply = await pool.request({ method: "GET", path: "/readyz", signal });
        await reply.body.dump();
        return reply.statusCode === 200;
      } catch {
        return false;
      }
    },

    close: () => pool.destroy(),
  };
}

/** 410 stands for two things; the api names an expiry anywhere in its error's code or details. */
function isExpiry(json: unknown): boolean {
  return JSON.stringify(json ?? "").includes("expired");
}
