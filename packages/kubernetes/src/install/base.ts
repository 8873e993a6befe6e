// What a cluster has once, however many revisions of the control plane run in it: the mesh's kinds, the mesh's
// configuration, and what a cluster's users may do with both.
import { kindDefinitions, kinds, unreadKinds } from "@tulle/config";
import { meshConfigMap } from "../names.ts";
import { type CustomResourceDefinition, customResourceDefinitions } from "./custom-resources.ts";
import { partOf } from "./installed-labels.ts";
import { isSet, json, type Manifest, releaseNamespace, type Template, when } from "./template.ts";

export function baseManifests(): readonly Manifest[] {
  return [
    when(isSet("base.createNamespace"), {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: releaseNamespace, labels: partOf("base") },
    }),
    ...customResourceDefinitions().map(definitionManifest),
    ...customResourceDefinitions("istio.io").map((each) =>
      when(isSet("base.istioCustomResources"), definitionManifest(each)),
    ),
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: meshConfigMap.name, namespace: releaseNamespace, labels: partOf("base") },
      data: { [meshConfigMap.key]: json("base.meshConfig") },
    },
    ...userRoles(),
  ];
}

function definitionManifest({ metadata, ...definition }: CustomResourceDefinition) {
  return {
    ...(definition as unknown as Readonly<Record<string, Template>>),
    metadata: {
      ...metadata,
      // Whoever removes a chart does not mean every VirtualService of the cluster.
      annotations: when(isSet("base.keepCustomResources"), { "helm.sh/resource-policy": "keep" }),
    },
  };
}

/**
 * Whoever may look into a namespace may see what routes it, and whoever may edit it may change that: the cluster's own
 * roles `view`, `edit` and `admin` take these in by their labels.
 */
function userRoles(): readonly Manifest[] {
  const rules = (verbs: readonly string[]): Template => [
    ...[...ownKinds()].map(([group, resources]) => ({ apiGroups: [group], resources, verbs })),
    ...[...istioKinds()].map(([group, resources]) =>
      when(isSet("base.istioCustomResources"), { apiGroups: [group], resources, verbs }),
    ),
  ];
  const role = (name: string, into: readonly string[], verbs: readonly string[]): Manifest => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: {
      name,
      labels: {
        ...partOf("base"),
        ...Object.fromEntries(into.map((each) => [`rbac.authorization.k8s.io/aggregate-to-${each}`, "true"])),
      },
    },
    rules: rules(verbs),
  });
  return [
    role("tulle-view", ["view"], ["get", "list", "watch"]),
    role("tulle-edit", ["edit", "admin"], ["create", "update", "patch", "delete", "deletecollection"]),
  ];
}

/** Plural names by group, of our own groups or of Istio's. */
export function ownKinds(suffix: "tulle.io" | "istio.io" = "tulle.io"): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const kind of kinds) {
    const { apiVersions, plural } = kindDefinitions[kind];
    const group = apiVersions.map((version) => version.split("/")[0]!).find((each) => each.endsWith(`.${suffix}`));
    if (group === undefined) continue;
    groups.set(group, [...(groups.get(group) ?? []), plural]);
  }
  return groups;
}

/** Plural names by group of all that Istio has, those that nothing reads among them. */
export function istioKinds(): ReadonlyMap<string, readonly string[]> {
  const groups = new Map(ownKinds("istio.io"));
  for (const { plural, apiVersions } of Object.values(unreadKinds)) {
    const group = apiVersions[0]!.split("/")[0]!;
    groups.set(group, [...(groups.get(group) ?? []), plural]);
  }
  return groups;
}
