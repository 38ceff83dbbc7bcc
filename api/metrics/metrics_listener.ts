/** `/metrics` in Prometheus' text format on a port of its own, which is nobody's but the operator's. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { AggregatorRegistry, type Registry } from "prom-client";

export interface MetricsAddress {
  host: string;
  port: number;
  /** Whether somebody chose the port: otherwise a free one is taken where it is busy. */
  isGiven: boolean;
}

export interface MetricsListener {
  port: number;
  close(): Promise<void>;
}

/**
 * Serves the figures of one role, or of several in one process: then each sample says whose it is.
 * @throws Error EADDRINUSE when a given port is taken
 */
export async function serveMetrics(
  { host, port, isGiven }: MetricsAddress,
  roles: Readonly<Record<string, Registry>>,
): Promise<MetricsListener> {
  const server = createServer((request, response) => {
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (request.url?.split("?")[0] !== "/metrics") return response.writeHead(404).end();
    if (!isRead) return response.writeHead(405, { allow: "GET, HEAD" }).end();
    figuresOf(roles).then(
      ({ type, text }) => response.writeHead(200, { "content-type": type }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  await listenOn(server, host, port).catch((error: NodeJS.ErrnoException) => {
    if (isGiven || error.code !== "EADDRINUSE") throw error;
    return listenOn(server, host, 0);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A name may stand once in Prometheus' format: what several roles tell is told together. */
async function figuresOf(roles: Readonly<Record<string, Registry>>): Promise<{ type: string; text: string }> {
  const registries = Object.values(roles);
  const [only] = registries;
  if (registries.length === 1 && only) return { type: only.contentType, text: await only.metrics() };
  const told = await Promise.all(
    Object.entries(roles).map(async ([role, registry]) => {
      const metrics = await registry.getMetricsAsJSON();
      return metrics.map(({ values, ...metric }) => ({
        ...metric,
        // Nothing is added up: the label keeps the roles' samples apart.
        aggregator: "sum",
        values: values.map((value) => ({ ...value, labels: { ...value.labels, role } })),
      }));
    }),
  );
  const together = AggregatorRegistry.aggregate(told);
  return { type: together.contentType, text: await together.metrics() };
}

function listenOn(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
