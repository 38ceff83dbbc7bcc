/** A Redis for tests: the one that `TEST_REDIS_URL` names, or a server of our own that keeps nothing. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { eventually } from "./gateway_fixture.ts";

/** Why tests that need Redis are skipped, or false. @param givenUrl `TEST_REDIS_URL` */
export function redisMissing(givenUrl: string | undefined): string | false {
  if (givenUrl || spawnSync("redis-server", ["--version"]).status === 0) return false;
  return "no TEST_REDIS_URL and no redis-server on this machine";
}

export interface RedisForTests {
  url: string;
  stop(): Promise<void>;
}

export async function startRedis(givenUrl: string | undefined): Promise<RedisForTests> {
  if (givenUrl) return { url: givenUrl, stop: async () => {} };
  const port = await freePort();
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", options, { stdio: ["ignore", "pipe", "ignore"] });
  let output = "";
  child.stdout.on("data", (data: Buffer) => {
    output += data.toString();
  });
  await eventually(() => output.includes("Ready to accept connections"), "redis-server is ready");
  return {
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      const exited = once(child, "exit");
      child.kill();
      await exited;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
