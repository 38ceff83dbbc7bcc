/**
 * The download of an app's or a project's traces: one JSON array, written as it is read, the newest first. What
 * fails after the head breaks the answer off and never closes the array: a cut download does not parse.
 */
import { Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { type Route, route } from "#http/route.ts";
import { timeBoundsOf, timeRangeQuery } from "#http/time_range.ts";
import { OptionalTimestamp, type Timestamp } from "#http/timestamp.ts";
import { Trace } from "./span.ts";
import { type TraceRouteDeps, tracePlaces } from "./trace_place.ts";

const limitMax = 1000;
const limitDefault = 10_000;

/** A run as a download has it. */
export const DownloadedRun = named(
  "DownloadedRun",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    status: Type.String(),
    started_at: OptionalTimestamp,
    ended_at: OptionalTimestamp,
    input: Type.Unsafe<unknown>({}),
    output: Type.Unsafe<unknown>({}),
    error: Type.Unsafe<unknown>({}),
    usage: Type.Unsafe<unknown>({}),
    nodes: Type.Array(
      Type.Object({
        node_id: Type.String({ description: "the node, as the workflow names it" }),
        status: Type.String({ description: "what has become of it" }),
        attempt: Type.Integer({ description: "how often it was tried" }),
        started_at: OptionalTimestamp,
        ended_at: OptionalTimestamp,
        output: Type.Unsafe<unknown>({ description: "what it answered" }),
        error: Type.Unsafe<unknown>({ description: "why it failed; null otherwise" }),
        usage: Type.Unsafe<unknown>({ description: "what its model used; null where it has none" }),
      }),
    ),
  }),
  {
    status: "what has become of it",
    input: "what it was started with",
    output: "what it answered; null before it succeeded",
    error: "why it failed; null otherwise",
    usage: "what its models used; null before its end",
    nodes: "what its nodes did, in the order in which they began",
  },
);
/** Runs by their ids. */
export type ReadRuns = (runIds: readonly string[]) => Promise<ReadonlyMap<string, object>>;

const { id, started_at, ended_at, status, input, output, usage } = Trace.properties;
const DownloadedTraces = named(
  "DownloadedTraces",
  Type.Array(
    Type.Object({
      ...{ id, started_at: started_at as typeof Timestamp, ended_at, status, input, output, usage },
      runs: Type.Optional(Type.Array(DownloadedRun, { description: "with `include_runs`: the run that it is of" })),
    }),
    { description: "the newest first" },
  ),
);

export interface TraceDownloadDeps extends TraceRouteDeps {
  /** What `include_runs` adds. */
  readRuns: ReadRuns;
}

export function traceDownloadRoutes(deps: TraceDownloadDeps): Route[] {
  return tracePlaces.map(({ path, of, paramsFrom, find }) =>
    route({
      method: "GET",
      path: `${path}/traces/download`,
      summary: `Download the traces of ${of} as one JSON array, the newest first`,
      guard: deps.personalAccessToken,
      query: {
        limit: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: limitMax,
            description: `1 to ${limitMax}; the newest ${limitDefault} unless given`,
          }),
        ),
        include_runs: Type.Optional(Type.Boolean({ description: "with the runs that the traces are of" })),
        ...timeRangeQuery("started_at"),
      },
      reply: { status: 200, body: DownloadedTraces, mediaType: "application/octet-stream" },
      errors: ["forbidden"],
      paramsFrom,
      examples: { of_november: { query: { "started_at:gte": "2026-11-01T00:00:00Z", limit: 100 } } },
      handle: async ({ principal, params, query, request }) => {
        const filter = { ...(await find(deps, principal, params)), startedAt: timeBoundsOf(query, "started_at") };
        const ended = new AbortController();
        const stopped = AbortSignal.any([request.signal, ended.signal]);
        const batches = deps.traces.streamTraces(filter, query.limit ?? limitDefault, stopped)[Symbol.asyncIterator]();
        // What fails before anything is sent is answered as any error is.
        const first = await batches.next();
        const texts = jsonArray(first, batches, async (traces) => {
          const runs = query.include_runs ? await deps.readRuns(traces.flatMap(runIdsOf)) : undefined;
          return traces.map((trace) => downloaded(trace, runs));
        });
        const name = filter.appId ?? filter.projectId;
        return new Response(
          streamOf(texts, () => ended.abort()),
          {
            headers: {
              "content-type": "application/octet-stream",
              "content-disposition": `attachment; filename="${name}-traces.json"`,
            },
          },
        );
      },
    }),
  );
}

const runIdsOf = ({ source, source_id }: Trace) => (source === "run" && source_id !== null ? [source_id] : []);

function downloaded(trace: Trace, runs?: ReadonlyMap<string, object>) {
  const { id, started_at, ended_at, status, input, output, usage } = trace;
  const ofTrace = runIdsOf(trace).flatMap((runId) => runs?.get(runId) ?? []);
  return { id, started_at, ended_at, status, input, output, usage, ...(runs && { runs: ofTrace }) };
}

/** Elements of one array as text, one after the other. */
async function* jsonArray<Item>(
  first: IteratorResult<readonly Item[]>,
  batches: AsyncIterator<readonly Item[]>,
  shown: (items: readonly Item[]) => Promise<readonly object[]>,
): AsyncGenerator<string> {
  try {
    let between = "[";
    for (let batch = first; !batch.done; batch = await batches.next()) {
      for (const one of await shown(batch.value)) {
        yield `${between}${JSON.stringify(one)}`;
        between = ",\n";
      }
    }
    yield between === "[" ? "[]\n" : "]\n";
  } finally {
    await batches.return?.();
  }
}

/** Texts smaller than this go together: a write for each trace would cost more than the trace. */
const chunkCharacters = 32 * 1024;

/** Read as the client takes it, and no further ahead. */
function streamOf(texts: AsyncGenerator<string>, onCancel: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      async pull(controller) {
        let chunk = "";
        while (chunk.length < chunkCharacters) {
          const next = await texts.next();
          if (next.done) {
            if (chunk !== "") controller.enqueue(encoder.encode(chunk));
            return controller.close();
          }
          chunk += next.value;
        }
        controller.enqueue(encoder.encode(chunk));
      },
      async cancel() {
        onCancel();
        await texts.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
