/**
 * One run's events in this process, shared by all its readers: the bus brings them, the log fills
 * gaps. New events reach the readers in a turn of their own, the first one at once and what follows
 * within `joinMs` together.
 */
import type { Bus } from "#bus/bus.ts";
import { type RunEventBatch, runTopic } from "#contracts/internal_runs.ts";
import type { Log } from "../log.ts";
import type { StreamMetrics } from "../metrics.ts";
import { FrameWindow } from "./frame_window.ts";
import type { RunLog } from "./run_log.ts";
import { type EventFrame, eventFrame } from "./sse_frame.ts";

/** Below what a person or a proxy notices, above what a burst needs. */
const joinMs = 5;
/** Of the log in one read: few events while it is unknown how long they are, then about `pageBytes`. */
const pageEventsFirst = 50;
const pageEventsMax = 500;
const pageBytes = 256 * 1024;

interface LogPage {
  frames: readonly EventFrame[];
  /** Of the run, when the page was read. */
  lastEventId: number;
}
/** After a subscription that failed: the bus was away. */
const listenAgainMs = 2000;

export interface FeedReader {
  /** There may be more to read. */
  wake(): void;
}

export interface RunFeedDeps {
  bus: Bus;
  log: RunLog;
  logger: Log;
  metrics: StreamMetrics;
}

export class RunFeed {
  readonly runId: string;
  readonly readers = new Set<FeedReader>();
  readonly #deps: RunFeedDeps;
  #window: FrameWindow;
  #unsubscribe: Promise<() => Promise<void>>;
  #filling: Promise<void> | undefined;
  /** Reads of the log under way, by cursor: readers that come back at once share one, and its frames. */
  readonly #pages = new Map<number, Promise<LogPage | undefined>>();
  #pageEvents = pageEventsFirst;
  #fillAgain = false;
  #wakeTimer: NodeJS.Timeout | NodeJS.Immediate | undefined;
  #listenTimer: NodeJS.Timeout | undefined;
  #closed = false;
  #wokenMs = 0;
  #heardMs = performance.now();
  /** Of the oldest batch that the readers have not been woken for, by its worker's clock. */
  #sentAtMs: number | undefined;

  /** @param lastId the event that readers have already, or nothing before it matters */
  constructor(runId: string, lastId: number, deps: RunFeedDeps) {
    this.runId = runId;
    this.#deps = deps;
    this.#window = new FrameWindow(lastId);
    this.#unsubscribe = this.#listen();
  }

  #listen(): Promise<() => Promise<void>> {
    const subscribed = this.#deps.bus.subscribe(runTopic(this.runId), (payload) => {
      const { events, sent_at_ms } = JSON.parse(payload) as RunEventBatch;
      this.#sentAtMs ??= sent_at_ms;
      this.take(events);
    });
    // Meanwhile the positions that are asked for now and then bring the readers on.
    subscribed.catch((err: unknown) => {
      this.#deps.logger.warn({ err }, "a run's events are not heard; it is tried again");
      if (this.#closed) return;
      this.#listenTimer = setTimeout(() => {
        this.#unsubscribe = this.#listen();
      }, listenAgainMs);
    });
    return subscribed;
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
    // What is behind the gap may have been committed after the page that is just being read.
    this.#fillAgain = true;
    if (this.#filling) return;
    const beganMs = performance.now();
    this.#filling = this.#readOn()
      .then(() => this.#deps.metrics.caughtUp((performance.now() - beganMs) / 1000))
      .catch((err: unknown) => this.#deps.logger.warn({ err }, "a run's log is not read; it is tried again"))
      .finally(() => {
        this.#filling = undefined;
      });
  }

  async #readOn(): Promise<void> {
    while (this.#fillAgain) {
      this.#fillAgain = false;
      for (let behind = true; behind; ) {
        const before = this.#window.lastId;
        // A page that is under way may have been read before what we are to find.
        const page = await this.#readPage(before);
        if (!page || page.frames.length === 0) break;
        this.#window.pushFrames(page.frames);
        if (this.#window.lastId > before) this.#wakeReaders();
        behind = this.#window.lastId < page.lastEventId;
      }
    }
  }

  /** Frames after `cursor`, from the window or, further back, from the log. Undefined: the run is gone. */
  async framesAfter(cursor: number, bytesMax: number): Promise<readonly EventFrame[] | undefined> {
    const inWindow = this.#window.after(cursor, bytesMax);
    if (inWindow) return inWindow;
    return (await (this.#pages.get(cursor) ?? this.#readPage(cursor)))?.frames;
  }

  #readPage(cursor: number): Promise<LogPage | undefined> {
    const reading = this.#deps.log
      .read(this.runId, cursor, this.#pageEvents)
      .then((page) => {
        if (!page) return undefined;
        const frames = page.events.map(eventFrame);
        const bytes = frames.reduce((sum, frame) => sum + frame.bytes.length, 0);
        if (bytes > 0) {
          const fitting = Math.floor((pageBytes * frames.length) / bytes);
          this.#pageEvents = Math.min(Math.max(fitting, 1), pageEventsMax);
        }
        return { frames, lastEventId: page.last_event_id };
      })
      .finally(() => {
        if (this.#pages.get(cursor) === reading) this.#pages.delete(cursor);
      });
    this.#pages.set(cursor, reading);
    return reading;
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
      if (this.#sentAtMs !== undefined && this.readers.size > 0) {
        this.#deps.metrics.delivered((Date.now() - this.#sentAtMs) / 1000);
      }
      this.#sentAtMs = undefined;
    };
    const sinceMs = performance.now() - this.#wokenMs;
    // Never inside another socket's handler: its cork would swallow the joining.
    this.#wakeTimer = sinceMs >= joinMs ? setImmediate(wake) : setTimeout(wake, joinMs - sinceMs);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#listenTimer);
    clearTimeout(this.#wakeTimer as NodeJS.Timeout);
    clearImmediate(this.#wakeTimer as NodeJS.Immediate);
    const unsubscribe = await this.#unsubscribe.catch(() => undefined);
    await unsubscribe?.().catch(() => undefined);
  }
}
