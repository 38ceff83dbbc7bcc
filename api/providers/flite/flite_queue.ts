/**
 * The way to the synthesis thread: one thread for each thread that asks, started at the first request
 * (or by `start`), replaced when it dies. Requests wait in line, at most `jobsMax` of them; what is
 * aborted leaves the line; who asks for the same text shares one synthesis; what was spoken lately is
 * kept, up to `cacheBytesMax`, the least recently used out first.
 */
import type { Worker } from "node:worker_threads";
import { ProviderError } from "../provider_error.ts";
import { startTypescriptWorker } from "../typescript_worker.ts";
import type { FliteReply, FliteRequest, Speech } from "./flite_worker.ts";

export interface FliteQueueLimits {
  /** Requests in line; one more fails at once. */
  jobsMax: number;
  cacheBytesMax: number;
  /** A synthesis that takes longer is given up, and its thread replaced. Clauses take some 50 ms. */
  jobTimeoutMs: number;
}

export const fliteQueueLimits: FliteQueueLimits = {
  jobsMax: 256,
  cacheBytesMax: 16 * 1024 * 1024,
  jobTimeoutMs: 10_000,
};

interface Job extends FliteRequest {
  key: string;
  waiters: Set<Waiter>;
}

interface Waiter {
  done(speech: Speech): void;
  failed(reason: string): void;
}

export class FliteQueue {
  readonly #limits: FliteQueueLimits;
  readonly #startThread: () => Worker;
  readonly #jobs = new Map<string, Job>();
  readonly #cache = new Map<string, Speech>();
  #cacheBytes = 0;
  #worker: Worker | undefined;
  #ready: Promise<void> = Promise.resolve();
  #isReady = false;
  #running: Job | undefined;
  #watchdog: NodeJS.Timeout | undefined;

  /** @param startThread starts a thread that talks as `flite_worker.ts` does */
  constructor(limits: FliteQueueLimits = fliteQueueLimits, startThread: () => Worker = startFliteThread) {
    this.#limits = limits;
    this.#startThread = startThread;
  }

  /** Starts the thread ahead of the first request. Resolves when it is ready. */
  start(): Promise<void> {
    if (!this.#worker) this.#startWorker();
    this.#worker?.ref();
    return this.#ready.finally(() => {
      if (!this.#running) this.#worker?.unref();
    });
  }

  /** Stops the thread; a later request starts another one. Requests in line fail. */
  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#running = undefined;
    clearTimeout(this.#watchdog);
    this.#failLine("speech synthesis was stopped");
    await worker?.terminate();
  }

  /**
   * Speech for a text, or undefined when `signal` is aborted first. The samples are shared: not to be written to.
   * @throws ProviderError when synthesis fails or too many requests are in line
   */
  speak(request: FliteRequest, signal: AbortSignal): Promise<Speech | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    const key = `${request.voice} ${request.text}`;
    const known = this.#cache.get(key);
    if (known) {
      this.#cache.delete(key);
      this.#cache.set(key, known);
      return Promise.resolve(known);
    }
    const job = this.#jobs.get(key) ?? this.#newJob(key, request);
    if (!job) {
      return Promise.reject(
        new ProviderError("tts", `Speech synthesis is busy: ${this.#limits.jobsMax} texts wait for it`),
      );
    }
    return new Promise((resolve, reject) => {
      const settle = () => {
        job.waiters.delete(waiter);
        signal.removeEventListener("abort", leave);
      };
      const waiter: Waiter = {
        done: (speech) => {
          settle();
          resolve(speech);
        },
        failed: (reason) => {
          settle();
          reject(new ProviderError("tts", `Cannot synthesize speech: ${reason}`));
        },
      };
      const leave = () => {
        settle();
        if (job.waiters.size === 0 && job !== this.#running) this.#jobs.delete(job.key);
        resolve(undefined);
      };
      job.waiters.add(waiter);
      signal.addEventListener("abort", leave, { once: true });
      this.#runNext();
    });
  }

  #newJob(key: string, { voice, text }: FliteRequest): Job | undefined {
    if (this.#jobs.size >= this.#limits.jobsMax) return undefined;
    const job = { key, voice, text, waiters: new Set<Waiter>() };
    this.#jobs.set(key, job);
    return job;
  }

  #runNext(): void {
    if (this.#running) return;
    const job = this.#jobs.values().next().value;
    if (!job) {
      this.#worker?.unref();
      return;
    }
    this.#running = job;
    if (!this.#worker) this.#startWorker();
    this.#worker?.ref();
    this.#worker?.postMessage({ voice: job.voice, text: job.text } satisfies FliteRequest);
    this.#watchdog = setTimeout(() => {
      this.#lost(`it took more than ${this.#limits.jobTimeoutMs} ms`);
    }, this.#limits.jobTimeoutMs);
  }

  #startWorker(): void {
    const worker = this.#startThread();
    this.#worker = worker;
    this.#isReady = false;
    this.#ready = new Promise((resolve, reject) => {
      worker.on("message", (reply: FliteReply) => {
        if (worker !== this.#worker) return;
        if (reply.kind === "ready") {
          this.#isReady = true;
          resolve();
        } else {
          this.#finished(reply);
        }
      });
      const lost = (reason: string) => {
        reject(new ProviderError("tts", `Speech synthesis cannot start: ${reason}`));
        if (worker === this.#worker) this.#lost(reason);
      };
      worker.on("error", (cause) => lost(cause instanceof Error ? cause.message : String(cause)));
      worker.on("exit", (code) => lost(`its thread ended with code ${code}`));
    });
    this.#ready.catch(() => {}); // who waits for it hears of it; nobody has to wait
  }

  #finished(reply: Exclude<FliteReply, { kind: "ready" }>): void {
    const job = this.#takeRunning();
    if (!job) return;
    if (reply.kind === "failed") {
      failAll(job, reply.message);
    } else {
      const { kind: _, ...speech } = reply;
      this.#keep(job.key, speech);
      for (const waiter of [...job.waiters]) waiter.done(speech);
    }
    this.#runNext();
  }

  /** The thread is gone or stuck: its request fails, the ones in line go on with another thread if this one ever worked. */
  #lost(reason: string): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    const job = this.#takeRunning();
    if (job) failAll(job, reason);
    if (!this.#isReady) this.#failLine(reason);
    this.#runNext();
  }

  #failLine(reason: string): void {
    const jobs = [...this.#jobs.values()];
    this.#jobs.clear();
    for (const job of jobs) failAll(job, reason);
  }

  #takeRunning(): Job | undefined {
    clearTimeout(this.#watchdog);
    const job = this.#running;
    this.#running = undefined;
    if (job) this.#jobs.delete(job.key);
    return job;
  }

  #keep(key: string, speech: Speech): void {
    this.#cache.set(key, speech);
    this.#cacheBytes += speech.samples.byteLength;
    for (const [oldest, { samples }] of this.#cache) {
      if (this.#cacheBytes <= this.#limits.cacheBytesMax) return;
      this.#cache.delete(oldest);
      this.#cacheBytes -= samples.byteLength;
    }
  }
}

function startFliteThread(): Worker {
  return startTypescriptWorker(new URL("./flite_worker.ts", import.meta.url));
}

function failAll(job: Job, reason: string): void {
  for (const waiter of [...job.waiters]) waiter.failed(reason);
}
