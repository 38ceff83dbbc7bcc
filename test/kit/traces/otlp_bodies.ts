/** Export requests as tests send them, in OTLP's JSON. */

export interface OtlpSpanJson {
  traceId: string;
  spanId: string;
  [field: string]: unknown;
}

/** Random hex digits: a trace's id has 16 bytes, a span's 8. */
export function hexId(bytes: 8 | 16): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");
}

/** Attributes as OTLP has them: whole numbers are `intValue`, all else is text. */
export function otlpAttributes(values: Readonly<Record<string, string | number>>) {
  return Object.entries(values).map(([key, value]) => ({
    key,
    value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value },
  }));
}

/** A span of a second; `attributes` are plain values. */
export function otlpSpan(
  startedAt: Date,
  { attributes = {}, ...changes }: { attributes?: Readonly<Record<string, string | number>> } & Record<string, unknown>,
): OtlpSpanJson {
  const startMs = startedAt.getTime();
  return {
    traceId: hexId(16),
    spanId: hexId(8),
    name: "work",
    startTimeUnixNano: `${startMs}000000`,
    endTimeUnixNano: `${startMs + 1000}000000`,
    attributes: otlpAttributes(attributes),
    ...changes,
  };
}

export function otlpExport(spans: readonly OtlpSpanJson[], resource: Readonly<Record<string, string | number>> = {}) {
  return { resourceSpans: [{ resource: { attributes: otlpAttributes(resource) }, scopeSpans: [{ spans }] }] };
}
