/** Request durations for Prometheus, by route as declared (never by the path as sent). */
import { Histogram, Registry } from "prom-client";

export interface RequestMetrics {
  registry: Registry;
  observe(route: string, method: string, status: number, durationS: number): void;
}

export function createRequestMetrics(): RequestMetrics {
  const registry = new Registry();
  const histogram = new Histogram({
    name: "frontdesk_api_request_duration_seconds",
    help: "Time to answer a request, by route and status",
    labelNames: ["route", "method", "status"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers: [registry],
  });
  return {
    registry,
    observe: (route, method, status, durationS) => histogram.observe({ route, method, status }, durationS),
  };
}
