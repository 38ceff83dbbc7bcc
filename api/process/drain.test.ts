import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Pool } from "undici";
import { drainable } from "./drain.ts";
import { listen } from "./http_listener.ts";

describe("an api that is told to stop", () => {
  it("is not ready, serves on and closes kept-alive connections, until the delay is over", async () => {
    const api = drainable(async () => Response.json({ served: true }));
    const listener = await listen(api.fetch, { host: "127.0.0.1", port: 0 });
    const client = new Pool(listener.url, { connections: 1 });
    const ask = async (path: string) => {
      const { statusCode, headers, body } = await client.request({ method: "GET", path });
      await body.dump();
      return { statusCode, connection: headers.connection };
    };
    assert.deepEqual(await ask("/readyz"), { statusCode: 200, connection: "keep-alive" });
    const drained = api.drain(20);
    assert.deepEqual(await ask("/readyz"), { statusCode: 503, connection: "close" });
    assert.deepEqual(await ask("/v1/projects"), { statusCode: 200, connection: "close" });
    await drained;
    await client.close();
    await listener.close();
  });
});
