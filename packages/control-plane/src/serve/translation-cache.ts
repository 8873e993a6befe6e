// Translations by section key: each is made and encoded once, however many proxies have an equal view.
import { encodeResource, type EncodedResource } from "@tulle/xds";
import { ClusterLoadAssignmentSchema } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import { type GatewayOwn, keyed, type Keyed, type SidecarOwn } from "../scope/proxy-view.ts";
import type { EndpointSnapshot, MeshEndpoint } from "../snapshot/mesh-snapshot.ts";
import type { OutboundCluster } from "../translate/translate-clusters.ts";
import { endpointsOf, translateEndpoints } from "../translate/translate-endpoints.ts";
import {
  byName,
  type OwnResources,
  type ResourceMap,
  type SharedClusters,
  type SharedSection,
  translateOwn,
  translateSharedClusters,
  translateSharedRoutes,
} from "../translate/translate.ts";

/** Everything that a shared section becomes, but for endpoints. */
export interface SharedResources extends SharedClusters {
  readonly clustersKey: string;
  readonly routes: readonly EncodedResource[];
}

interface EncodedEndpoints {
  readonly endpoints: readonly MeshEndpoint[];
  readonly text: string;
  readonly encoded: EncodedResource;
}

export class TranslationCache {
  readonly #clusterId: string;
  readonly #shared = new Map<string, SharedResources>();
  /** By what clusters are made of alone: a changed route leaves them as they are. */
  readonly #clusters = new Map<string, SharedClusters>();
  readonly #own = new Map<string, OwnResources>();
  readonly #endpoints = new Map<string, EncodedEndpoints>();
  readonly #endpointMaps = new WeakMap<EndpointSnapshot, Map<string, ResourceMap>>();

  constructor(clusterId: string) {
    this.#clusterId = clusterId;
  }

  shared(view: Keyed<SharedSection>): SharedResources {
    return remembered(this.#shared, view.key, () => {
      const { type, trustDomain, minimumTls, services } = view.value;
      const passed = view.value.type === "router" ? view.value.autoPassthrough : undefined;
      const clustersKey = keyed([type, trustDomain, minimumTls, services, passed]).key;
      const clusters = remembered(this.#clusters, clustersKey, () => translateSharedClusters(view.value));
      return { ...clusters, clustersKey, routes: translateSharedRoutes(view.value) };
    });
  }

  own(view: Keyed<SidecarOwn | GatewayOwn>): OwnResources {
    return remembered(this.#own, view.key, () => translateOwn(view.value));
  }

  /** The endpoints of all clusters of a shared section, as one map that equal views have in common. */
  endpoints(view: Keyed<SharedSection>, endpoints: EndpointSnapshot): ResourceMap {
    let maps = this.#endpointMaps.get(endpoints);
    if (maps === undefined) {
      maps = new Map();
      this.#endpointMaps.set(endpoints, maps);
    }
    return remembered(maps, view.key, () =>
      byName(this.shared(view).outbound.map((cluster) => this.#encode(cluster, endpoints))),
    );
  }

  /** Forgets what no connected proxy's view needs any more. */
  keepOnly(sharedKeys: ReadonlySet<string>, ownKeys: ReadonlySet<string>): void {
    for (const key of this.#shared.keys()) if (!sharedKeys.has(key)) this.#shared.delete(key);
    for (const key of this.#own.keys()) if (!ownKeys.has(key)) this.#own.delete(key);
    const clusterKeys = new Set([...this.#shared.values()].map(({ clustersKey }) => clustersKey));
    for (const key of this.#clusters.keys()) if (!clusterKeys.has(key)) this.#clusters.delete(key);
    const needed = new Set([...this.#shared.values()].flatMap(({ outbound }) => outbound.map(endpointsKey)));
    for (const key of this.#endpoints.keys()) if (!needed.has(key)) this.#endpoints.delete(key);
  }

  #encode(cluster: OutboundCluster, snapshot: EndpointSnapshot): EncodedResource {
    const key = endpointsKey(cluster);
    const endpoints = endpointsOf(cluster, snapshot);
    const text = JSON.stringify(endpoints);
    const known = this.#endpoints.get(key);
    if (known?.text === text) return known.encoded;
    const message = translateEndpoints(cluster.name, endpoints, this.#clusterId);
    const encoded = encodeResource(ClusterLoadAssignmentSchema, message);
    this.#endpoints.set(key, { endpoints, text, encoded });
    return encoded;
  }
}

/** Two namespaces can have different rules, and so different labels, behind the same cluster name. */
function endpointsKey({ name, subset }: OutboundCluster): string {
  return `${name} ${JSON.stringify(subset?.labels ?? {})}`;
}

function remembered<T>(map: Map<string, T>, key: string, make: () => T): T {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
