/** The manifests of `k8s/` as kustomize renders them, and the tools that this takes. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

export const k8sFolder = fileURLToPath(new URL("../../../k8s", import.meta.url));
export const overlays = ["dev", "production"] as const;

/** Where `.ci/run` keeps what it fetched or built. */
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "frontdesk-ci");
const schemaFolder = join(cache, "kubernetes-schemas-1.37.0");

// biome-ignore lint/suspicious/noExplicitAny: a manifest is whatever its YAML says, and tests change it at will
export type Manifest = any;

/** The command that renders, or undefined where the machine has none. */
const renderer = [
  ["kubectl", "kustomize"],
  ["kustomize", "build"],
  [join(cache, "kustomize-5.7.1", "kustomize"), "build"],
].find(([program = ""]) => !spawnSync(program, ["version", "--client"]).error);

/** Reasons to skip, false where there is none. */
export const noRenderer = renderer ? false : "no kubectl or kustomize on the PATH";
export const noSchemas = existsSync(schemaFolder)
  ? false
  : "no schemas of Kubernetes' kinds: .ci/k8s_tools fetches them";
export const noPromtool = spawnSync("promtool", ["--version"]).error ? "no promtool on the PATH" : false;

export type Overlay = (typeof overlays)[number];

/** All objects of an overlay. @throws Error with the renderer's words when it refuses */
export function render(overlay: Overlay): Manifest[] {
  const [program = "", verb = ""] = renderer ?? [];
  const { status, stdout, stderr } = spawnSync(program, [verb, join(k8sFolder, "overlays", overlay)], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`Cannot render ${overlay}: ${stderr}`);
  return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
}

/** The published schema of a kind, in which unknown fields are refused; undefined for one of no schema of ours. */
export function schemaOf({ apiVersion, kind }: Manifest): { $id: string } | undefined {
  const [group = "", version] = (apiVersion as string).includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const name = [kind, group.split(".")[0], version].filter((part) => part !== "").join("-");
  const file = join(schemaFolder, `${name.toLowerCase()}.json`);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

export const definitions = () => JSON.parse(readFileSync(join(schemaFolder, "_definitions.json"), "utf8"));

/** Pods' owners, with their pod and its container. */
export interface Workload {
  object: Manifest;
  name: string;
  pod: Manifest;
  container: Manifest;
}

export function workloadsIn(objects: readonly Manifest[]): Workload[] {
  return objects
    .filter(({ kind }) => ["Deployment", "StatefulSet", "Job"].includes(kind))
    .map((object) => ({
      object,
      name: object.metadata.name,
      pod: object.spec.template.spec,
      container: object.spec.template.spec.containers[0],
    }));
}

/** Whether it runs our image. */
export const isOurs = ({ container }: Workload) => /(^|\/)frontdesk:/.test(container.image);

/**
 * The environment that a container starts with, as the kubelet would make it: config maps, values,
 * fields of a pod named `<workload>-0`, and secrets by `secretOf`. Optional secrets are not there.
 */
export function environmentOf(
  { name, container }: Workload,
  objects: readonly Manifest[],
  secretOf: (key: string) => string,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const { configMapRef } of container.envFrom ?? []) {
    const map = objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === configMapRef.name);
    Object.assign(env, map.data);
  }
  const own: Record<string, string> = {};
  for (const { name: variable, value, valueFrom } of container.env ?? []) {
    if (valueFrom?.secretKeyRef?.optional) continue;
    if (valueFrom?.secretKeyRef) own[variable] = secretOf(valueFrom.secretKeyRef.key);
    else if (valueFrom?.fieldRef) own[variable] = `${name}-0`;
    else own[variable] = String(value).replaceAll(/\$\(([A-Z_]+)\)/g, (_, known: string) => own[known] ?? "");
  }
  return { ...env, ...own };
}
