/**
 * The one WebSocket to vendors: guarded, with a bound on what waits, alive or said to be lost. What fails is
 * one typed error with the vendor's own words, in which the key never stands.
 */

import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";
import type { ProviderErrorKind } from "#contracts/codes.ts";
import type { ModelStage } from "#contracts/voice_agent.ts";
import { AddressRefusedError } from "#outbound/address_guard.ts";
import { openGuardedSocket } from "#outbound/guarded_socket.ts";
import type { ProviderAccess } from "./provider.ts";
import { kindOfStatus, ProviderError, vendorWords } from "./provider_error.ts";

export interface VendorTarget {
  stage: ModelStage;
  provider: string;
  /** With `http` or `https` as scheme, like the address of a connection. */
  url: string;
  headers: Record<string, string>;
}

export interface VendorSocketEvents {
  text(text: string): void;
  binary?(bytes: Uint8Array): void;
  /** Once, and then nothing more. A socket that the vendor closes has failed too. */
  failed(error: ProviderError): void;
}

export interface VendorSocket {
  /** Sends, or keeps it until the socket is open. Above the bound the oldest audio is dropped: what is late is of no use. */
  send(data: string | Uint8Array): void;
  /** No event follows. */
  close(): void;
  readonly isOver: boolean;
}

/** Of what waits for the socket to open, or for the network: 8 s of audio at 16 kHz. */
const waitingBytesMax = 256 * 1024;
const pingEveryMs = 15_000;
/** A vendor that gives no sign for so long is lost. */
const silenceMsMax = 45_000;
/** Of what a vendor says to a socket that it does not open. */
const wordsReadMax = 1000;

export function openVendorSocket(
  target: VendorTarget,
  access: ProviderAccess,
  events: VendorSocketEvents,
): VendorSocket {
  let waiting: (string | Uint8Array)[] | undefined = [];
  let waitingBytes = 0;
  let isOver = false;
  let heardAtMs = performance.now();
  let beat: NodeJS.Timeout | undefined;
  let socket: WebSocket | undefined;

  const end = () => {
    isOver = true;
    waiting = undefined;
    clearInterval(beat);
    socket?.removeAllListeners();
    // A socket that is let go may still fail; nobody is interested.
    socket?.on("error", () => {});
  };
  const fail = (words: string, kind: ProviderErrorKind, cause?: unknown) => {
    if (isOver) return;
    end();
    socket?.terminate();
    const message = vendorWords(`${target.provider} ${words}`, access.secret);
    events.failed(new ProviderError(target.stage, message, { kind, cause }));
  };
  const keepWaiting = (data: string | Uint8Array) => {
    waiting?.push(data);
    waitingBytes += data.length;
    while (waitingBytes > waitingBytesMax) {
      const oldest = waiting?.findIndex((one) => typeof one !== "string") ?? -1;
      if (oldest < 0) return fail("took none of what was sent", "timeout");
      waitingBytes -= waiting?.splice(oldest, 1)[0]?.length ?? 0;
    }
  };
  const dial = () => {
    const url = target.url.replace(/^http/, "ws");
    socket = openGuardedSocket({ url, headers: target.headers }, access.http.guard);
    socket.binaryType = "nodebuffer";
    socket.on("open", () => {
      for (const data of waiting ?? []) socket?.send(data);
      waiting = undefined;
      beat = setInterval(() => {
        if (performance.now() - heardAtMs > silenceMsMax) fail("gives no sign any more", "network");
        else socket?.ping();
      }, pingEveryMs).unref();
    });
    socket.on("message", (data: Buffer, isBinary) => {
      heardAtMs = performance.now();
      if (isBinary) events.binary?.(data);
      else events.text(data.toString());
    });
    socket.on("pong", () => {
      heardAtMs = performance.now();
    });
    socket.on("unexpected-response", async (_request, response) => {
      const words = await readWords(response);
      const status = response.statusCode ?? 0;
      fail(`answered ${status}${words && `: ${words}`}`, status < 400 ? "protocol" : kindOfStatus(status));
    });
    socket.on("error", (error) => {
      if (error instanceof AddressRefusedError) fail(`cannot be dialled: ${error.message}`, "address_refused", error);
      else if (error.message.includes("handshake has timed out")) fail("did not answer", "timeout", error);
      else fail("could not be reached, or the connection broke", "network", error);
    });
    socket.on("close", (code, reason) => fail(`closed the connection: ${code} ${reason}`.trim(), kindOfClose(code)));
  };

  // Not before the caller has the socket in hand.
  queueMicrotask(() => {
    if (isOver) return;
    try {
      dial();
    } catch (error) {
      const isRefused = error instanceof AddressRefusedError;
      fail(
        isRefused ? `cannot be dialled: ${error.message}` : "has no address that can be dialled",
        "address_refused",
        error,
      );
    }
  });
  return {
    get isOver() {
      return isOver;
    },
    send(data) {
      if (isOver) return;
      if (waiting) keepWaiting(data);
      else if (typeof data === "string" || (socket?.bufferedAmount ?? 0) < waitingBytesMax) socket?.send(data);
    },
    close() {
      if (isOver) return;
      end();
      if (socket?.readyState === 1) socket.close(1000);
      else socket?.terminate();
    },
  };
}

/** RFC 6455, section 7.4.1. */
function kindOfClose(code: number): ProviderErrorKind {
  if (code === 1008) return "bad_request";
  if (code === 1002 || code === 1003 || code === 1007 || code === 1009) return "protocol";
  return code >= 1011 && code <= 1013 ? "unavailable" : "network";
}

/** The beginning of what the vendor says to a socket that it does not open. */
async function readWords(response: IncomingMessage): Promise<string> {
  let words = "";
  response.setTimeout(1000, () => response.destroy());
  try {
    for await (const chunk of response) {
      words += chunk;
      if (words.length > wordsReadMax) break;
    }
  } catch {
    // What was read is told.
  }
  return words.trim();
}
