/**
 * Request heads that two readers could take for different messages (RFC 9112, sections 3.2, 6.1 and 6.3;
 * RFC 6455, section 4.2.1): the way to smuggle a request past a proxy. They are answered with 400 on a
 * connection that closes, and nobody else sees them. What a library's own parser lets through between
 * the heads is in the README of the gateway.
 */
import type { RequestHead } from "./transport.ts";

type Headers = RequestHead["headers"];

/** Whether there is one way to find the end of the request, and one host that it is for. Pure. */
export function isFramedOnce(headers: Headers): boolean {
  const coding = headers["transfer-encoding"];
  const length = headers["content-length"];
  if (coding !== undefined && (length !== undefined || coding.toLowerCase() !== "chunked")) return false;
  // Repeated headers are joined with a comma, which neither can hold.
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return false;
  return headers.host === undefined || !headers.host.includes(",");
}

/** Whether a request asks to make a WebSocket of its connection, and to do nothing else with it. Pure. */
export function isPlainUpgrade(headers: Headers): boolean {
  const options = (headers.connection ?? "").toLowerCase().split(",");
  const asks = (option: string) => options.some((one) => one.trim() === option);
  const hasBody = "transfer-encoding" in headers || (headers["content-length"] ?? "0") !== "0";
  return headers.upgrade?.toLowerCase() === "websocket" && asks("upgrade") && !asks("close") && !hasBody;
}
