/**
 * How long a request may take us. What is late is answered as unavailable, so that nobody hangs on a
 * store that neither answers nor fails; the work itself goes on, and nobody hears of it any more.
 */
import { ApiError } from "#contracts/errors.ts";

const retryAfterS = 2;

export class Deadline {
  #leftMs: number;

  constructor(ms: number) {
    this.#leftMs = ms;
  }

  /** Counts the time that this part takes. @throws ApiError unavailable when none is left before it settles */
  async within<T>(part: Promise<T>): Promise<T> {
    const startedAtMs = performance.now();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const cause = new Error("The request has taken as long as it may");
      timer = setTimeout(() => reject(new ApiError("unavailable", { retryAfterS, cause })), Math.max(0, this.#leftMs));
    });
    try {
      return await Promise.race([part, late]);
    } finally {
      clearTimeout(timer);
      this.#leftMs -= performance.now() - startedAtMs;
    }
  }
}
