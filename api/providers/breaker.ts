/**
 * A vendor that fails again and again is left alone for a while, by all calls of a thread that use the same
 * key: five failures within ten seconds open its breaker for ten seconds, and then one request tries.
 */

const failuresMax = 5;
const withinMs = 10_000;
const openMs = 10_000;
/** Keys that are remembered; the oldest is forgotten beyond. */
const keysMax = 1000;

export class VendorBreakers {
  readonly #failures = new Map<string, { atMs: number[]; openUntilMs: number }>();

  /** Whether it is left alone. Whoever asks when the time is over is the one that tries: others wait for what comes of it. */
  isOpen(key: string, nowMs: number): boolean {
    const known = this.#failures.get(key);
    if (!known || known.openUntilMs === 0) return false;
    if (nowMs < known.openUntilMs) return true;
    known.openUntilMs = nowMs + openMs;
    return false;
  }

  failed(key: string, nowMs: number): void {
    const known = this.#failures.get(key) ?? { atMs: [], openUntilMs: 0 };
    known.atMs = [...known.atMs.filter((atMs) => atMs > nowMs - withinMs), nowMs].slice(-failuresMax);
    if (known.atMs.length >= failuresMax) known.openUntilMs = nowMs + openMs;
    this.#failures.delete(key);
    this.#failures.set(key, known);
    if (this.#failures.size > keysMax) this.#failures.delete(this.#failures.keys().next().value ?? "");
  }

  succeeded(key: string): void {
    this.#failures.delete(key);
  }
}
