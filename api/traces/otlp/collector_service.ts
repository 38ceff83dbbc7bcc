/** The traces collector as a service: its routes, the thread that reads for it, and the line into the store. */

import { type OpenApiInfo, openApiFor } from "#http/open_api/open_api.ts";
import { platformErrorContract } from "#http/platform_face.ts";
import { createService, type Fetch, type ServiceOptions } from "#http/service.ts";
import type { SpanStore } from "../span_store.ts";
import { type CollectorDeps, collectorRoutes, isProtobufRequest } from "./collector.ts";
import { DecodingThread } from "./decoding_thread.ts";
import { exportRefusal } from "./export_answer.ts";
import { SpanIntake } from "./span_intake.ts";

const info: OpenApiInfo = {
  title: "Frontdesk traces collector",
  version: "1",
  description: "OTLP over HTTP, on a host of its own (`collector.*`, or the path `/-/collector`), with access keys.",
};

export interface Collector {
  fetch: Fetch;
  /** Resolves when what was taken in is written, and the thread is gone. */
  close(): Promise<void>;
}

export function openCollector(
  deps: Omit<CollectorDeps, "thread" | "intake"> & { traces: SpanStore },
  serving: Omit<ServiceOptions, "routes" | "face" | "documents">,
): Collector {
  const thread = new DecodingThread();
  const intake = new SpanIntake(deps.traces);
  const routes = collectorRoutes({ ...deps, thread, intake });
  const openApi = openApiFor(info, platformErrorContract, routes);
  const documents = { "/openapi.json": async () => Response.json(openApi) };
  // A refusal is in the encoding of its request, and a service has one face.
  const serviceFor = (isProtobuf: boolean) =>
    createService({ ...serving, routes, documents, face: (error) => exportRefusal(error, isProtobuf) });
  const inJson = serviceFor(false);
  const inProtobuf = serviceFor(true);
  return {
    fetch: (request) => (isProtobufRequest(request) ? inProtobuf(request) : inJson(request)),
    async close() {
      await intake.idle();
      await thread.close();
    },
  };
}
