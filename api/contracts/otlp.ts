/** Bounds of what the traces collector takes in one request of OTLP over HTTP. */

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

export const otlpLimits = {
  /** Of a body as it is sent, gzip or not. */
  packedBytesMax: 8 * mebibyte,
  /** Of the same body without its gzip: whatever is packed tighter is a bomb. */
  unpackedBytesMax: 32 * mebibyte,
  /** Of one attribute's text; the rest is cut. Input and output have a bound of their own. */
  attributeBytesMax: 32 * kibibyte,
  /** Of one span, event or link. More are dropped and counted. */
  attributesMax: 512,
  eventsMax: 128,
  linksMax: 128,
  /** Lists and maps inside of an attribute; what is deeper is null. */
  depthMax: 16,
  /** How far back a span may begin, and how far ahead of our clock. */
  daysBack: 30,
  daysAhead: 1,
} as const;
