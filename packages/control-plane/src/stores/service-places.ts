// What an API server of Kubernetes gives a Service that does not name it itself: addresses of the cluster, and ports
// of the nodes. Wanted where something leads there, as in pods that have networks of their own. What it cannot give is
// a finding at the Service, until it can.
import { ServiceAllocator, type ServiceProblem } from "@tulle/capture/services";
import {
  type Finding,
  keyOf,
  keyText,
  MemoryStore,
  type MemoryStoreOptions,
  type MeshResource,
  type Path,
  placeOf,
  type Service,
} from "@tulle/config";

/**
 * A store that gives Services what they lack, and what they had to do without as soon as it is free. `clusterRanges`
 * are one of each family at the most. @throws for a range that is none
 */
export function storeWithPlaces(
  clusterRanges: readonly string[],
  analyze: NonNullable<MemoryStoreOptions["analyze"]>,
): MemoryStore {
  const places = new ServicePlaces(clusterRanges);
  const store: MemoryStore = new MemoryStore({
    analyze: (resources, drafts) => [...analyze(resources, drafts), ...places.findings(resources)],
    complete: (resources) => places.complete(resources, store.list("Service")),
  });
  store.watch((changes) => {
    if (!changes.some(({ resource }) => resource.kind === "Service")) return;
    const wanting = places.wanting(store.list("Service"));
    if (wanting.length > 0) void store.applyAll(wanting);
  });
  return store;
}

/**
 * Who else has an address or a port of nodes that the resource names, in words; an API server refuses it then.
 * Addresses follow from names: what is not refused now would be the earlier one's after the next start.
 */
export function takenAlready(resource: MeshResource, services: readonly Service[]): string | undefined {
  if (resource.kind !== "Service" || resource.spec.type === "ExternalName") return undefined;
  const key = keyText(keyOf(resource));
  const addresses = new Set(addressesOf(resource).filter((address) => address !== "None"));
  const ports = new Set(nodePortsOf(resource));
  for (const other of services) {
    if (keyText(keyOf(other)) === key) continue;
    const address = addressesOf(other).find((each) => addresses.has(each));
    const port = nodePortsOf(other).find((each) => ports.has(each));
    const what = address ?? (port === undefined ? undefined : `the node port ${port}`);
    const { namespace, name } = other.metadata;
    if (what !== undefined) return `${what} is the Service ${namespace}/${name}'s already`;
  }
  return undefined;
}

/** `None` of a headless Service too. */
function addressesOf({ spec: { clusterIP, clusterIPs } }: Service): readonly string[] {
  return (clusterIPs ?? [clusterIP ?? ""]).filter((address) => address !== "");
}

/** TCP and UDP may share a number. */
function nodePortsOf({ spec: { type, ports } }: Service): readonly string[] {
  if (type !== "NodePort" && type !== "LoadBalancer") return [];
  return ports.flatMap(({ nodePort = 0, protocol }) => (nodePort === 0 ? [] : [`${nodePort}/${protocol}`]));
}

class ServicePlaces {
  readonly #allocator: ServiceAllocator;
  /** As they were written. */
  #written: ReadonlyMap<string, Service> = new Map();
  #problems: ReadonlyMap<string, readonly ServiceProblem[]> = new Map();

  constructor(clusterRanges: readonly string[]) {
    this.#allocator = new ServiceAllocator({ clusterRanges });
  }

  /**
   * Those that come together, each with what it lacks: what one of them names itself is nobody else's. `present` are
   * the Services that there are.
   */
  complete(resources: readonly MeshResource[], present: readonly Service[]): readonly MeshResource[] {
    if (!resources.some(({ kind }) => kind === "Service")) return resources;
    const written = new Map<string, Service>();
    for (const service of present) {
      const key = keyText(keyOf(service));
      written.set(key, this.#written.get(key) ?? service);
    }
    for (const resource of resources) {
      if (resource.kind === "Service") written.set(keyText(keyOf(resource)), resource);
    }
    this.#written = written;
    const { services, problems } = this.#allocator.allocate([...written.values()]);
    this.#problems = Map.groupBy(problems, ({ service }) => keyText({ kind: "Service", ...service }));
    const complete = new Map(services.map((service) => [keyText(keyOf(service)), service]));
    return resources.map((resource) => complete.get(keyText(keyOf(resource))) ?? resource);
  }

  /** Those of `present` that lack something, as they were written: what another one has left may be theirs now. */
  wanting(present: readonly Service[]): readonly Service[] {
    return present.flatMap((service) => {
      const key = keyText(keyOf(service));
      return this.#problems.has(key) ? (this.#written.get(key) ?? []) : [];
    });
  }

  findings(resources: readonly MeshResource[]): readonly Finding[] {
    return resources.flatMap((resource) => {
      if (resource.kind !== "Service") return [];
      const problems = this.#problems.get(keyText(keyOf(resource))) ?? [];
      return problems.map(({ path, message }): Finding => {
        const place = placeOf(resource, pathOf(path));
        return {
          code: "TUL0017",
          severity: "error",
          message,
          resource: keyOf(resource),
          path,
          ...(place === undefined ? {} : { place }),
        };
      });
    });
  }
}

/** `spec.ports[0].nodePort` */
function pathOf(text: string): Path {
  return text
    .split(/[.[\]]+/)
    .filter((step) => step !== "")
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}
