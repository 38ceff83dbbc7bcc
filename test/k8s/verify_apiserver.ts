/**
 * `npm run verify:apiserver`: a real kube-apiserver on a real etcd, both on loopback and gone afterwards,
 * is asked to take every object of every overlay (server-side, dry, strict), and refuses spoiled ones.
 * KEDA's and the Prometheus operator's kinds it does not know; their models are checked by `npm test`.
 *
 * The programs are built once from their Go modules, in about ten minutes on two quiet cores, and kept.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "#standalone/ports.ts";
import { type Manifest, overlays, render } from "#test/kit/k8s/k8s_manifests.ts";

const foreignKinds = ["ScaledObject", "PodMonitor", "PrometheusRule"];
const readyMsMax = 60_000;

const built = spawnSync(join(dirname(fileURLToPath(import.meta.url)), "build_apiserver.sh"), {
  encoding: "utf8",
  stdio: ["ignore", "pipe", "inherit"],
});
assert.equal(built.status, 0, "kube-apiserver was not built");
const programs = built.stdout.trim();
const folder = mkdtempSync(join(tmpdir(), "frontdesk-apiserver-"));
const children: ReturnType<typeof spawn>[] = [];
try {
  const kubectl = await startServer();
  for (const overlay of overlays) {
    const objects = render(overlay).filter(({ kind }) => !foreignKinds.includes(kind));
    // A namespace has to be there before anything is taken in it, and dry runs make none.
    const [namespace] = objects.filter(({ kind }) => kind === "Namespace");
    assert.equal(kubectl(["create", "--filename=-"], [namespace]).status, 0);
    const { status, output } = apply(kubectl, objects);
    assert.equal(status, 0, output);
    process.stdout.write(`${overlay}: ${objects.length} objects taken\n`);
  }
  refuses(kubectl, "an unknown field", /unknown field "replicsa"/, (objects) => {
    find(objects, "Deployment", "api").spec.replicsa = 2;
  });
  refuses(kubectl, "a wrong type", /spec.replicas/, (objects) => {
    find(objects, "Deployment", "api").spec.replicas = "three";
  });
  refuses(kubectl, "a probe without a question", /livenessProbe/, (objects) => {
    delete find(objects, "Deployment", "worker").spec.template.spec.containers[0].livenessProbe.httpGet;
  });
  refuses(kubectl, "a selector that does not match its pods", /selector/, (objects) => {
    find(objects, "StatefulSet", "gateway").spec.selector.matchLabels.extra = "yes";
  });
  // By the namespace's pod security standard, which warns for owners of pods.
  warns(kubectl, "root", /runAsNonRoot/, (objects) => {
    find(objects, "Deployment", "worker").spec.template.spec.securityContext.runAsNonRoot = false;
  });
} finally {
  for (const child of children.reverse()) {
    if (child.exitCode !== null) continue;
    child.kill("SIGTERM");
    await once(child, "exit");
  }
  rmSync(folder, { recursive: true, force: true });
}

type Kubectl = (args: readonly string[], objects: readonly Manifest[]) => { status: number | null; output: string };

/** @returns kubectl, speaking to a server that is ready */
async function startServer(): Promise<Kubectl> {
  const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()];
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const token = randomBytes(16).toString("hex");
  writeFileSync(join(folder, "key"), privateKey, { mode: 0o600 });
  writeFileSync(join(folder, "key.pub"), publicKey);
  writeFileSync(join(folder, "tokens.csv"), `${token},admin,admin,system:masters\n`, { mode: 0o600 });
  const etcd = `http://127.0.0.1:${etcdPort}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  run("etcd", [
    `--data-dir=${join(folder, "etcd")}`,
    `--listen-client-urls=${etcd}`,
    `--advertise-client-urls=${etcd}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ]);
  const beganMs = performance.now();
  const server = run("kube-apiserver", [
    `--etcd-servers=${etcd}`,
    `--secure-port=${port}`,
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    `--cert-dir=${folder}`,
    `--service-account-key-file=${join(folder, "key.pub")}`,
    `--service-account-signing-key-file=${join(folder, "key")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--token-auth-file=${join(folder, "tokens.csv")}`,
    "--authorization-mode=RBAC",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--disable-admission-plugins=ServiceAccount",
  ]);
  const kubectl: Kubectl = (args, objects) => {
    const { status, stdout, stderr } = spawnSync(
      join(programs, "kubectl"),
      [`--server=https://127.0.0.1:${port}`, `--token=${token}`, "--insecure-skip-tls-verify", ...args],
      {
        encoding: "utf8",
        input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }),
        env: { HOME: folder },
      },
    );
    return { status, output: `${stdout}${stderr}` };
  };
  while (kubectl(["get", "--raw=/readyz"], []).status !== 0) {
    assert.equal(server.exitCode, null, "kube-apiserver ended before it was ready");
    assert.ok(performance.now() - beganMs < readyMsMax, "kube-apiserver was not ready in time");
    await wait(200);
  }
  process.stdout.write(`kube-apiserver was ready after ${Math.round(performance.now() - beganMs)} ms\n`);
  return kubectl;
}

function run(program: string, args: readonly string[]) {
  const child = spawn(join(programs, program), args, { stdio: "ignore" });
  children.push(child);
  return child;
}

function apply(kubectl: Kubectl, objects: readonly Manifest[]) {
  return kubectl(["apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-"], objects);
}

function spoiled(spoil: (objects: Manifest[]) => void): Manifest[] {
  const objects = render("production").filter(({ kind }) => !foreignKinds.includes(kind));
  spoil(objects);
  return objects;
}

function refuses(kubectl: Kubectl, what: string, reason: RegExp, spoil: (objects: Manifest[]) => void): void {
  const { status, output } = apply(kubectl, spoiled(spoil));
  assert.notEqual(status, 0, `${what} was taken`);
  assert.match(output, reason);
  process.stdout.write(`${what}: refused\n`);
}

function warns(kubectl: Kubectl, what: string, reason: RegExp, spoil: (objects: Manifest[]) => void): void {
  const { output } = apply(kubectl, spoiled(spoil));
  assert.match(output, /would violate PodSecurity/);
  assert.match(output, reason);
  process.stdout.write(`${what}: warned of\n`);
}

function find(objects: readonly Manifest[], kind: string, name: string): Manifest {
  return objects.find((object) => object.kind === kind && object.metadata.name === name) ?? assert.fail(name);
}
