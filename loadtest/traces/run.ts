/**
 * What traces cost: spans through the collector until they are durable, lists of one day among all of them, and
 * what a download of 10,000 traces adds to the process' memory.
 */
import { Pool } from "undici";
import type { Figure } from "../kit/figures.ts";
import type { GatewayUnderLoad } from "../kit/frontdesk_processes.ts";
import { processUsage } from "../kit/process_usage.ts";
import { Distribution, Tally } from "../kit/statistics.ts";
import { exportBody, type SpanShape } from "./export_body.ts";
import type { TracesOptions } from "./options.ts";

const dayMs = 86_400_000;
const retryMs = 50;
const memorySampledEachMs = 50;
const warmUp = { spans: 20_000 };
/** What the download is of: as many traces as it brings unless it is asked for fewer. */
const downloaded = { spans: 10_000, spansPerRequest: 100, days: 1, spansOfTrace: 1, textCharacters: 20_000 };
const mebibyte = 1024 * 1024;

export async function runTraces(
  gateway: GatewayUnderLoad,
  options: TracesOptions,
  report: (line: string) => void,
): Promise<Figure[]> {
  const pool = new Pool(gateway.url, { connections: options.senders + 1, bodyTimeout: 0 });
  try {
    await ingest(pool, gateway, { ...options, ...warmUp }, () => undefined);
    return [
      ...(await ingest(pool, gateway, options, report)),
      ...(await lists(pool, gateway, options, report)),
      ...(await download(pool, gateway, options, report)),
    ];
  } finally {
    await pool.close();
  }
}

async function ingest(
  pool: Pool,
  gateway: GatewayUnderLoad,
  { spans, spansPerRequest, senders, days, ...shape }: TracesOptions & Partial<SpanShape>,
  report: (line: string) => void,
): Promise<Figure[]> {
  const answers = new Distribution();
  const refusals = new Tally();
  const headers = {
    authorization: `Bearer ${gateway.access.accessKey}`,
    "content-type": "application/x-protobuf",
  };
  let left = spans;
  let requests = 0;
  let bytes = 0;

  async function send(body: Uint8Array): Promise<void> {
    for (;;) {
      const startedMs = performance.now();
      const { statusCode, body: answer } = await pool.request({
        method: "POST",
        path: "/-/collector/v1/traces",
        headers,
        body,
      });
      await answer.dump();
      answers.record(performance.now() - startedMs);
      if (statusCode === 200) return;
      if (statusCode !== 429 && statusCode !== 503) throw new Error(`Cannot send spans: the answer was ${statusCode}`);
      refusals.add(String(statusCode));
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
  const before = await processUsage(gateway.pid);
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: senders }, async () => {
      while (left > 0) {
        const count = Math.min(left, spansPerRequest);
        left -= count;
        requests += 1;
        const body = exportBody(count, Date.now() - (requests % days) * dayMs, shape);
        bytes += body.length;
        await send(body);
        if (requests % 200 === 0) report(`${spans - left} of ${spans} spans are sent`);
      }
    }),
  );
  const seconds = (performance.now() - startedMs) / 1000;
  const after = await processUsage(gateway.pid);
  const cpuMs = (after?.cpuMs ?? 0) - (before?.cpuMs ?? 0);
  return [
    { name: "spans answered and durable", unit: "/s", value: spans / seconds, goal: "≥ 10,000" },
    { name: "bytes of a span", unit: "B", value: bytes / spans },
    { name: "CPU of Frontdesk without Postgres", unit: "µs/span", value: (cpuMs * 1000) / spans },
    { name: "requests asked to come again", unit: "", value: refusals.total },
    { name: "answer to a request", unit: "ms", value: answers },
  ];
}

async function lists(
  pool: Pool,
  gateway: GatewayUnderLoad,
  { lists: count, days, spans }: TracesOptions,
  report: (line: string) => void,
): Promise<Figure[]> {
  report("lists of one day");
  const ofList = new Distribution();
  const ofSpans = new Distribution();
  const read = async (path: string, times: Distribution) => {
    const startedMs = performance.now();
    const { statusCode, body } = await pool.request({ method: "GET", path, headers: patOf(gateway) });
    const answer = (await body.json()) as { data: { id: string }[] };
    times.record(performance.now() - startedMs);
    if (statusCode !== 200) throw new Error(`Cannot list traces: the answer was ${statusCode}`);
    return answer.data;
  };
  for (let at = 0; at < count; at += 1) {
    const until = Date.now() - (at % days) * dayMs;
    const within = new URLSearchParams({
      "started_at:gte": new Date(until - dayMs / 2).toISOString(),
      "started_at:lt": new Date(until + dayMs / 2).toISOString(),
      page_size: "20",
    });
    const base = `/v1/projects/${gateway.access.projectId}/traces`;
    const [first] = await read(`${base}?${within}`, ofList);
    if (first) await read(`${base}/${first.id}/spans`, ofSpans);
  }
  const among = `among ${spans.toLocaleString("en")} spans`;
  return [
    { name: `list of one day ${among}`, unit: "ms", value: ofList, goal: "p95 ≤ 50" },
    { name: "spans of a trace", unit: "ms", value: ofSpans },
  ];
}

async function download(
  pool: Pool,
  gateway: GatewayUnderLoad,
  options: TracesOptions,
  report: (line: string) => void,
): Promise<Figure[]> {
  report("a download of 10,000 traces of 20 KiB");
  await ingest(pool, gateway, { ...options, ...downloaded }, () => undefined);
  const path = `/v1/projects/${gateway.access.projectId}/traces/download`;
  const rssBytes = async () => (await processUsage(gateway.pid))?.rssBytes ?? 0;
  const before = await rssBytes();
  let most = before;
  const sampler = setInterval(async () => {
    most = Math.max(most, await rssBytes());
  }, memorySampledEachMs);
  const startedMs = performance.now();
  let bytes = 0;
  try {
    const { statusCode, body } = await pool.request({ method: "GET", path, headers: patOf(gateway) });
    if (statusCode !== 200) throw new Error(`Cannot download traces: the answer was ${statusCode}`);
    for await (const chunk of body) bytes += (chunk as Buffer).length;
  } finally {
    clearInterval(sampler);
  }
  return [
    { name: "download of the newest 10,000 traces", unit: "ms", value: performance.now() - startedMs },
    { name: "its size", unit: "MiB", value: bytes / mebibyte },
    { name: "memory that it adds", unit: "MiB", value: (most - before) / mebibyte, goal: "≤ 50" },
  ];
}

const patOf = ({ access }: GatewayUnderLoad) => ({ authorization: `Bearer ${access.token}` });
