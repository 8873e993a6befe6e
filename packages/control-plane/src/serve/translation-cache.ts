// Translations by section key: each is made and encoded once, however many proxies have an equal section.
import { type EncodedResource, encodeResource } from "@tulle/xds";
import { ClusterLoadAssignmentSchema } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import { NameTableSchema } from "@tulle/xds/istio/networking/nds/v1/nds_pb";
import { Keyed } from "../scope/keyed.ts";
import type { ClustersSection, OwnSection, ProxyView, RoutesSection } from "../scope/proxy-view.ts";
import type { EndpointSnapshot } from "../snapshot/mesh-snapshot.ts";
import { hasSentEndpoints } from "../snapshot/service-entries.ts";
import type { OutboundCluster } from "../translate/outbound-clusters.ts";
import { endpointsOf, type EndpointsSection, translateEndpoints } from "../translate/translate-endpoints.ts";
import {
  byName,
  type OwnResources,
  type ResourceMap,
  type SharedClusters,
  translateClusters,
  translateOwn,
  translateRoutes,
} from "../translate/translate.ts";
import { translateNames } from "../translate/translate-names.ts";
import { KeyedCache } from "./keyed-cache.ts";

/** Everything that one proxy gets, by type. */
export interface ProxyResources {
  readonly CDS: ResourceMap;
  readonly EDS: ResourceMap;
  readonly LDS: ResourceMap;
  readonly RDS: ResourceMap;
}

interface EncodedEndpoints {
  readonly key: string;
  readonly encoded: EncodedResource;
}

/** One map for all proxies with the same clusters, as long as the endpoints are the same. */
class MapsOfEndpoints {
  readonly #maps = new WeakMap<EndpointSnapshot, Map<string, ResourceMap>>();

  get(key: string, snapshot: EndpointSnapshot, make: () => readonly EncodedResource[]): ResourceMap {
    let maps = this.#maps.get(snapshot);
    if (maps === undefined) this.#maps.set(snapshot, (maps = new Map<string, ResourceMap>()));
    let map = maps.get(key);
    if (map === undefined) maps.set(key, (map = byName(make())));
    return map;
  }
}

export class TranslationCache {
  readonly #clusterId: string;
  readonly #clusters: KeyedCache<ClustersSection, SharedClusters>;
  readonly #routes = new KeyedCache<RoutesSection, readonly EncodedResource[]>(translateRoutes);
  readonly #own = new KeyedCache<OwnSection, OwnResources>(translateOwn);
  /** The newest of each cluster, by its slot: an endpoint comes or goes, and what was there is not needed again. */
  readonly #endpoints = new Map<string, EncodedEndpoints>();
  readonly #endpointMaps = new MapsOfEndpoints();
  readonly #nameMaps = new MapsOfEndpoints();

  constructor(clusterId: string) {
    this.#clusterId = clusterId;
    this.#clusters = new KeyedCache((section) => translateClusters(section, clusterId));
  }

  clusters(section: Keyed<ClustersSection>): readonly EncodedResource[] {
    return this.#clusters.get(section).clusters;
  }

  routes(section: Keyed<RoutesSection>): readonly EncodedResource[] {
    return this.#routes.get(section);
  }

  own(section: Keyed<OwnSection>): OwnResources {
    return this.#own.get(section);
  }

  /** The endpoints of all clusters of a section. */
  endpoints(section: Keyed<ClustersSection>, snapshot: EndpointSnapshot): ResourceMap {
    return this.#endpointMaps.get(section.key, snapshot, () =>
      this.#clusters
        .get(section)
        .outbound.filter(({ service }) => hasSentEndpoints(service))
        .map((cluster) => this.#encode(cluster, snapshot)),
    );
  }

  /**
   * Names for the DNS servers of those that see these Services and have addresses of these families; made when the
   * first of them asks.
   */
  names(section: Keyed<ClustersSection>, snapshot: EndpointSnapshot, families: readonly string[]): ResourceMap {
    return this.#nameMaps.get(`${section.key} ${families.join()}`, snapshot, () => [
      encodeResource(NameTableSchema, translateNames(section.value.services, snapshot, families)),
    ]);
  }

  /** Everything at once; the server takes the sections one by one, and declares those that have changed. */
  resources({ clusters, routes, own }: ProxyView, endpoints: EndpointSnapshot): ProxyResources {
    const { clusters: ownClusters, listeners } = this.own(own);
    return {
      CDS: byName([...this.clusters(clusters), ...ownClusters]),
      EDS: this.endpoints(clusters, endpoints),
      LDS: byName(listeners),
      RDS: byName(this.routes(routes)),
    };
  }

  /** Forgets what no connected proxy's view needs any more. */
  keepOnly(views: readonly ProxyView[]): void {
    const clusters = new Map(views.map((view) => [view.clusters.key, view.clusters]));
    this.#clusters.keepOnly(new Set(clusters.keys()));
    this.#routes.keepOnly(new Set(views.map(({ routes }) => routes.key)));
    this.#own.keepOnly(new Set(views.map(({ own }) => own.key)));
    const needed = new Set([...clusters.values()].flatMap((each) => this.#clusters.get(each).outbound.map(slotOf)));
    for (const slot of this.#endpoints.keys()) if (!needed.has(slot)) this.#endpoints.delete(slot);
  }

  #encode(cluster: OutboundCluster, snapshot: EndpointSnapshot): EncodedResource {
    const slot = slotOf(cluster);
    const { key, value } = Keyed.of<EndpointsSection>({
      clusterName: cluster.name,
      clusterId: this.#clusterId,
      endpoints: endpointsOf(cluster, snapshot),
      ...(cluster.near === undefined ? {} : { near: cluster.near }),
    });
    const known = this.#endpoints.get(slot);
    if (known?.key === key) return known.encoded;
    const encoded = encodeResource(ClusterLoadAssignmentSchema, translateEndpoints(value));
    this.#endpoints.set(slot, { key, encoded });
    return encoded;
  }
}

/**
 * Two namespaces can have different rules, and so different labels, behind the same cluster name, and different
 * ServiceEntries for one host; what is in which network is seen differently from each.
 */
function slotOf({ name, subset, reach, service, networks, near }: OutboundCluster): string {
  const owner = service.entry === undefined ? "" : service.namespace;
  return `${name} ${owner} ${reach} ${networks?.own ?? ""} ${near ?? ""} ${JSON.stringify(subset?.labels ?? {})}`;
}
