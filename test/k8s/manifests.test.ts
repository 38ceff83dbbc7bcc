/** The manifests of `k8s/`: rendered, held against the schemas of their kinds, and against our own rules. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject";
import { PodMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor";
import { PrometheusRule } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule";
import { Ajv2020 } from "ajv/dist/2020.js";
import { freeSlots, pods } from "#loadtest/capacity/plan.ts";
import {
  definitions,
  type Manifest,
  noRenderer,
  noSchemas,
  overlays,
  render,
  schemaOf,
  workloadsIn,
} from "#test/kit/k8s/k8s_manifests.ts";
import { coresOf, mibOf, rules } from "#test/kit/k8s/manifest_rules.ts";
import { unreadFields } from "#test/kit/k8s/unread_fields.ts";

const rendered = Object.fromEntries(noRenderer ? [] : overlays.map((overlay) => [overlay, render(overlay)]));
/** A copy to spoil. */
const copyOf = (overlay: (typeof overlays)[number]): Manifest[] => structuredClone(rendered[overlay] ?? []);
const find = (objects: Manifest[], kind: string, name: string): Manifest =>
  objects.find((object) => object.kind === kind && object.metadata.name === name) ?? assert.fail(`no ${kind} ${name}`);
const containerOf = (objects: Manifest[], name: string): Manifest =>
  workloadsIn(objects).find((workload) => workload.name === name)?.container ?? assert.fail(name);

const models: Record<string, { prototype: { validate(): void } }> = {
  ScaledObject,
  PodMonitor,
  PrometheusRule,
};

/** Fields that came after the models: theirs is KEDA 2.10, and k8s/README.md asks for 2.17. */
const newerFields = new Set(["ScaledObject /spec/fallback/behavior"]);

/** What is wrong with an object by its kind's schema or model. */
function faultsOf(ajv: Ajv2020, object: Manifest): string[] {
  const name = `${object.kind} ${object.metadata?.name}`;
  const Model = models[object.kind];
  if (Model) {
    try {
      // It takes fields that it does not know, and never reads them.
      const unknown = unreadFields(object, (copy) => Model.prototype.validate.call(copy));
      return unknown
        .filter((path) => !newerFields.has(`${object.kind} ${path}`))
        .map((path) => `${name}${path}: unknown field`);
    } catch (error) {
      return [`${name}: ${(error as Error).message}`];
    }
  }
  const schema = schemaOf(object);
  if (!schema) return [`${name}: no schema`];
  const check = ajv.getSchema(schema.$id) ?? ajv.compile(schema);
  if (check(object)) return [];
  return (check.errors ?? []).map(
    (fault) => `${name}${fault.instancePath}: ${fault.message} ${JSON.stringify(fault.params)}`,
  );
}

function openSchemas(): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema(definitions(), "_definitions.json");
  return ajv;
}

describe("k8s/", { skip: noRenderer }, () => {
  it("renders each overlay, every object in its namespace and named once", () => {
    for (const overlay of overlays) {
      const objects = copyOf(overlay);
      assert.ok(objects.length > 25, overlay);
      const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      assert.equal(new Set(names).size, names.length);
      const { metadata } = objects.find(({ kind }) => kind === "Namespace");
      for (const object of objects.filter(({ kind }) => kind !== "Namespace")) {
        assert.equal(object.metadata.namespace, metadata.name);
      }
    }
  });

  it("has a schema or a model for each kind, and each object keeps it", { skip: noSchemas }, () => {
    const ajv = openSchemas();
    for (const overlay of overlays)
      assert.deepEqual(
        copyOf(overlay).flatMap((object) => faultsOf(ajv, object)),
        [],
      );
  });

  it("is refused by schema or model for a wrong type, an unknown field and a missing one", { skip: noSchemas }, () => {
    const ajv = openSchemas();
    const spoiled = (spoil: (objects: Manifest[]) => void) => {
      const objects = copyOf("production");
      spoil(objects);
      return objects.flatMap((object) => faultsOf(ajv, object)).join("\n");
    };
    assert.match(
      spoiled((objects) => {
        find(objects, "Deployment", "api").spec.replicas = "three";
      }),
      /Deployment api\/spec\/replicas/,
    );
    assert.match(
      spoiled((objects) => {
        containerOf(objects, "worker").livenessProb = {};
      }),
      /Deployment worker.*livenessProb/,
    );
    assert.match(
      spoiled((objects) => {
        delete find(objects, "NetworkPolicy", "worker").spec.podSelector;
        containerOf(objects, "gateway").lifecycle.preStop.sleep = {};
      }),
      /StatefulSet gateway.*seconds/,
    );
    assert.match(
      spoiled((objects) => {
        delete find(objects, "ScaledObject", "gateway").spec.scaleTargetRef.name;
      }),
      /ScaledObject gateway.*name/,
    );
    assert.match(
      spoiled((objects) => {
        find(objects, "PrometheusRule", "frontdesk").spec.groups[0].rules[0].expr = { sum: 1 };
        find(objects, "PodMonitor", "frontdesk").spec.podMetricsEndpoints = "http";
      }),
      /PodMonitor frontdesk.*array/,
    );
    assert.equal(
      spoiled((objects) => {
        find(objects, "ScaledObject", "worker").spec.pollingIntervall = 5;
        find(objects, "ScaledObject", "gateway").spec.triggers[0].metaData = {};
        find(objects, "PrometheusRule", "frontdesk").spec.groups[0].rules[0].four = "5m";
        find(objects, "PodMonitor", "frontdesk").spek = {};
      }),
      [
        "ScaledObject gateway/spec/triggers/0/metaData: unknown field",
        "ScaledObject worker/spec/pollingIntervall: unknown field",
        "PodMonitor frontdesk/spek: unknown field",
        "PrometheusRule frontdesk/spec/groups/0/rules/0/four: unknown field",
      ].join("\n"),
    );
  });
});

/** For each rule something that breaks it. */
const breaches: Readonly<Record<keyof typeof rules, (objects: Manifest[]) => void>> = {
  "each server has a liveness and a readiness probe, at a port that its container names": (objects) => {
    delete containerOf(objects, "api").readinessProbe;
  },
  "nobody is root, writes to its image, gains rights or speaks to the Kubernetes API": (objects) => {
    find(objects, "Deployment", "worker").spec.template.spec.securityContext.runAsUser = 0;
  },
  "memory is limited to what is asked for, and CPU is asked for and not limited": (objects) => {
    containerOf(objects, "api").resources.limits.cpu = "1";
  },
  "each role may lose one pod at a time to maintenance": (objects) => {
    objects.splice(objects.indexOf(find(objects, "PodDisruptionBudget", "gateway")), 1);
  },
  "the grace is longer than what a role takes to stop": (objects) => {
    find(objects, "StatefulSet", "gateway").spec.template.spec.terminationGracePeriodSeconds = 3600;
  },
  "each role starts with what it is given": (objects) => {
    const { env } = containerOf(objects, "gateway");
    env.find(({ name }: Manifest) => name === "CALL_SLOTS").value = "many";
  },
  "secrets come by reference, and the gateway has no way to Postgres": (objects) => {
    containerOf(objects, "api").env.push({ name: "JWT_SECRET", value: "in the open" });
  },
  "each gateway that there may be has a Service and, where there is an ingress, a host": (objects) => {
    find(objects, "ScaledObject", "gateway").spec.maxReplicaCount = 7;
  },
  "a Service finds pods, and a scaler its target": (objects) => {
    find(objects, "Service", "api").spec.selector["app.kubernetes.io/component"] = "apis";
  },
  "gateways are scaled by the slots that one has": (objects) => {
    find(objects, "ScaledObject", "gateway").spec.triggers[0].metadata.threshold = "100";
  },
  "workers are scaled before one has all the runs that it takes": (objects) => {
    find(objects, "ScaledObject", "worker").spec.triggers[1].metadata.threshold = "1000";
  },
  "a gateway has what its slots take, as measured": (objects) => {
    containerOf(objects, "gateway").resources.requests.memory = "1Gi";
  },
  "images have a version": (objects) => {
    containerOf(objects, "api").image = "registry.example.com/frontdesk:latest";
  },
  "variables are those of .env.example": (objects) => {
    const { env } = containerOf(objects, "gateway");
    env.find(({ name }: Manifest) => name === "CALL_SLOTS").name = "CALLS_SLOT";
  },
  "each pod is behind a policy of its own, and who calls users' addresses reaches no private one": (objects) => {
    const block = find(objects, "NetworkPolicy", "gateway").spec.egress.find(({ to }: Manifest) => to?.[0].ipBlock);
    block.to[0].ipBlock.except = ["10.0.0.0/8"];
  },
};

describe("the pods that npm run capacity counts", { skip: noRenderer }, () => {
  it("are those of k8s/base", () => {
    const objects = copyOf("production");
    for (const [role, { cores, memoryMib }] of Object.entries(pods)) {
      const { requests } = containerOf(objects, role).resources;
      assert.deepEqual([coresOf(requests.cpu), mibOf(requests.memory)], [cores, memoryMib], role);
    }
    const slots = containerOf(objects, "gateway").env.find(({ name }: Manifest) => name === "CALL_SLOTS");
    assert.equal(slots.value, String(pods.gateway.callSlots));
    const { query } = find(objects, "ScaledObject", "gateway").spec.triggers[0].metadata;
    assert.match(query, new RegExp(`\\+ ${freeSlots} \\* sum\\(frontdesk_call_slots\\)`));
  });
});

describe("our rules for manifests", { skip: noRenderer }, () => {
  for (const [name, rule] of Object.entries(rules)) {
    it(`${name}; a breach is found`, () => {
      for (const overlay of overlays) assert.deepEqual(rule(copyOf(overlay)), [], overlay);
      const objects = copyOf("production");
      const breach = breaches[name] ?? assert.fail("no breach of this rule is known");
      breach(objects);
      assert.notDeepEqual(rule(objects), []);
    });
  }
});
