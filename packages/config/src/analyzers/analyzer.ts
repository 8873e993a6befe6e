/**
 * The contract between `analyze` and one analyzer, and the indexes over all resources that analyzers share.
 */
import { decideInjection, type Injection } from "../rules/decide-injection.ts";
import { proxyContainers } from "../rules/injected-containers.ts";
import type { FindingCode, Severity } from "../findings/finding.ts";
import type { Kind } from "../kinds/kinds.ts";
import { isBehind, selects } from "../rules/label-selector.ts";
import { oldestFirst } from "../rules/oldest-first.ts";
import { entryHosts } from "../rules/service-entries.ts";
import { resolveHost, serviceHost } from "../rules/resolve-host.ts";
import type { DestinationRule, Gateway, MeshResource, ResourceOf, Service, ServiceEntry } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";

export interface AnalyzeOptions {
  /** How local workloads are connected; some findings are about that mode alone. */
  readonly networkMode?: "loopback" | "namespaces";
  /** Certificates are judged at this time; now when missing. */
  readonly nowMs?: number;
  /** Whether workloads get certificates; unknown when missing. */
  readonly hasAuthority?: boolean;
  /**
   * What is left of refused documents: they are there for all that refers to them, and their own references are looked
   * at.
   */
  readonly drafts?: readonly MeshResource[];
}

export interface Discovery {
  readonly code: FindingCode;
  readonly resource: MeshResource;
  readonly path?: Path;
  readonly message: string;
  readonly suggestion?: string | undefined;
  /** The code's own severity when missing. */
  readonly severity?: Severity;
}

export interface Analyzer {
  readonly name: string;
  readonly codes: readonly FindingCode[];
  readonly run: (mesh: AnalyzedMesh) => Iterable<Discovery>;
}

/** What runs pods: a Deployment, or a Pod that no analyzed Deployment made. */
export interface Workload {
  readonly resource: ResourceOf<"Pod"> | ResourceOf<"Deployment">;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** All resources, with the look-ups that several analyzers need. */
export class AnalyzedMesh {
  readonly options: AnalyzeOptions;
  readonly servicesByHost: ReadonlyMap<string, Service>;
  /** Those that take effect, by each of their hosts; the oldest of several. */
  readonly entriesByHost: ReadonlyMap<string, ServiceEntry>;
  /** By `<namespace>/<name>`. */
  readonly gateways: ReadonlyMap<string, Gateway>;
  readonly destinationRulesByHost: ReadonlyMap<string, readonly DestinationRule[]>;
  readonly workloads: readonly Workload[];
  readonly #byKind: ReadonlyMap<Kind, readonly MeshResource[]>;
  readonly #podsOf = new Map<Gateway, readonly string[]>();

  readonly #drafts: ReadonlySet<MeshResource>;

  constructor(accepted: readonly MeshResource[], options: AnalyzeOptions) {
    this.options = options;
    this.#drafts = new Set(options.drafts);
    this.#byKind = Map.groupBy([...accepted, ...this.#drafts], ({ kind }) => kind);
    this.servicesByHost = new Map(
      this.list("Service").map((service) => [serviceHost(service.metadata.name, service.metadata.namespace), service]),
    );
    this.entriesByHost = new Map(
      oldestFirst(this.list("ServiceEntry"))
        .toReversed()
        .flatMap((entry) => entryHosts(entry).map((host) => [host, entry])),
    );
    this.gateways = new Map(
      this.list("Gateway").map((gateway) => [`${gateway.metadata.namespace}/${gateway.metadata.name}`, gateway]),
    );
    this.destinationRulesByHost = Map.groupBy(this.list("DestinationRule"), (rule) =>
      this.resolve(rule.spec.host, rule.metadata.namespace),
    );
    this.workloads = [
      ...this.list("Deployment").map((resource) => ({
        resource,
        namespace: resource.metadata.namespace,
        labels: resource.spec.template.metadata?.labels ?? {},
        annotations: resource.spec.template.metadata?.annotations ?? {},
      })),
      ...this.list("Pod").map((resource) => ({
        resource,
        namespace: resource.metadata.namespace,
        labels: resource.metadata.labels ?? {},
        annotations: resource.metadata.annotations ?? {},
      })),
    ];
  }

  list<K extends Kind>(kind: K): readonly ResourceOf<K>[] {
    return (this.#byKind.get(kind) ?? []) as readonly ResourceOf<K>[];
  }

  /** Whether a part of the resource may be missing here: what it does not say means nothing. */
  isDraft(resource: MeshResource): boolean {
    return this.#drafts.has(resource);
  }

  /** The full name of `host` as a resource of `namespace` writes it. */
  resolve(host: string, namespace: string): string {
    return resolveHost(host, namespace, (name) => this.servicesByHost.has(name) || this.entriesByHost.has(name));
  }

  /** Istio lets a Gateway choose pods of every namespace. */
  workloadsOf(gateway: Gateway): readonly Workload[] {
    return this.workloads.filter(({ labels }) => selects(gateway.spec.selector ?? {}, labels));
  }

  /**
   * Names for the pods of a Gateway, by which Gateways on the same pods find each other. Where a selector chooses no
   * pod that is known, those with an equal one will be on the same pods.
   */
  podsOf(gateway: Gateway): readonly string[] {
    const known = this.#podsOf.get(gateway);
    if (known !== undefined) return known;
    const chosen = this.workloads.flatMap(({ labels }, number) =>
      selects(gateway.spec.selector ?? {}, labels) ? [String(number)] : [],
    );
    const selector = Object.entries(gateway.spec.selector ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
    const pods = chosen.length > 0 ? chosen : [JSON.stringify(selector)];
    this.#podsOf.set(gateway, pods);
    return pods;
  }
}

/** Which proxy a workload gets, or brings along. */
export function injectionOf(mesh: AnalyzedMesh, { namespace, labels, annotations, resource }: Workload): Injection {
  const labelled = mesh.list("Namespace").find(({ metadata }) => metadata.name === namespace);
  const spec = resource.kind === "Pod" ? resource.spec : resource.spec.template.spec;
  const injection = decideInjection({
    namespace,
    namespaceLabels: labelled?.metadata.labels ?? {},
    podLabels: labels,
    podAnnotations: annotations,
    hostNetwork: spec.hostNetwork ?? false,
  });
  if (injection !== "none") return injection;
  if (!spec.containers.some(({ name }) => proxyContainers.has(name))) return "none";
  // Istio's injector has been here, or somebody wrote a gateway by hand; only sidecars have a program beside them.
  return spec.containers.length > 1 ? "sidecar" : "gateway";
}

/**
 * Whose pods are all gateways: its ports are for clients outside, whom a gateway answers in whatever it speaks itself.
 */
export function isOfGateways(mesh: AnalyzedMesh, service: Service): boolean {
  const behind = mesh.workloads.filter((workload) => isBehind(service, workload));
  return behind.length > 0 && behind.every((workload) => injectionOf(mesh, workload) === "gateway");
}
