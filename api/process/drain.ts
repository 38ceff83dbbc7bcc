/**
 * Going away behind a balancer: from the moment of being told, `/readyz` answers 503 and each answer
 * closes its connection; requests are served on until the balancers and kept-alive clients have left.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Fetch } from "#http/service.ts";

export interface Drainable {
  fetch: Fetch;
  /** Resolves after `delayMs`. */
  drain(delayMs: number): Promise<void>;
}

export function drainable(serve: Fetch): Drainable {
  let draining = false;
  return {
    async fetch(request) {
      if (!draining) return serve(request);
      const response =
        new URL(request.url).pathname === "/readyz"
          ? Response.json({ status: "draining" }, { status: 503 })
          : await serve(request);
      response.headers.set("connection", "close");
      return response;
    },
    async drain(delayMs) {
      draining = true;
      if (delayMs > 0) await wait(delayMs);
    },
  };
}
