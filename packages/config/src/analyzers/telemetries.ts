/**
 * Telemetry resources that do less than they say. IST0106: expressions and tags that no proxy takes. IST0101: a
 * provider that nobody knows. IST0157: one that gives nothing of the kind, or none at all. IST0159, IST0160: of two for
 * the same workloads the older one counts. IST0127: no workload is meant.
 */
import { meshConfigOf } from "../mesh-config/mesh-config.ts";
import { type CustomTag, tagProblem } from "../mesh-config/custom-tags.ts";
import { nearestName } from "../findings/nearest-name.ts";
import type { Path } from "../findings/places.ts";
import type { Telemetry } from "../kinds/resource.ts";
import { expressionProblem } from "../rules/cel-expression.ts";
import { selects } from "../rules/label-selector.ts";
import { oldestFirst } from "../rules/oldest-first.ts";
import { policyScope, rootNamespaces } from "../rules/policy-scope.ts";
import { gatewayNameLabel, targetGateways, targetReferences } from "../rules/telemetry-targets.ts";
import type { AnalyzedMesh, Analyzer, Discovery, Workload } from "./analyzer.ts";

export const telemetries: Analyzer = {
  name: "telemetries",
  codes: ["IST0101", "IST0106", "IST0127", "IST0157", "IST0159", "IST0160"],
  *run(mesh) {
    const providers = providersOf(mesh);
    const older: Telemetry[] = [];
    for (const resource of oldestFirst(mesh.list("Telemetry"))) {
      yield* scopeProblems(mesh, resource, older);
      older.push(resource);
      yield* providerProblems(resource, providers);
      yield* contentProblems(resource);
    }
  },
};

type Section = "tracing" | "metrics" | "accessLogging";
const sections: readonly Section[] = ["tracing", "metrics", "accessLogging"];

/** Kinds of providers that give something of each. */
const kindsFor: Readonly<Record<Section, readonly string[]>> = {
  tracing: ["opentelemetry", "zipkin"],
  metrics: ["prometheus"],
  accessLogging: ["envoyFileAccessLog", "envoyOtelAls", "envoyHttpAls", "envoyTcpAls"],
};

interface Providers {
  /** Kind by name in lower case. */
  readonly kinds: ReadonlyMap<string, string>;
  readonly names: readonly string[];
  readonly defaults: Readonly<Record<Section, boolean>>;
}

function providersOf(mesh: AnalyzedMesh): Providers {
  const {
    extensionProviders = [],
    defaultProviders = {},
    enableTracing,
    defaultConfig,
  } = meshConfigOf(mesh.list("ConfigMap"));
  const named = extensionProviders.map(({ name, ...settings }) => [name, Object.keys(settings)[0] ?? ""] as const);
  const all = [["prometheus", "prometheus"], ["envoy", "envoyFileAccessLog"], ...named] as const;
  const hasOlderTracer = enableTracing === true && defaultConfig?.tracing?.zipkin?.address !== undefined;
  return {
    kinds: new Map(all.map(([name, kind]) => [name.toLowerCase(), kind])),
    names: all.map(([name]) => name),
    defaults: {
      tracing: (defaultProviders.tracing ?? []).length > 0 || hasOlderTracer,
      metrics: defaultProviders.metrics === undefined || defaultProviders.metrics.length > 0,
      accessLogging: defaultProviders.accessLogging === undefined || defaultProviders.accessLogging.length > 0,
    },
  };
}

function* providerProblems(resource: Telemetry, { kinds, names, defaults }: Providers): Generator<Discovery> {
  for (const section of sections) {
    for (const [index, { providers = [] }] of (resource.spec[section] ?? []).entries()) {
      const at = ["spec", section, index];
      if (providers.length === 0 && !defaults[section] && !namesAbove(resource, section, index)) {
        yield {
          code: "IST0157",
          resource,
          path: at,
          message: `no provider is named, and the mesh's configuration has none for ${section}, so this has no effect where no Telemetry above names one`,
          suggestion: `Name one under "providers", or under "defaultProviders" of the mesh's configuration.`,
        };
      }
      for (const [number, { name }] of providers.entries()) {
        const kind = kinds.get(name.toLowerCase());
        const path = [...at, "providers", number, "name"];
        if (kind === undefined) {
          const nearest = nearestName(name, names);
          yield {
            code: "IST0101",
            resource,
            path,
            message: `no extension provider of the mesh's configuration is called "${name}": nothing goes there`,
            suggestion: nearest === undefined ? `Known are ${names.join(", ")}.` : `Did you mean "${nearest}"?`,
          };
        } else if (!kindsFor[section].includes(kind)) {
          const message = `the provider "${name}" (${kind}) takes no ${section}; those are ${kindsFor[section].join(", ")}`;
          yield { code: "IST0157", resource, path, message };
        }
      }
    }
  }
}

/** An entry goes where the one before it does. */
function namesAbove({ spec }: Telemetry, section: Section, index: number): boolean {
  return (spec[section] ?? []).slice(0, index).some(({ providers = [] }) => providers.length > 0);
}

function* contentProblems(resource: Telemetry): Generator<Discovery> {
  const { tracing = [], metrics = [], accessLogging = [] } = resource.spec;
  const wrong = (path: Path, message: string): Discovery => ({
    code: "IST0106",
    resource,
    path: ["spec", ...path],
    message,
  });
  for (const [index, { customTags = {} }] of tracing.entries()) {
    for (const [name, tag] of Object.entries<CustomTag>(customTags)) {
      const problem = tagProblem(name, tag);
      if (problem !== undefined) {
        yield wrong(["tracing", index, "customTags", name], `the tag "${name}" ${problem}; it is left out`);
      }
    }
  }
  for (const [index, { overrides = [] }] of metrics.entries()) {
    for (const [number, { tagOverrides = {} }] of overrides.entries()) {
      for (const [name, { operation, value }] of Object.entries(tagOverrides)) {
        const path = ["metrics", index, "overrides", number, "tagOverrides", name];
        if (operation === "REMOVE") {
          if (value !== undefined) yield wrong([...path, "value"], `the label "${name}" is removed, and has no value`);
        } else if (value === undefined || value === "")
          yield wrong(path, `the label "${name}" has no value; it stays as it is`);
        else {
          const problem = expressionProblem(value);
          if (problem !== undefined)
            yield wrong([...path, "value"], `the expression ${problem}; the label stays as it is`);
        }
      }
    }
  }
  for (const [index, { filter }] of accessLogging.entries()) {
    const problem = filter === undefined ? undefined : expressionProblem(filter.expression ?? "");
    if (problem !== undefined) {
      yield wrong(["accessLogging", index, "filter", "expression"], `the expression ${problem}; the entry is left out`);
    }
  }
}

function* scopeProblems(mesh: AnalyzedMesh, resource: Telemetry, older: readonly Telemetry[]): Generator<Discovery> {
  const { namespace } = resource.metadata;
  const gateways = targetGateways(resource);
  const field = targetFieldOf(resource);
  if (gateways !== undefined) {
    for (const [index, { kind, group = "" }] of targetReferences(resource).entries()) {
      if (kind === "Gateway" && group !== "") continue;
      const path = field === "targetRef" ? ["spec", field] : ["spec", field, index];
      const message = `a ${kind} is a target for waypoints, which this mesh has none of: it means no workload`;
      yield { code: "IST0127", resource, path, message };
    }
  }
  if (isForAll(resource)) {
    const first = older.find((each) => isForAll(each) && isSameNamespace(each.metadata.namespace, namespace));
    if (first === undefined) return;
    yield {
      code: "IST0160",
      resource,
      path: ["spec"],
      message: `the Telemetry ${nameOf(first)} is for ${rootNamespaces.includes(namespace) ? "the whole mesh" : "the whole namespace"} too and older, so this one has no effect`,
      suggestion: "Write both into one, or give one of them a selector.",
    };
    return;
  }
  const own = workloadsOf(mesh, resource);
  if (own.length === 0) {
    if ((gateways ?? [""]).length > 0) {
      const message = `there is no such workload in the namespace "${namespace}", so the Telemetry holds for nothing`;
      const suggestion = gateways === undefined ? whoIsThere(mesh, namespace) : undefined;
      yield { code: "IST0127", resource, path: ["spec", field], message, suggestion };
    }
    return;
  }
  for (const other of older) {
    if (other.metadata.namespace !== namespace || isForAll(other)) continue;
    if (!workloadsOf(mesh, other).some((workload) => own.includes(workload))) continue;
    const message = `the Telemetry ${nameOf(other)} is for some of the same workloads and older, so this one has no effect on them`;
    yield { code: "IST0159", resource, path: ["spec", field], message, suggestion: "Write both into one." };
  }
}

/** What a selector or a namespace that is misspelt should have said. */
function whoIsThere(mesh: AnalyzedMesh, namespace: string): string {
  const labels = new Set(
    mesh.workloads
      .filter((workload) => workload.namespace === namespace)
      .map((workload) => labelsText(workload.labels))
      .filter((text) => text !== ""),
  );
  if (labels.size > 0) {
    const more = labels.size > toldWorkloads ? " and others" : "";
    return `Workloads there have ${[...labels].slice(0, toldWorkloads).join(" or ")}${more}.`;
  }
  const nearest = nearestName(namespace, new Set(mesh.workloads.map((workload) => workload.namespace)));
  return nearest === undefined
    ? "That namespace has no workloads."
    : `That namespace has no workloads. Did you mean "${nearest}"?`;
}

const toldWorkloads = 5;

function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}

function targetFieldOf({ spec }: Telemetry): "selector" | "targetRef" | "targetRefs" {
  return spec.targetRef !== undefined ? "targetRef" : spec.targetRefs === undefined ? "selector" : "targetRefs";
}

function isForAll(resource: Telemetry): boolean {
  return targetGateways(resource) === undefined && Object.keys(policyScope(resource).matchLabels).length === 0;
}

/** The root namespaces are one: what stands in them is for the mesh. */
function isSameNamespace(one: string, other: string): boolean {
  return one === other || (rootNamespaces.includes(one) && rootNamespaces.includes(other));
}

function nameOf({ metadata }: Telemetry): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** A selector means workloads of its own namespace, in a root namespace too. */
function workloadsOf(mesh: AnalyzedMesh, resource: Telemetry): readonly Workload[] {
  const { namespace, matchLabels } = policyScope(resource);
  const gateways = targetGateways(resource);
  return mesh.workloads.filter(({ labels, ...workload }) => {
    if (workload.namespace !== namespace) return false;
    return gateways === undefined ? selects(matchLabels, labels) : gateways.includes(labels[gatewayNameLabel] ?? "");
  });
}
