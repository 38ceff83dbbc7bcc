/** What our code asks of a logger; pino satisfies it. Fields first, then a fixed sentence. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Drops everything: for tests and for callers that bring no logger. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
