/** No field of Kubernetes' own objects is called unknown: the schemas are held against the published types. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { test } from "node:test";
import type { Node } from "../schema/schema.ts";
import { kindDefinitions } from "./kinds.ts";
import type { Kind } from "./kinds.ts";

const typesFolder = path.dirname(createRequire(import.meta.url).resolve("kubernetes-types/package.json"));

/** Names of the fields of an interface in the published declarations. */
function publishedFields(file: string, name: string): readonly string[] {
  const text = readFileSync(path.join(typesFolder, file), "utf8");
  const body = new RegExp(`^export interface ${name} \\{\\n(.*?)^\\}`, "ms").exec(text)?.[1];
  assert.ok(body !== undefined, `${name} in ${file}`);
  // Four spaces: the fields themselves, not those of objects inside them.
  return [...body.matchAll(/^ {4}["']?(\w+)["']?\??:/gm)].map((match) => match[1]!);
}

const cases: readonly { readonly kind: Kind; readonly at: string; readonly file: string; readonly type: string }[] = [
  { kind: "Pod", at: "metadata", file: "meta/v1.d.ts", type: "ObjectMeta" },
  { kind: "Pod", at: "metadata.ownerReferences", file: "meta/v1.d.ts", type: "OwnerReference" },
  { kind: "Pod", at: "spec", file: "core/v1.d.ts", type: "PodSpec" },
  { kind: "Pod", at: "spec.containers", file: "core/v1.d.ts", type: "Container" },
  { kind: "Pod", at: "spec.containers.ports", file: "core/v1.d.ts", type: "ContainerPort" },
  { kind: "Pod", at: "spec.containers.env", file: "core/v1.d.ts", type: "EnvVar" },
  { kind: "Pod", at: "spec.containers.env.valueFrom", file: "core/v1.d.ts", type: "EnvVarSource" },
  { kind: "Pod", at: "spec.containers.env.valueFrom.fieldRef", file: "core/v1.d.ts", type: "ObjectFieldSelector" },
  {
    kind: "Pod",
    at: "spec.containers.env.valueFrom.configMapKeyRef",
    file: "core/v1.d.ts",
    type: "ConfigMapKeySelector",
  },
  { kind: "Pod", at: "spec.containers.env.valueFrom.secretKeyRef", file: "core/v1.d.ts", type: "SecretKeySelector" },
  {
    kind: "Pod",
    at: "spec.containers.env.valueFrom.resourceFieldRef",
    file: "core/v1.d.ts",
    type: "ResourceFieldSelector",
  },
  { kind: "Pod", at: "spec.containers.envFrom", file: "core/v1.d.ts", type: "EnvFromSource" },
  { kind: "Pod", at: "spec.containers.envFrom.configMapRef", file: "core/v1.d.ts", type: "ConfigMapEnvSource" },
  { kind: "Pod", at: "spec.containers.envFrom.secretRef", file: "core/v1.d.ts", type: "SecretEnvSource" },
  { kind: "Pod", at: "spec.containers.readinessProbe", file: "core/v1.d.ts", type: "Probe" },
  { kind: "Pod", at: "spec.containers.readinessProbe.httpGet", file: "core/v1.d.ts", type: "HTTPGetAction" },
  { kind: "Pod", at: "status", file: "core/v1.d.ts", type: "PodStatus" },
  { kind: "Pod", at: "status.conditions", file: "core/v1.d.ts", type: "PodCondition" },
  { kind: "Pod", at: "status.containerStatuses", file: "core/v1.d.ts", type: "ContainerStatus" },
  { kind: "Pod", at: "status.containerStatuses.state", file: "core/v1.d.ts", type: "ContainerState" },
  {
    kind: "Pod",
    at: "status.containerStatuses.state.terminated",
    file: "core/v1.d.ts",
    type: "ContainerStateTerminated",
  },
  { kind: "Service", at: "spec", file: "core/v1.d.ts", type: "ServiceSpec" },
  { kind: "Service", at: "spec.ports", file: "core/v1.d.ts", type: "ServicePort" },
  { kind: "ServiceAccount", at: "", file: "core/v1.d.ts", type: "ServiceAccount" },
  { kind: "Namespace", at: "", file: "core/v1.d.ts", type: "Namespace" },
  { kind: "EndpointSlice", at: "", file: "discovery/v1.d.ts", type: "EndpointSlice" },
  { kind: "EndpointSlice", at: "endpoints", file: "discovery/v1.d.ts", type: "Endpoint" },
  { kind: "EndpointSlice", at: "endpoints.conditions", file: "discovery/v1.d.ts", type: "EndpointConditions" },
  { kind: "EndpointSlice", at: "endpoints.targetRef", file: "core/v1.d.ts", type: "ObjectReference" },
  { kind: "EndpointSlice", at: "ports", file: "discovery/v1.d.ts", type: "EndpointPort" },
  { kind: "Deployment", at: "", file: "apps/v1.d.ts", type: "Deployment" },
  { kind: "Deployment", at: "spec", file: "apps/v1.d.ts", type: "DeploymentSpec" },
  { kind: "Deployment", at: "spec.selector", file: "meta/v1.d.ts", type: "LabelSelector" },
  { kind: "Deployment", at: "spec.template", file: "core/v1.d.ts", type: "PodTemplateSpec" },
];

function knownFields(kind: Kind, at: string): readonly string[] {
  let node: Node = kindDefinitions[kind].schema.node;
  for (const name of at === "" ? [] : at.split(".")) {
    if (node.type === "list") node = node.items;
    assert.ok(node.type === "object" && node.fields[name] !== undefined, `${kind} ${at}: ${name}`);
    node = node.fields[name].node;
  }
  if (node.type === "list") node = node.items;
  return node.type === "object" ? [...Object.keys(node.fields), ...node.unread, "apiVersion", "kind"] : [];
}

for (const { kind, at, file, type } of cases) {
  test(`${kind} ${at} knows the fields of ${type}`, () => {
    const published = publishedFields(file, type);
    assert.ok(published.length > 1);
    const known = knownFields(kind, at);
    assert.deepEqual(
      published.filter((name) => !known.includes(name)),
      [],
    );
  });
}
