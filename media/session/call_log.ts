/** What a call has said and used so far: the model's history, the record's items, turns and tools, the usage. */
import type { CallRequest, CallTool, TranscriptItem, TurnMetrics } from "#contracts/call_record.ts";
import type { PriceTable } from "#contracts/usage.ts";
import { emptyUsage, type Usage } from "#contracts/voice_protocol.ts";
import { billsNobody } from "#providers/catalogue.ts";
import type { StageUse } from "#providers/metered_stage.ts";
import { costTogether, UseMeter } from "#providers/prices.ts";
import type { HistoryItem } from "#providers/provider.ts";
import type { SessionSink } from "../media_host.ts";
import { tenths } from "./turn_timing.ts";

/** Older things said are forgotten by the model. */
export const historyItemsMax = 200;

/** Turns whose use may still grow when their figures were told: a held answer goes on, a stopped model is counted. */
const openTurnsMax = 16;

interface TurnUse {
  meter: UseMeter;
  /** As it was told. */
  metrics?: TurnMetrics;
}

export class CallLog {
  readonly #sink: SessionSink;
  readonly #history: HistoryItem[] = [];
  readonly #items = new Map<string, TranscriptItem>();
  readonly #turns = new Map<string, TurnMetrics>();
  readonly #tools = new Map<string, CallTool>();
  #requests: CallRequest[] = [];
  #requestCount = 0;
  readonly #usage = emptyUsage();

  readonly #prices: PriceTable;
  readonly #meter: UseMeter;
  readonly #turnUses = new Map<string, TurnUse>();

  readonly #startedMs: number;

  /** @param prices of what the call may use; what is not in it costs an unknown sum */
  constructor(sink: SessionSink, startedMs: number, prices: PriceTable = { currency: "USD", prices: [] }) {
    this.#sink = sink;
    this.#startedMs = startedMs;
    this.#prices = prices;
    this.#meter = this.#newMeter();
  }

  #newMeter(): UseMeter {
    return new UseMeter(this.#prices.prices, ({ provider }) => billsNobody(provider));
  }

  /** A copy for one request; audio is kept with the newest item alone. */
  historyForRequest(): HistoryItem[] {
    const history = [...this.#history];
    const last = this.#history.length - 1;
    for (const [i, item] of this.#history.entries()) {
      if (i < last && item.audio) this.#history[i] = { role: item.role, text: item.text };
    }
    return history;
  }

  /** What the caller said last, if nothing was said since. */
  get lastTurn(): string | undefined {
    const last = this.#history.findLast(({ role }) => role === "user" || role === "agent");
    return last?.role === "user" ? last.text : undefined;
  }

  remember(item: HistoryItem): void {
    if (item.role === "agent" && !item.text) return;
    this.#history.push(item);
    if (this.#history.length > historyItemsMax) this.#history.shift();
  }

  /** Adds or replaces an item of the transcript. */
  item(item: TranscriptItem): void {
    this.#items.set(item.item_id, item);
  }

  /** Keeps the figures of a turn. @returns them with what the turn used so far */
  turn(metrics: TurnMetrics): TurnMetrics {
    const use = this.#useOf(metrics.turn_id);
    use.metrics = metrics;
    const whole = { ...metrics, ...this.#sumOf(use.meter) };
    this.#turns.set(metrics.turn_id, whole);
    return whole;
  }

  /** Counts what a stage used, for the call and for its turn. */
  used(use: StageUse): void {
    this.#meter.add(use);
    this.#keepRequest(use);
    if (use.turnId === undefined) return;
    const ofTurn = this.#useOf(use.turnId);
    ofTurn.meter.add(use);
    if (ofTurn.metrics) this.turn(ofTurn.metrics);
  }

  #keepRequest(use: StageUse): void {
    const meter = this.#newMeter();
    meter.add(use);
    const [vendor] = meter.vendors();
    if (!vendor || !use.at) return;
    this.#requestCount += 1;
    this.#requests.push({
      request_id: `request_${this.#requestCount}`,
      ...(use.turnId !== undefined && { turn_id: use.turnId }),
      started_ms: tenths(Math.max(0, use.at.startedMs - this.#startedMs)),
      first_ms: use.at.firstMs === undefined ? null : tenths(use.at.firstMs),
      duration_ms: tenths(use.at.durationMs),
      ...vendor,
    });
  }

  #useOf(turnId: string): TurnUse {
    const known = this.#turnUses.get(turnId);
    if (known) return known;
    const use: TurnUse = { meter: this.#newMeter() };
    this.#turnUses.set(turnId, use);
    const [oldest] = this.#turnUses.keys();
    if (this.#turnUses.size > openTurnsMax && oldest !== undefined) this.#turnUses.delete(oldest);
    return use;
  }

  #sumOf(meter: UseMeter): Pick<Usage, "vendors" | "cost"> {
    const vendors = meter.vendors();
    return { vendors, cost: costTogether(vendors, this.#prices.currency) };
  }

  /** Adds or replaces a tool call. */
  tool(tool: CallTool): void {
    this.#tools.set(tool.tool_call_id, tool);
  }

  count(add: (usage: Usage) => void): void {
    add(this.#usage);
  }

  usage(): Usage {
    const usage = structuredClone(this.#usage);
    usage.input_audio_ms = Math.round(usage.input_audio_ms);
    usage.output_audio_ms = Math.round(usage.output_audio_ms);
    usage.stt_ms = Math.round(usage.stt_ms);
    return { ...usage, ...this.#sumOf(this.#meter) };
  }

  /** Reports what grew. */
  flush(always = false): void {
    if (!always && this.#items.size + this.#turns.size + this.#tools.size + this.#requests.length === 0) return;
    this.#sink.record({
      items: [...this.#items.values()],
      turns: [...this.#turns.values()],
      ...(this.#tools.size > 0 && { tools: [...this.#tools.values()] }),
      ...(this.#requests.length > 0 && { requests: this.#requests }),
      usage: this.usage(),
    });
    this.#items.clear();
    this.#turns.clear();
    this.#tools.clear();
    this.#requests = [];
  }
}
