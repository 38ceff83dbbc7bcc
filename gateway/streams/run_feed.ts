/**
 * One run's events in this process, shared by all its readers: the bus brings them, the log fills
 * gaps. New events reach the readers in a turn of their own, the first one at once and what follows
 * within `joinMs` together.
 */
import type { Bus } from "#bus/bus.ts";
import { type RunEventBatch, runTopic } from "#contracts/internal_runs.ts";
import type { Log } from "../log.ts";
import { FrameWindow } from "./frame_window.ts";
import type { RunLog } from "./run_log.ts";
import { type EventFrame, eventFrame } from "./sse_frame.ts";

/** Below what a person or a proxy notices, above what a burst needs. */
const joinMs = 5;
const pageEvents = 500;

export interface FeedReader {
  /** There may be more to read. */
  wake(): void;
}

export class RunFeed {
  readonly runId: string;
  readonly readers = new Set<FeedReader>();
  readonly #deps: { bus: Bus; log: RunLog; logger: Log };
  #window: FrameWindow;
  #unsubscribe: Promise<() => Promise<void>>;
  #filling: Promise<void> | undefined;
  #wakeTimer: NodeJS.Timeout | NodeJS.Immediate | undefined;
  #wokenMs = 0;
  #heardMs = performance.now();

  /** @param lastId the event that readers have already, or nothing before it matters */
  constructor(runId: string, lastId: number, deps: { bus: Bus; log: RunLog; logger: Log }) {
    this.runId = runId;
    this.#deps = deps;
    this.#window = new FrameWindow(lastId);
    this.#unsubscribe = deps.bus.subscribe(runTopic(runId), (payload) => {
      this.take((JSON.parse(payload) as RunEventBatch).events);
    });
    // Without a subscription the positions that are asked for now and then bring the readers on.
    this.#unsubscribe.catch((err: unknown) => deps.logger.warn({ err }, "a run's events are not heard"));
  }

  /** Settles when what happens from now on is heard. */
  async listening(): Promise<void> {
    await this.#unsubscribe.catch(() => undefined);
  }

  get lastId(): number {
    return this.#window.lastId;
  }

  /** Milliseconds without news. */
  get silentMs(): number {
    return performance.now() - this.#heardMs;
  }

  take(events: RunEventBatch["events"]): void {
    this.#heardMs = performance.now();
    const before = this.#window.lastId;
    if (this.#window.push(events).gap) this.fill();
    if (this.#window.lastId > before) this.#wakeReaders();
  }

  /** The log has more than the window: reads it up to its end. */
  fill(): void {
    this.#heardMs = performance.now();
    this.#filling ??= this.#readOn()
      .catch((err: unknown) => this.#deps.logger.warn({ err }, "a run's log is not read; it is tried again"))
      .finally(() => {
        this.#filling = undefined;
      });
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const before = this.#window.lastId;
      const page = await this.#deps.log.read(this.runId, before, pageEvents);
      if (!page || page.events.length === 0) return;
      this.#window.push(page.events);
      if (this.#window.lastId > before) this.#wakeReaders();
      if (page.events.length < pageEvents) return;
    }
  }

  /** Frames after `cursor`, from the window or, further back, from the log. Undefined: the run is gone. */
  async framesAfter(cursor: number, bytesMax: number): Promise<readonly EventFrame[] | undefined> {
    const inWindow = this.#window.after(cursor, bytesMax);
    if (inWindow) return inWindow;
    const page = await this.#deps.log.read(this.runId, cursor, pageEvents);
    return page?.events.map(eventFrame);
  }

  /** As `framesAfter`, without the log: undefined when it would be needed. */
  framesInWindow(cursor: number, bytesMax: number): readonly EventFrame[] | undefined {
    return this.#window.after(cursor, bytesMax);
  }

  #wakeReaders(): void {
    if (this.#wakeTimer) return;
    const wake = () => {
      this.#wakeTimer = undefined;
      this.#wokenMs = performance.now();
      for (const reader of this.readers) reader.wake();
    };
    const sinceMs = performance.now() - this.#wokenMs;
    // Never inside another socket's handler: its cork would swallow the joining.
    this.#wakeTimer = sinceMs >= joinMs ? setImmediate(wake) : setTimeout(wake, joinMs - sinceMs);
  }

  async close(): Promise<void> {
    clearTimeout(this.#wakeTimer as NodeJS.Timeout);
    clearImmediate(this.#wakeTimer as NodeJS.Immediate);
    const unsubscribe = await this.#unsubscribe.catch(() => undefined);
    await unsubscribe?.().catch(() => undefined);
  }
}
