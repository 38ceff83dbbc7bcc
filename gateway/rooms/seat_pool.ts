/**
 * The agent's seats in rooms, spread over child processes that start with the first room. A seat
 * lives in the process with the fewest; one that crashes ends its seats and no other.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Log } from "../log.ts";
import { type FromSeat, type RoomToJoin, type ToSeat, withoutTokens } from "./seat_protocol.ts";

/** What a seat hears of its room: everything in `FromSeat` but `left`, and the loss of its process. */
export type SeatReport = Exclude<FromSeat, { kind: "left" }> | { kind: "ended"; reason: "seat_process_lost" };

/** The agent in one room. Every method is safe after its end and then does nothing. */
export interface Seat {
  text(text: string): void;
  audio(bytes: Uint8Array): void;
  ping(): void;
  /** Says what was handed over before, then leaves. Nothing is reported any more. */
  leave(): void;
}

export interface SeatPool {
  /** Starts a first process, so that the first room does not wait for it. */
  warmUp(): void;
  /** Joins a room; how that went comes as `joined` or `failed`. */
  open(room: RoomToJoin, report: (report: SeatReport) => void): Seat;
  /** Leaves all rooms and ends the processes. */
  close(): Promise<void>;
}

/**
 * More than this would share one crash; and LiveKit's client shows every event of a process to every
 * room in it, so that the work of a process grows with the square of its rooms.
 */
const seatsPerProcessMax = 8;
const closeMsMax = 5000;
/** Characters of what a process said on standard error that are kept for the log of its end. */
const lastWordsMax = 2000;

export function createSeatPool(options: { log: Log; seatsPerProcess?: number }): SeatPool {
  const perProcess = options.seatsPerProcess ?? seatsPerProcessMax;
  const processes = new Set<SeatProcess>();
  let nextSeat = 1;

  function processWithRoom(): SeatProcess {
    let best: SeatProcess | undefined;
    for (const one of processes) {
      if (one.seats < perProcess && (!best || one.seats < best.seats)) best = one;
    }
    if (best) return best;
    const started: SeatProcess = new SeatProcess((lost) => {
      processes.delete(started);
      options.log.warn(lost, "a process that sits in rooms has ended");
    });
    processes.add(started);
    return started;
  }

  return {
    warmUp: () => void processWithRoom(),
    open(room, report) {
      const seat = nextSeat;
      nextSeat += 1;
      return processWithRoom().open(seat, room, report);
    },
    async close() {
      await Promise.all([...processes].map((one) => one.close()));
    },
  };
}

class SeatProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  /** Seats that the process has not forgotten; those that were left report nothing any more. */
  readonly #reports = new Map<number, ((report: SeatReport) => void) | undefined>();
  #outbox: ToSeat[] = [];
  #isFlushDue = false;
  #isClosing = false;

  constructor(onLost: (lost: { seats: number; code: number | null; last_words: string }) => void) {
    this.#child = fork(fileURLToPath(new URL("./seat_process.ts", import.meta.url)), {
      // However the gateway itself was started.
      execArgv: ["--import", import.meta.resolve("tsx")],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    let lastWords = "";
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      lastWords = (lastWords + text).slice(-lastWordsMax);
    });
    this.#child.on("message", (batch) => {
      for (const message of batch as FromSeat[]) this.#take(message);
    });
    this.#child.on("error", () => undefined);
    this.#exited = new Promise((resolve) => {
      this.#child.once("exit", (code) => {
        const lost = [...this.#reports.values()];
        this.#reports.clear();
        for (const report of lost) report?.({ kind: "ended", reason: "seat_process_lost" });
        if (!this.#isClosing) onLost({ seats: lost.length, code, last_words: withoutTokens(lastWords) });
        resolve();
      });
    });
  }

  get seats(): number {
    return this.#reports.size;
  }

  open(seat: number, room: RoomToJoin, report: (report: SeatReport) => void): Seat {
    this.#reports.set(seat, report);
    this.#tell({ kind: "join", seat, room });
    const tell = (message: ToSeat) => {
      if (this.#reports.get(seat)) this.#tell(message);
    };
    return {
      text: (text) => tell({ kind: "text", seat, text }),
      audio: (bytes) => tell({ kind: "audio", seat, bytes }),
      ping: () => tell({ kind: "ping", seat }),
      leave: () => {
        tell({ kind: "leave", seat });
        if (this.#reports.has(seat)) this.#reports.set(seat, undefined);
      },
    };
  }

  #take(message: FromSeat): void {
    if (message.kind === "left") this.#reports.delete(message.seat);
    else this.#reports.get(message.seat)?.(message);
  }

  #tell(message: ToSeat): void {
    this.#outbox.push(message);
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushDue = false;
    const batch = this.#outbox;
    this.#outbox = [];
    if (this.#child.connected) this.#child.send(batch, () => undefined);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#flush();
    if (this.#child.connected) this.#child.disconnect();
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), closeMsMax);
    await this.#exited;
    clearTimeout(kill);
  }
}
