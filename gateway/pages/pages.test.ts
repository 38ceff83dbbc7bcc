import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, it } from "node:test";
import { pageFor } from "./pages.ts";

const textOf = (path: string) => new TextDecoder().decode(pageFor(path)?.body);

describe("the gateway's pages", () => {
  it("serve every asset that the page names, each with its type", () => {
    const html = textOf("/talk");
    const named = [...html.matchAll(/(?:src|href)="(\/talk\/[^"]+)"/g)].map((match) => match[1] ?? "");
    assert.ok(named.length >= 5);
    for (const path of named) assert.equal(pageFor(path)?.status, 200, path);
    assert.equal(pageFor("/talk/talk.js")?.headers["content-type"], "text/javascript; charset=utf-8");
    assert.equal(pageFor("/talk/base.css")?.headers["content-type"], "text/css; charset=utf-8");
  });

  it("import only modules that exist", () => {
    for (const name of readdirSync(new URL("./talk/", import.meta.url)).filter((name) => name.endsWith(".js"))) {
      for (const [, imported] of textOf(`/talk/${name}`).matchAll(/from "\.\/([^"]+)"/g)) {
        assert.equal(pageFor(`/talk/${imported}`)?.status, 200, `${name} imports ${imported}`);
      }
    }
  });

  it("keep to /talk and reach nothing beside it", () => {
    for (const path of ["/", "/talks", "/talk.html", "/v1/voice/calls", "/Talk"])
      assert.equal(pageFor(path), undefined);
    for (const path of [
      "/talk/../pages.ts",
      "/talk/%2e%2e/pages.ts",
      "/talk/pages.ts",
      "/talk/index.html",
      "/talk//",
    ]) {
      assert.equal(pageFor(path)?.status, 404, path);
    }
  });

  it("allow nothing inline, nothing from elsewhere, and sockets only where they are told", () => {
    const policy = pageFor("/talk", { connectTo: ["https://calls.example"] })?.headers["content-security-policy"] ?? "";
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.match(policy, /connect-src 'self' https:\/\/calls\.example wss:\/\/calls\.example;/);
    assert.doesNotMatch(policy, /unsafe|\*/);
    assert.doesNotMatch(textOf("/talk"), /<script(?![^>]*src=)|\sstyle=|\son\w+=|(src|href)="https?:/);
  });

  it("answer 304 to whoever holds the current version", () => {
    const etag = pageFor("/talk")?.headers.etag;
    assert.equal(pageFor("/talk", { ifNoneMatch: `"old", W/${etag}` })?.status, 304);
    assert.equal(pageFor("/talk", { ifNoneMatch: `"old"` })?.status, 200);
    assert.equal(pageFor("/talk", { ifNoneMatch: etag })?.body.length, 0);
  });
});
