import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Destination, destinationOf, isApisAlone } from "./hosts.ts";

const at = (host: string | undefined, path = "/v1/x"): Destination => destinationOf(host, path, "apps.localhost");

describe("where a request goes", () => {
  const rows: [string | undefined, string, Destination][] = [
    [
      "front-desk-k3x9q2.apps.localhost:8080",
      "/v1/runs",
      { service: "app", label: "front-desk-k3x9q2", path: "/v1/runs" },
    ],
    ["Front-Desk.Apps.LocalHost", "/", { service: "app", label: "front-desk", path: "/" }],
    ["127.0.0.1:8080", "/-/apps/Front-Desk/v1/runs", { service: "app", label: "front-desk", path: "/v1/runs" }],
    ["api.example.com", "/-/apps/front-desk", { service: "app", label: "front-desk", path: "/" }],
    ["guide.kb.example.com", "/v1/search", { service: "knowledge_base", label: "guide", path: "/v1/search" }],
    [undefined, "/-/kb/guide/v1/search", { service: "knowledge_base", label: "guide", path: "/v1/search" }],
    ["router.example.com", "/v1/models", { service: "router", path: "/v1/models" }],
    ["localhost", "/-/router/v1/models", { service: "router", path: "/v1/models" }],
    ["collector.localhost:8080", "/v1/traces", { service: "collector", path: "/v1/traces" }],
    ["localhost", "/-/collector/v1/traces", { service: "collector", path: "/v1/traces" }],
    ["api.example.com", "/v1/projects", { service: "platform", path: "/v1/projects" }],
    ["api.example.com", "/v1/bookings/1/refund", { service: "tax", path: "/v1/bookings/1/refund" }],
    ["127.0.0.1", "/openapi/tax.json", { service: "tax", path: "/openapi/tax.json" }],
    ["127.0.0.1", "/v1/orgs/me", { service: "accounts", path: "/v1/orgs/me" }],
    ["127.0.0.1", "/account/verify", { service: "accounts", path: "/account/verify" }],
  ];
  for (const [host, path, expected] of rows) {
    it(`${host ?? "no Host"} ${path}: ${expected.service}`, () => assert.deepEqual(at(host, path), expected));
  }

  it("takes what only resembles a host or a path form for a path of the platform", () => {
    const hosts = [
      "apps.localhost",
      "xapps.localhost",
      "router",
      "collector:8080",
      "kb.example.com",
      "a.kb",
      "[::1]:80",
    ];
    assert.deepEqual([...new Set(hosts.map((host) => at(host).service))], ["platform"]);
    const paths = [
      "/-/apps",
      "/-/apps/",
      "/-/apps/a.b/v1",
      "/-/kb//v1",
      "/-/routers/v1",
      "/-/",
      "/v1/taxes",
      "/v1/authority",
    ];
    assert.deepEqual([...new Set(paths.map((path) => at("localhost", path).service))], ["platform"]);
  });

  it("leaves an app's host every path, and those of the gateway to no other service", () => {
    assert.deepEqual(at("a.apps.localhost", "/-/apps/b/v1/runs"), {
      service: "app",
      label: "a",
      path: "/-/apps/b/v1/runs",
    });
    assert.deepEqual(
      ["a.apps.localhost", "a.kb.localhost", "router.localhost", "collector.localhost", "api.localhost"].map((host) =>
        isApisAlone(at(host, "/healthz")),
      ),
      [true, true, true, true, false],
    );
  });
});
