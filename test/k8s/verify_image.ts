/**
 * `npm run verify:image [-- FOLDER]`: builds the image's root file system, unless the folder has one
 * already, and starts the jobs and the three roles in it exactly as the production manifests say: command,
 * environment, user, read-only root, probes. They get a real Postgres and Redis on loopback. Then one of two
 * apis, a worker and the gateway are stopped as Kubernetes would, under requests.
 *
 * As root, on Linux, with mmdebstrap; about three minutes. Ends with 1 when something is not as it should be.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { startEmbeddedPostgres } from "#standalone/embedded_postgres.ts";
import { freePort } from "#standalone/ports.ts";
import { startTestRedis } from "#standalone/test_redis.ts";
import { environmentOf, k8sFolder, render, type Workload, workloadsIn } from "#test/kit/k8s/k8s_manifests.ts";
import { type RoleProcess, sharedSecrets, startProcess } from "../kit/role_process.ts";

const sizeMbMax = 350;
/** Of CPU until it is ready: what a quiet machine shows as time, and a busy one does not spoil. */
const startCpuSMax = 10;

/** Its own mounts: the root read-only, what the manifests mount, and what a container runtime brings. */
const inImage = `set -e; root=$1; shift
mount --bind "$root" "$root"; mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"; mount -t tmpfs -o uid=$1,mode=700 tmpfs "$root/data"
mount --rbind /dev "$root/dev"; mount -t proc proc "$root/proc"
uid=$1; shift; exec unshare --root="$root" --wd=/app --setuid="$uid" --setgid="$uid" -- "$@"`;

const objects = render("production");
const folder = resolve(process.argv[2] ?? join(tmpdir(), "frontdesk-image"));
const root = join(folder, "rootfs");
const { stdout: head } = spawnSync("git", ["rev-parse", "HEAD"], { cwd: k8sFolder, encoding: "utf8" });
const commitFile = join(folder, "commit");
// What is committed, not what is edited: the image is made of the former.
if (!existsSync(commitFile) || readFileSync(commitFile, "utf8") !== head) {
  const { status } = spawnSync(join(k8sFolder, "image", "rootfs.sh"), [folder], { stdio: "inherit" });
  assert.equal(status, 0, "the image was not built");
}

const say = (line: string) => process.stdout.write(`${line}\n`);
const closers: (() => unknown)[] = [];
try {
  lookInside();
  await startInside();
  say("the image is as it should be");
} finally {
  for (const close of closers.reverse()) await close();
}

function lookInside(): void {
  const { stdout } = spawnSync("du", ["-sm", "--one-file-system", root], { encoding: "utf8" });
  const sizeMb = Number.parseInt(stdout, 10);
  assert.ok(sizeMb > 50 && sizeMb <= sizeMbMax, `${sizeMb} MB, expected ${sizeMbMax} at most`);
  const { bomFormat, components } = JSON.parse(readFileSync(join(root, "app", "sbom.cdx.json"), "utf8"));
  assert.equal(bomFormat, "CycloneDX");
  const names = new Set(components.map(({ name }: { name: string }) => name));
  for (const name of ["hono", "uWebSockets.js", "libc6", "node"])
    assert.ok(names.has(name), `${name} is not in the SBOM`);
  for (const program of ["usr/bin/sh", "usr/bin/apt-get", "usr/local/bin/npm"])
    assert.ok(!existsSync(join(root, program)));
  say(`${sizeMb} MB, ${components.length} components in the SBOM, no shell`);
}

async function startInside(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "frontdesk-image-data-"));
  closers.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const postgres = await startEmbeddedPostgres({ dataDir: join(dataDir, "store"), durable: false });
  closers.push(() => postgres.stop());
  const redis = await startTestRedis();
  assert.ok(redis, "there is no redis-server");
  closers.push(() => redis.stop());

  const secrets: Record<string, string> = {
    ...sharedSecrets,
    DATABASE_URL: postgres.url,
    MIGRATE_DATABASE_URL: postgres.url,
    POOLER_DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    BOOTSTRAP_EMAIL: "desk@inn.example",
  };
  const workload = (name: string): Workload =>
    workloadsIn(objects).find((found) => found.name === name) ?? assert.fail(`there is no ${name}`);
  /** As its manifest says, but on loopback. */
  const start = (name: string, here: Record<string, string> = {}): RoleProcess => {
    const { container, pod } = workload(name);
    const env = { ...environmentOf(workload(name), objects, (key) => secrets[key] ?? assert.fail(key)), ...here };
    const uid = String(pod.securityContext.runAsUser);
    const command = ["unshare", "--mount", "sh", "-c", inImage, "sh", root, uid, ...container.command];
    return startProcess(command, { ...env, PATH: `/usr/local/bin:${process.env.PATH}`, TMPDIR: "/tmp" });
  };

  const [apiPort, otherPort, workerPort, gatewayPort] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const loopback = { BIND_ADDRESS: "127.0.0.1" };
  // Before there are tables: they wait.
  const apis = [apiPort, otherPort].map((port) => start("api", { ...loopback, API_PORT: String(port) }));
  const worker = start("worker", { ...loopback, WORKER_PORT: String(workerPort) });
  for (const role of [...apis, worker]) closers.push(() => role.stop("SIGKILL"));

  const migrate = start("migrate");
  assert.equal(await exitOf(migrate), 0, migrate.said());
  const beganMs = performance.now();
  const bootstrap = start("bootstrap");
  closers.push(() => bootstrap.stop("SIGKILL"));

  const balancer = await balance([apiPort, otherPort]);
  closers.push(() => balancer.close());
  const address = { API_URL: `http://127.0.0.1:${balancer.port}`, GATEWAY_PORT: String(gatewayPort) };
  const gatewayBeganMs = performance.now();
  const gateway = start("gateway", { ...loopback, ...address, DRAIN_TIMEOUT_S: "5", MEDIA_THREADS: "1" });
  closers.push(() => gateway.stop("SIGKILL"));
  const roles = [
    ...apis.map((process, i) => ({ name: "api", port: i === 0 ? apiPort : otherPort, process })),
    { name: "worker", port: workerPort, process: worker },
    { name: "gateway", port: gatewayPort, process: gateway },
  ];
  for (const { name, port, process } of roles) {
    const { container } = workload(name);
    for (const probe of ["livenessProbe", "readinessProbe"]) {
      await until200(`http://127.0.0.1:${port}${container[probe].httpGet.path}`, () => process.said());
    }
    const cpuS = cpuSecondsOf(process);
    const [sinceMs, what] = name === "gateway" ? [gatewayBeganMs, "its start"] : [beganMs, "the migration"];
    const ms = Math.round(performance.now() - sinceMs);
    say(`${name} is alive and ready ${ms} ms after ${what}, with ${cpuS} s of CPU`);
    assert.ok(cpuS > 0 && cpuS <= startCpuSMax, `${name} took ${cpuS} s of CPU to start`);
  }
  assert.match(gateway.said(), /"transport":"uws"/, "the native sockets did not load");
  assert.equal(await exitOf(bootstrap), 0, bootstrap.said());

  const load = requestsThrough(`http://127.0.0.1:${gatewayPort}/v1/auth/me`, 401);
  await wait(1000);
  assert.equal(await apis[0]?.stop(), 0, apis[0]?.said());
  await wait(1000);
  const { answered, failed } = await load.stop();
  assert.ok(answered > 50 && failed.length === 0, `${failed.length} of ${answered} failed: ${failed.slice(0, 3)}`);
  say(`an api stopped under ${answered} requests, none failed`);
  assert.equal(await worker.stop(), 0, worker.said());
  assert.equal(await gateway.stop(), 0, gateway.said());
  say("worker and gateway stopped with 0");
}

async function exitOf({ child }: RoleProcess): Promise<number | null> {
  if (child.exitCode === null) await once(child, "exit");
  return child.exitCode;
}

/** User and system time so far; a clock tick of /proc is 10 ms. */
function cpuSecondsOf({ child }: RoleProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function until200(url: string, words: () => string): Promise<void> {
  const endsAtMs = performance.now() + 60_000;
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return;
    if (performance.now() > endsAtMs) assert.fail(`${url} answered ${response?.status}: ${words()}`);
    await wait(50);
  }
}

/** As a Service: new connections go in turn to those that are ready; those that are there stay. */
async function balance(ports: readonly number[]): Promise<{ port: number; close(): void }> {
  let ready: readonly number[] = ports;
  let turn = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    turn += 1;
    const upstream = connect(ready[turn % ready.length] ?? 0, "127.0.0.1");
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy()).on("close", () => sockets.delete(one));
      one.pipe(other);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const looking = setInterval(async () => {
    const checks = ports.map(async (port) =>
      (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok ? port : 0,
    );
    ready = (await Promise.all(checks)).filter((port) => port !== 0);
  }, 500);
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      clearInterval(looking);
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Asks over and over, four at a time, until it is stopped. */
function requestsThrough(url: string, expected: number) {
  let stopped = false;
  let answered = 0;
  const failed: string[] = [];
  const askers = Array.from({ length: 4 }, async () => {
    while (!stopped) {
      const status = await fetch(url).then(
        async (response) => {
          await response.arrayBuffer();
          return response.status;
        },
        (error: Error) => error.message,
      );
      answered += 1;
      if (status !== expected) failed.push(String(status));
    }
  });
  return {
    async stop() {
      stopped = true;
      await Promise.all(askers);
      return { answered, failed };
    },
  };
}
