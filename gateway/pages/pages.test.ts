import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, it } from "node:test";
import { pageFor } from "./pages.ts";

const textOf = (path: string) => new TextDecoder().decode(pageFor(path)?.body);

describe("the gateway's pages", () => {
  for (const page of ["talk", "runs"]) {
    it(`serve every asset that /${page} names, each with its type`, () => {
      const named = [...textOf(`/${page}`).matchAll(/(?:src|href)="(\/\w+\/[^"]+)"/g)].map((match) => match[1] ?? "");
      assert.ok(named.length >= 5);
      for (const path of named) assert.equal(pageFor(path)?.status, 200, path);
      assert.equal(pageFor(`/${page}/${page}.js`)?.headers["content-type"], "text/javascript; charset=utf-8");
      assert.equal(pageFor("/talk/base.css")?.headers["content-type"], "text/css; charset=utf-8");
    });

    it(`import only modules that exist: /${page}`, () => {
      for (const name of readdirSync(new URL(`./${page}/`, import.meta.url)).filter((name) => name.endsWith(".js"))) {
        for (const [, imported = ""] of textOf(`/${page}/${name}`).matchAll(/from "(\.[^"]+)"/g)) {
          const { pathname } = new URL(imported, `http://page.test/${page}/${name}`);
          assert.equal(pageFor(pathname)?.status, 200, `${name} imports ${imported}`);
        }
      }
    });
  }

  it("keep to themselves and reach nothing beside them", () => {
    for (const path of ["/", "/talks", "/run", "/talk.html", "/v1/voice/calls", "/Talk"])
      assert.equal(pageFor(path), undefined);
    for (const path of [
      "/talk/../pages.ts",
      "/talk/%2e%2e/pages.ts",
      "/talk/pages.ts",
      "/talk/index.html",
      "/talk//",
      "/runs/../pages.ts",
      "/runs/talk.js",
    ]) {
      assert.equal(pageFor(path)?.status, 404, path);
    }
  });

  it("allow nothing inline, nothing from elsewhere, and sockets only where they are told", () => {
    const policy = pageFor("/talk", { connectTo: ["https://calls.example"] })?.headers["content-security-policy"] ?? "";
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.match(policy, /connect-src 'self' https:\/\/calls\.example wss:\/\/calls\.example;/);
    assert.doesNotMatch(policy, /unsafe|\*/);
    for (const page of ["/talk", "/runs"]) {
      assert.doesNotMatch(textOf(page), /<script(?![^>]*src=)|\sstyle=|\son\w+=|(src|href)="https?:/);
    }
  });

  it("say whether there are rooms, and let the page reach their server where there are", () => {
    const offered = (liveKitUrl?: string) => {
      const page = pageFor("/talk/offers.json", { liveKitUrl });
      assert.equal(page?.headers["content-type"], "application/json");
      return JSON.parse(new TextDecoder().decode(page?.body));
    };
    assert.deepEqual(offered(), { rooms: false });
    assert.deepEqual(offered("wss://rooms.example"), { rooms: true });
    const policy = pageFor("/talk", { liveKitUrl: "wss://rooms.example" })?.headers["content-security-policy"] ?? "";
    assert.match(policy, /connect-src 'self' https:\/\/rooms\.example wss:\/\/rooms\.example;/);
  });

  it("answer 304 to whoever holds the current version", () => {
    const etag = pageFor("/talk")?.headers.etag;
    assert.equal(pageFor("/talk", { ifNoneMatch: `"old", W/${etag}` })?.status, 304);
    assert.equal(pageFor("/talk", { ifNoneMatch: `"old"` })?.status, 200);
    assert.equal(pageFor("/talk", { ifNoneMatch: etag })?.body.length, 0);
  });
});
