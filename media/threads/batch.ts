/**
 * What crosses between threads in one turn of the event loop: one message with one buffer that
 * changes hands. The buffer is a row of records, each a head of four 64-bit floats and the bytes
 * that belong to it, padded to 8, so that samples can be read in place.
 */

export interface Batch {
  buffer: ArrayBuffer;
  usedBytes: number;
  /** What is no bytes; a record names its object by index. */
  objects: unknown[];
  /** Bytes of the other side's batches that were worked off since the last batch. */
  handledBytes: number;
}

const headBytes = 32;
const capacityBytesMin = 4096;

/** Gathers records in the order in which they are written. */
export class BatchWriter {
  #capacity = capacityBytesMin;
  #buffer: ArrayBuffer | undefined;
  #used = 0;
  #objects: unknown[] = [];
  #handledBytes = 0;

  get usedBytes(): number {
    return this.#used;
  }

  get isEmpty(): boolean {
    return this.#used === 0 && this.#handledBytes === 0;
  }

  /** A record with bytes, which are copied. */
  bytes(kind: number, session: number, value: number, bytes: Uint8Array): void {
    const at = this.#head(kind, session, value, bytes.length);
    new Uint8Array(this.#reserved(), at, bytes.length).set(bytes);
  }

  /** A record with a number alone. */
  value(kind: number, session: number, value: number): void {
    this.#head(kind, session, value, 0);
  }

  /** A record with an object, which is cloned. */
  object(kind: number, session: number, object: unknown): void {
    this.#objects.push(object);
    this.#head(kind, session, this.#objects.length - 1, 0);
  }

  handled(bytes: number): void {
    this.#handledBytes += bytes;
  }

  /** Everything since the last take; the writer begins anew. */
  take(): Batch {
    const batch = {
      buffer: this.#reserved(),
      usedBytes: this.#used,
      objects: this.#objects,
      handledBytes: this.#handledBytes,
    };
    this.#capacity = paddedTo8(Math.max(capacityBytesMin, this.#used * 1.25));
    this.#buffer = undefined;
    this.#used = 0;
    this.#objects = [];
    this.#handledBytes = 0;
    return batch;
  }

  /** Writes a head and makes room for its bytes; answers where they go. */
  #head(kind: number, session: number, value: number, length: number): number {
    const start = this.#used;
    this.#used += headBytes + paddedTo8(length);
    if (this.#used > this.#capacity || !this.#buffer) this.#grow(start);
    const head = new Float64Array(this.#reserved(), start, 4);
    head[0] = kind;
    head[1] = session;
    head[2] = value;
    head[3] = length;
    return start + headBytes;
  }

  #grow(keepBytes: number): void {
    while (this.#capacity < this.#used) this.#capacity *= 2;
    this.#capacity = paddedTo8(this.#capacity);
    const grown = new ArrayBuffer(this.#capacity);
    if (this.#buffer) new Uint8Array(grown).set(new Uint8Array(this.#buffer, 0, keepBytes));
    this.#buffer = grown;
  }

  #reserved(): ArrayBuffer {
    this.#buffer ??= new ArrayBuffer(this.#capacity);
    return this.#buffer;
  }
}

function paddedTo8(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

/** Reads a batch record by record. `bytes` is a view into the batch's buffer, which is the reader's to keep. */
export function readBatch(
  batch: Batch,
  onRecord: (kind: number, session: number, value: number, bytes: Uint8Array, object: unknown) => void,
): void {
  const heads = new Float64Array(batch.buffer);
  for (let at = 0; at < batch.usedBytes; ) {
    const head = at / 8;
    const kind = heads[head] ?? 0;
    const session = heads[head + 1] ?? 0;
    const value = heads[head + 2] ?? 0;
    const length = heads[head + 3] ?? 0;
    const bytes = new Uint8Array(batch.buffer, at + headBytes, length);
    onRecord(kind, session, value, bytes, batch.objects[value]);
    at += headBytes + paddedTo8(length);
  }
}
