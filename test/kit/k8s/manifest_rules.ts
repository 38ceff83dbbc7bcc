/** What every manifest of `k8s/` has to keep beyond its schema. Each rule answers with what breaks it. */
import { readFileSync } from "node:fs";
import { readApiConfig, readBootstrapConfig, readMigrateConfig } from "#api/config.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { readCosts } from "#loadtest/capacity/costs.ts";
import { shortOfSlots } from "#loadtest/capacity/plan.ts";
import { runsMax } from "#runs/engine/run_engine.ts";
import { environmentOf, isOurs, type Manifest, type Workload, workloadsIn } from "./k8s_manifests.ts";

export type Rule = (objects: readonly Manifest[]) => string[];

const serving = (objects: readonly Manifest[]) => workloadsIn(objects).filter(({ object }) => object.kind !== "Job");
const ofKind = (objects: readonly Manifest[], kind: string) => objects.filter((object) => object.kind === kind);
const named = (objects: readonly Manifest[], kind: string, name: string) =>
  objects.find((object) => object.kind === kind && object.metadata.name === name);
const variableOf = ({ container }: Workload, variable: string) =>
  (container.env ?? []).find(({ name }: Manifest) => name === variable)?.value;
const secretOf = (key: string) =>
  key.endsWith("DATABASE_URL")
    ? "postgres://u@postgres/f"
    : key === "REDIS_URL"
      ? "redis://redis"
      : "a-secret-of-16-or-more@x";

/** `250m` or `2`. */
export const coresOf = (quantity: string) =>
  quantity.endsWith("m") ? Number.parseInt(quantity, 10) / 1000 : Number(quantity);
/** `512Mi` or `1Gi`. */
export const mibOf = (quantity: string) => Number.parseInt(quantity, 10) * (quantity.endsWith("Gi") ? 1024 : 1);

const example = readFileSync(new URL("../../../.env.example", import.meta.url), "utf8");
const exampleVariables = new Set([...example.matchAll(/^([A-Z_]+)=/gm)].map((match) => match[1] ?? ""));

/** What may not stand in a manifest. */
const secretNames = ["DATABASE_URL", "REDIS_URL", "INTERNAL_SECRET", "ENCRYPTION_KEY", "JWT_SECRET", "SMTP_URL"];

export const rules: Readonly<Record<string, Rule>> = {
  "each server has a liveness and a readiness probe, at a port that its container names": (objects) =>
    serving(objects).flatMap(({ name, container }) =>
      ["livenessProbe", "readinessProbe"].flatMap((probe) => {
        const port = (container[probe]?.httpGet ?? container[probe]?.tcpSocket)?.port;
        return (container.ports ?? []).some((known: Manifest) => known.name === port) ? [] : [`${name}: ${probe}`];
      }),
    ),

  "nobody is root, writes to its image, gains rights or speaks to the Kubernetes API": (objects) =>
    workloadsIn(objects).flatMap(({ name, pod, container }) => {
      const { securityContext: own = {} } = container;
      const kept: Record<string, boolean> = {
        runAsNonRoot: pod.securityContext?.runAsNonRoot === true,
        runAsUser: pod.securityContext?.runAsUser > 0 && own.runAsUser === undefined,
        seccompProfile: pod.securityContext?.seccompProfile?.type === "RuntimeDefault",
        readOnlyRootFilesystem: own.readOnlyRootFilesystem === true,
        allowPrivilegeEscalation: own.allowPrivilegeEscalation === false,
        capabilities: own.capabilities?.drop?.includes("ALL") && own.capabilities.add === undefined,
        automountServiceAccountToken: pod.automountServiceAccountToken === false,
        // A Service named api would set API_PORT.
        enableServiceLinks: pod.enableServiceLinks === false,
      };
      return Object.keys(kept).flatMap((field) => (kept[field] ? [] : [`${name}: ${field}`]));
    }),

  "memory is limited to what is asked for, and CPU is asked for and not limited": (objects) =>
    workloadsIn(objects).flatMap(({ name, container: { resources } }) => {
      const { requests = {}, limits = {} } = resources ?? {};
      return requests.memory && requests.memory === limits.memory && requests.cpu && !limits.cpu ? [] : [name];
    }),

  "each role may lose one pod at a time to maintenance": (objects) =>
    serving(objects)
      .filter((workload) => isOurs(workload) || workload.object.spec.replicas !== 1)
      .filter(({ name }) => named(objects, "PodDisruptionBudget", name)?.spec.maxUnavailable !== 1)
      .map(({ name }) => name),

  "the grace is longer than what a role takes to stop": (objects) =>
    serving(objects)
      .filter(isOurs)
      .flatMap((workload) => {
        const { name, pod, container } = workload;
        const beforeS = container.lifecycle?.preStop?.sleep?.seconds ?? 0;
        const drainS = Number(variableOf(workload, "DRAIN_TIMEOUT_S") ?? variableOf(workload, "SHUTDOWN_DELAY_S") ?? 0);
        const neededS = beforeS + drainS + 15;
        return pod.terminationGracePeriodSeconds >= neededS ? [] : [`${name}: expected ${neededS} s at least`];
      }),

  "each role starts with what it is given": (objects) =>
    workloadsIn(objects)
      .filter(isOurs)
      .flatMap((workload) => {
        const env = environmentOf(workload, objects, secretOf);
        const read: Record<string, () => unknown> = {
          gateway: () => loadGatewayConfig(env, { separate: true }),
          api: () => readApiConfig(env),
          worker: () => readApiConfig(env),
          migrate: () => readMigrateConfig(env),
          bootstrap: () => readBootstrapConfig({ ...env, BOOTSTRAP_EMAIL: "desk@inn.example" }),
        };
        try {
          read[workload.name]?.();
          return read[workload.name] ? [] : [`${workload.name}: no role of ours`];
        } catch (error) {
          return [`${workload.name}: ${(error as Error).message}`];
        }
      }),

  "secrets come by reference, and the gateway has no way to Postgres": (objects) => [
    ...ofKind(objects, "Secret").map(({ metadata }) => `Secret ${metadata.name}`),
    ...workloadsIn(objects).flatMap(({ name, container }) =>
      (container.env ?? [])
        .filter((entry: Manifest) => secretNames.includes(entry.name) && entry.value !== undefined)
        .map((entry: Manifest) => `${name}: ${entry.name}`),
    ),
    ...ofKind(objects, "ConfigMap").flatMap(({ metadata, data = {} }) =>
      secretNames.filter((name) => name in data).map((name) => `${metadata.name}: ${name}`),
    ),
    ...workloadsIn(objects)
      .filter(
        ({ name, container }) =>
          name === "gateway" && container.env.some(({ name }: Manifest) => name === "DATABASE_URL"),
      )
      .map(() => "gateway: DATABASE_URL"),
  ],

  "each gateway that there may be has a Service and, where there is an ingress, a host": (objects) => {
    const gateway = named(objects, "StatefulSet", "gateway");
    const most = named(objects, "ScaledObject", "gateway")?.spec.maxReplicaCount ?? gateway.spec.replicas;
    const [ingress] = ofKind(objects, "Ingress");
    const [workload] = workloadsIn([gateway]);
    const address = workload ? String(variableOf(workload, "GATEWAY_PUBLIC_URL")) : "";
    return Array.from({ length: most }, (_, i) => `gateway-${i}`).flatMap((name) => {
      const selector = named(objects, "Service", name)?.spec.selector ?? {};
      if (selector["statefulset.kubernetes.io/pod-name"] !== name) return [`no Service ${name}`];
      if (!ingress) return [];
      const host = new URL(address.replace("$(GATEWAY_ID)", name)).host;
      const rule = ingress.spec.rules.find((rule: Manifest) => rule.host === host);
      return rule?.http.paths[0].backend.service.name === name ? [] : [`no host ${host} for ${name}`];
    });
  },

  "a Service finds pods, and a scaler its target": (objects) => [
    ...ofKind(objects, "Service")
      .filter(({ spec }) => {
        const { "statefulset.kubernetes.io/pod-name": _, ...labels } = spec.selector;
        return !workloadsIn(objects).some(({ object }) =>
          Object.entries(labels).every(([name, value]) => object.spec.template.metadata.labels[name] === value),
        );
      })
      .map(({ metadata }) => `Service ${metadata.name}`),
    ...[...ofKind(objects, "ScaledObject"), ...ofKind(objects, "HorizontalPodAutoscaler")]
      .filter(({ spec: { scaleTargetRef } }) => !named(objects, scaleTargetRef.kind, scaleTargetRef.name))
      .map(({ metadata }) => `scaler ${metadata.name}`),
  ],

  "gateways are scaled by the slots that one has": (objects) => {
    const scaler = named(objects, "ScaledObject", "gateway");
    if (!scaler) return [];
    const [workload] = workloadsIn([named(objects, "StatefulSet", "gateway")]);
    const { threshold } = scaler.spec.triggers[0].metadata;
    const slots = workload && variableOf(workload, "CALL_SLOTS");
    return threshold === slots ? [] : [`threshold ${threshold}, CALL_SLOTS ${slots}`];
  },

  "workers are scaled before one has all the runs that it takes": (objects) => {
    const triggers = named(objects, "ScaledObject", "worker")?.spec.triggers ?? [];
    return triggers
      .filter(({ metadata }: Manifest) => metadata.query.includes("frontdesk_runs_running"))
      .filter(({ metadata }: Manifest) => !(Number(metadata.threshold) < runsMax))
      .map(({ metadata }: Manifest) => `threshold ${metadata.threshold}, a worker takes ${runsMax}`);
  },

  "a gateway has what its slots take, as measured": (objects) => {
    const [workload] = workloadsIn([named(objects, "StatefulSet", "gateway")]);
    if (!workload) return ["no gateway"];
    const { cpu, memory } = workload.container.resources.requests;
    const slots = Number(variableOf(workload, "CALL_SLOTS"));
    return shortOfSlots(readCosts(), { cores: coresOf(cpu), memoryMib: mibOf(memory), callSlots: slots });
  },

  "variables are those of .env.example": (objects) => {
    const ours = workloadsIn(objects).filter(isOurs);
    const given = ours.flatMap((workload) => Object.keys(environmentOf(workload, objects, () => "")));
    const optional = ours.flatMap(({ container }) => (container.env ?? []).map(({ name }: Manifest) => name));
    return [...new Set([...given, ...optional])].filter((name) => !exampleVariables.has(name));
  },

  "images have a version": (objects) =>
    workloadsIn(objects)
      .filter(({ container: { image } }) => !/:[^/:]+$/.test(image) || image.endsWith(":latest"))
      .map(({ name }) => name),

  "each pod is behind a policy of its own, and who calls users' addresses reaches no private one": (objects) => {
    const policies = ofKind(objects, "NetworkPolicy");
    const selects = (policy: Manifest, labels: Record<string, string>) => {
      const { matchLabels = {}, matchExpressions = [] } = policy.spec.podSelector;
      if (Object.keys(policy.spec.podSelector).length === 0) return false;
      return (
        Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
        matchExpressions.every(({ key, values }: Manifest) => values.includes(labels[key]))
      );
    };
    const uncovered = workloadsIn(objects)
      .filter(({ object }) => !policies.some((policy) => selects(policy, object.spec.template.metadata.labels)))
      .map(({ name }) => name);
    const privateRanges = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"];
    const open = ["gateway", "api", "worker"].flatMap((role) => {
      const blocks = (named(policies, "NetworkPolicy", role)?.spec.egress ?? []).flatMap(({ to = [] }: Manifest) =>
        to.flatMap(({ ipBlock }: Manifest) => (ipBlock ? [ipBlock] : [])),
      );
      const isShut = ({ except = [] }: Manifest) => privateRanges.every((range) => except.includes(range));
      return blocks.length > 0 && blocks.every(isShut) ? [] : [`${role}: private addresses`];
    });
    return [...uncovered, ...open];
  },
};
