/**
 * Who may connect, in this order, each refusal a flat `{code}`:
 *
 *     parse → 404 not_found · 410 expired | consumed · 400 bad_subprotocol · 403 forbidden_origin
 *       → slot, else 503 capacity (the reservation untouched)
 *       → reservation taken on the bus, else the slot back and 410
 *       → in a full house the slot of a call whose link is lost, else 503 (and the reservation back)
 *       → opened at the api, else the slot back: 503 (and the reservation back), 404 or 410
 *       → 101
 *
 * The slot is counted in the process, the reservation is taken once on the bus, and the api opens a
 * call once whatever the bus forgets. A client that goes away in between leaves no slot taken.
 */
import type { Bus } from "#bus/bus.ts";
import type { OpenedCall } from "#contracts/internal_calls.ts";
import { type RefusalCode, refusals } from "#contracts/voice_protocol.ts";
import type { CallsApi } from "../api_client.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { HttpResponse, ResponseHeaders, UpgradeRequest } from "../transport/transport.ts";
import { type BeginCallDeps, beginCall } from "./begin_call.ts";
import type { Call } from "./call.ts";
import type { CallSlots } from "./call_slots.ts";
import { isOriginAllowed, lastSeqOf, parseCallPath, subprotocolFor } from "./call_url.ts";
import { findReservation, preflightState, refusalFor } from "./reservation_lookup.ts";
import type { ReservationTakes, Take } from "./reservation_takes.ts";
import { hasSlot, takeSlot } from "./take_slot.ts";

export interface AdmissionDeps extends BeginCallDeps {
  gatewayId: string;
  bus: Bus;
  api: CallsApi;
  slots: CallSlots;
  takes: ReservationTakes;
  metrics: GatewayMetrics;
  isDraining(): boolean;
  nowMs(): number;
  /** From 0 to 1, to spread those who come back. */
  random(): number;
}

export interface Admission {
  upgrade(upgrade: UpgradeRequest): Promise<void>;
  /** `GET` without Upgrade: browsers cannot see why an upgrade was refused. */
  preflight(path: string, response: HttpResponse): Promise<void>;
  /** Resolves when no upgrade is under way that was asked for before. */
  settled(): Promise<void>;
}

/** A refusal on the way to a call. */
interface Refusal {
  code: RefusalCode;
}

export function createAdmission(deps: AdmissionDeps): Admission {
  const { api, bus, log, metrics, registry, reporter, slots, takes } = deps;

  function refuse(upgrade: UpgradeRequest, { code }: Refusal): void {
    if (!upgrade.head.signal.aborted) metrics.refused(code);
    upgrade.refuse(refusals[code], headersFor(code), JSON.stringify({ code }));
  }

  function headersFor(code: RefusalCode): ResponseHeaders {
    const headers: [string, string][] = [
      ["content-type", "application/json"],
      ["cache-control", "no-store"],
    ];
    if (refusals[code] === 503) headers.push(["retry-after", String(1 + Math.floor(deps.random() * 5))]);
    if (code === "capacity" && deps.isDraining()) headers.push(["x-reason", "draining"]);
    return headers;
  }

  async function admit(upgrade: UpgradeRequest, callId: string, secret: string): Promise<Refusal | undefined> {
    const { head } = upgrade;
    const startedAtMs = deps.nowMs();
    const known = await findReservation(bus, api, callId);
    const refusal = refusalFor(known, secret, deps.nowMs());
    if (refusal || !known) return { code: refusal ?? "not_found" };
    const subprotocol = subprotocolFor(head.headers["sec-websocket-protocol"]);
    if (!subprotocol.ok) return { code: "bad_subprotocol" };
    if (!isOriginAllowed(head.headers.origin, known.reservation.allowed_origins)) return { code: "forbidden_origin" };
    if (head.signal.aborted) return undefined;

    if (!hasSlot(deps, deps.nowMs())) return { code: "capacity" };
    let slot = slots.take();
    let call: Call | undefined;
    const take = takes.newTake(callId);
    try {
      const untaken = await takeReservation(take, head.signal);
      if (untaken) return untaken;
      // Only now, so that nobody loses their call to one who is refused.
      slot ??= takeSlot(deps, deps.nowMs());
      if (!slot) {
        await takes.giveBack(take);
        return { code: "capacity" };
      }
      const opened = await open(take, head.signal);
      if ("code" in opened) return opened;
      call = beginCall(opened, slot, deps);
      if (!call) return { code: "unavailable" };
      if (await connect(call, upgrade, subprotocol.chosen)) metrics.admitted(deps.nowMs() - startedAtMs);
      return undefined;
    } finally {
      // From here on the call gives it back.
      if (!call) slot?.release();
    }
  }

  async function takeReservation(take: Take, signal: AbortSignal): Promise<Refusal | undefined> {
    let taken = await takes.take(take);
    if (taken === "unknown" && (await findReservation(bus, api, take.callId))) taken = await takes.take(take);
    if (taken === "unknown") return { code: "not_found" };
    if (taken !== "taken") return { code: taken };
    if (!signal.aborted) return undefined;
    await takes.giveBack(take);
    return { code: "unavailable" };
  }

  /** Opens the call whose reservation is taken; gives the reservation back where the caller is not at fault. */
  async function open(take: Take, signal: AbortSignal): Promise<OpenedCall | Refusal> {
    const { callId } = take;
    try {
      const result = await api.openCall(callId, deps.gatewayId);
      if (result.kind === "refused") return { code: result.code };
      if (!signal.aborted) return result.call;
      reporter.opened(callId);
      reporter.ended(callId, { reason: "client_hangup", duration_ms: 0 });
      return { code: "unavailable" };
    } catch (error) {
      await takes.giveBack(take);
      throw error;
    }
  }

  /** Whether the caller is there. A call without one is over. */
  async function connect(call: Call, upgrade: UpgradeRequest, subprotocol: string): Promise<boolean> {
    const link = call.newLink();
    try {
      link.socket = await upgrade.accept(link.events, subprotocol);
    } finally {
      call.start(link);
    }
    registry.tellDeadline(call);
    return link.socket !== undefined && !link.isDead;
  }

  async function resume(upgrade: UpgradeRequest, callId: string, token: string): Promise<Refusal | undefined> {
    const lastSeq = lastSeqOf(upgrade.head.query);
    if (lastSeq === undefined) return { code: "bad_request" };
    const subprotocol = subprotocolFor(upgrade.head.headers["sec-websocket-protocol"]);
    if (!subprotocol.ok) return { code: "bad_subprotocol" };
    if (upgrade.head.signal.aborted) return undefined;
    const call = registry.get(callId);
    const taken = call?.takeResumeToken(token) ?? registry.endedToken(callId)?.peek(token) ?? "unknown";
    if (taken === "gone") return { code: "gone" };
    if (!call || taken === "unknown") return { code: "not_found" };
    const link = call.newLink();
    try {
      link.socket = await upgrade.accept(link.events, subprotocol.chosen);
    } finally {
      if (!link.socket || link.isDead) call.giveBackResumeToken(token);
    }
    if (!link.socket || link.isDead) return undefined;
    call.resumeOn(link, lastSeq);
    metrics.resumed();
    return undefined;
  }

  async function answer(upgrade: UpgradeRequest): Promise<void> {
    const path = parseCallPath(upgrade.head.path);
    if (!path) return refuse(upgrade, { code: "not_found" });
    try {
      const refusal =
        path.kind === "resume"
          ? await resume(upgrade, path.callId, path.token)
          : await admit(upgrade, path.callId, path.secret);
      if (refusal) refuse(upgrade, refusal);
    } catch (error) {
      log.warn({ err: error, call_id: path.callId }, "cannot admit a call");
      refuse(upgrade, { code: "unavailable" });
    }
  }

  const underWay = new Set<Promise<void>>();

  return {
    async upgrade(upgrade) {
      const answering = answer(upgrade);
      underWay.add(answering);
      await answering.finally(() => underWay.delete(answering));
    },

    async settled() {
      await Promise.allSettled([...underWay]);
    },

    async preflight(path, response) {
      const answer = (status: number, body: object, headers: ResponseHeaders = headersFor("not_found")) =>
        response.send(status, [...headers, ["access-control-allow-origin", "*"]], JSON.stringify(body));
      const parsed = parseCallPath(path);
      if (parsed?.kind !== "call") return answer(404, { code: "not_found" });
      try {
        const known = await findReservation(bus, api, parsed.callId);
        if (!known || refusalFor(known, parsed.secret, deps.nowMs()) === "not_found") {
          return answer(404, { code: "not_found" });
        }
        const isLiveHere = registry.get(parsed.callId) !== undefined;
        // The bus knows that it was taken; what became of it the api knows.
        const taken = known.consumed && !isLiveHere ? await api.getCall(parsed.callId) : undefined;
        const state = preflightState(taken ? { reservation: taken, consumed: true } : known, isLiveHere, deps.nowMs());
        answer(200, { state, capacity: hasSlot(deps, deps.nowMs()) });
      } catch (error) {
        log.warn({ err: error, call_id: parsed.callId }, "cannot look up a call");
        answer(503, { code: "unavailable" }, headersFor("unavailable"));
      }
    },
  };
}
