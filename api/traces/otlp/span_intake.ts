/**
 * Spans on their way into the store: what several requests bring is written in one commit, one commit at a
 * time, and each request waits for its own. Two commits at once would wait for each other's index pages and
 * write less. Bounded in all and by organization: nobody's burst takes the others their room.
 *
 *     requests ─► pieces in line (bounded) ─► one commit of up to `spansAtOnce` ─► their answers
 */
import { ApiError } from "#contracts/errors.ts";
import type { TraceSpans } from "../span.ts";
import type { SpanStore } from "../span_store.ts";

export const intakeLimits = {
  /** Of one commit. */
  spansAtOnce: 2048,
  /** In line, of all. */
  spansMax: 40_000,
  /** In line, of one organization. */
  organizationSpansMax: 32_768,
} as const;

const retryAfterS = 1;

interface Piece {
  organizationId: string;
  batch: TraceSpans[];
  spans: number;
  done(): void;
  failed(error: unknown): void;
}

export class SpanIntake {
  readonly #store: Pick<SpanStore, "writeSpans">;
  readonly #pieces: Piece[] = [];
  readonly #ofOrganization = new Map<string, number>();
  #spans = 0;
  #writing: Promise<void> | undefined;

  constructor(store: Pick<SpanStore, "writeSpans">) {
    this.#store = store;
  }

  /** Whether it is of use to read a request at all. @throws ApiError unavailable, too_many_requests */
  requireRoom(organizationId: string, spans = 1): void {
    const own = this.#ofOrganization.get(organizationId) ?? 0;
    if (own + spans > intakeLimits.organizationSpansMax) throw new ApiError("too_many_requests", { retryAfterS });
    if (this.#spans + spans > intakeLimits.spansMax) throw new ApiError("unavailable", { retryAfterS });
  }

  /** Resolves when all of it is durable. @throws ApiError unavailable, too_many_requests; or the store's error */
  async add(organizationId: string, batch: readonly TraceSpans[]): Promise<void> {
    const pieces = piecesOf(batch);
    const spans = pieces.reduce((sum, piece) => sum + piece.spans, 0);
    this.requireRoom(organizationId, spans);
    this.#count(organizationId, spans);
    await Promise.all(
      pieces.map(
        (piece) =>
          new Promise<void>((done, failed) => {
            this.#pieces.push({ ...piece, organizationId, done, failed });
          }),
        this.#start(),
      ),
    );
  }

  /** Resolves when what is in line is written. */
  async idle(): Promise<void> {
    await this.#writing;
  }

  #start(): void {
    // Begins when those that come in the same turn of the loop are in line too.
    this.#writing ??= Promise.resolve()
      .then(() => this.#writeAll())
      .finally(() => {
        this.#writing = undefined;
      });
  }

  async #writeAll(): Promise<void> {
    while (this.#pieces.length > 0) {
      const pieces = this.#next();
      await this.#write(pieces);
    }
  }

  /** As many from the front as one commit takes, and one at least. */
  #next(): Piece[] {
    let spans = 0;
    const end = this.#pieces.findIndex((piece, index) => {
      spans += piece.spans;
      return index > 0 && spans > intakeLimits.spansAtOnce;
    });
    return this.#pieces.splice(0, end < 0 ? this.#pieces.length : end);
  }

  async #write(pieces: readonly Piece[]): Promise<void> {
    try {
      await this.#store.writeSpans(pieces.flatMap(({ batch }) => batch));
    } catch (error) {
      // What one request brings that the store refuses is not the others' fault.
      if (pieces.length > 1) {
        for (const piece of pieces) await this.#write([piece]);
        return;
      }
      return this.#settle(pieces, (piece) => piece.failed(error));
    }
    this.#settle(pieces, (piece) => piece.done());
  }

  #settle(pieces: readonly Piece[], settle: (piece: Piece) => void): void {
    for (const piece of pieces) {
      this.#count(piece.organizationId, -piece.spans);
      settle(piece);
    }
  }

  #count(organizationId: string, spans: number): void {
    this.#spans += spans;
    const own = (this.#ofOrganization.get(organizationId) ?? 0) + spans;
    if (own > 0) this.#ofOrganization.set(organizationId, own);
    else this.#ofOrganization.delete(organizationId);
  }
}

/** A request in parts that each fit a commit. */
function piecesOf(batch: readonly TraceSpans[]): Pick<Piece, "batch" | "spans">[] {
  const pieces: Pick<Piece, "batch" | "spans">[] = [];
  let last: Pick<Piece, "batch" | "spans"> | undefined;
  for (const { trace, spans } of batch) {
    for (let from = 0; from < spans.length; ) {
      if (!last || last.spans >= intakeLimits.spansAtOnce) {
        last = { batch: [], spans: 0 };
        pieces.push(last);
      }
      const part = spans.slice(from, from + intakeLimits.spansAtOnce - last.spans);
      last.batch.push({ trace, spans: part });
      last.spans += part.length;
      from += part.length;
    }
  }
  return pieces;
}
