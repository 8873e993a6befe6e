// The pages of debugEndpoints: what istiod shows of itself, for people and for tools that know istiod.
import type { MetricRegistry } from "@tulle/telemetry";
import { concealSecrets, type Store } from "@tulle/config";
import {
  debugEndpoints,
  type ProxyConfiguration,
  type ProxyConnection,
  type ServiceEndpoints,
} from "@tulle/config/api";
import { spiffeIdText } from "@tulle/identity";
import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import type { EncodedResource, ResourceTypeName } from "@tulle/xds";
import type { Pusher } from "../serve/pusher.ts";
import { proxyId } from "../serve/pusher.ts";
import type { MeshState } from "../serve/mesh-state.ts";
import type { TranslationCache } from "../serve/translation-cache.ts";
import type { ResourceMap } from "../translate/translate.ts";
import { ApiFailure } from "./api-failure.ts";
import type { Handlers, JsonReply } from "./routes.ts";
import { metricTargets } from "./metric-targets.ts";
import { syncStatus } from "./sync-status.ts";

export interface DebugRoutesOptions {
  readonly store: Store;
  readonly mesh: MeshState;
  readonly cache: TranslationCache;
  readonly pusher: Pick<Pusher, "connected" | "isPending">;
  readonly metrics: MetricRegistry;
  /** Brings gauges up to date before the metrics are shown. */
  readonly measure: () => void;
  readonly instanceId: string;
  readonly version: string;
}

export function debugRoutes(options: DebugRoutesOptions): Handlers<typeof debugEndpoints> {
  const { store, mesh, pusher, instanceId: instance, version, metrics, measure } = options;
  const hasAuthority = (): boolean => mesh.snapshot.trustDomain !== undefined;
  const pages = Object.values(debugEndpoints).filter((endpoint) => endpoint !== debugEndpoints.pages);
  return {
    syncStatus: () => page(syncStatus(pusher.connected, instance, hasAuthority())),
    pending: () => page({ pending: mesh.isPending || pusher.isPending }),
    configuration: () => page(store.all().map(concealSecrets)),
    registry: () => page(mesh.snapshot.services),
    endpoints: () => page(endpoints(mesh)),
    connections: () => page(connections(options)),
    proxyConfiguration: async ({ query }) => page(await configDump(options, query.get("proxyID"))),
    ready: () => ({ text: "ready\n" }),
    version: () => page({ version, instance }),
    metrics: ({ request }) => {
      measure();
      return metrics.page(request.headers.accept);
    },
    metricTargets: () => page(metricTargets(store)),
    pages: () => page(pages.map(({ path, summary }) => ({ path, summary }))),
  };
}

function page<Value>(json: Value): JsonReply<Value> {
  return { status: 200, json };
}

function endpoints(mesh: MeshState): readonly ServiceEndpoints[] {
  return [...mesh.endpoints.byServicePort].map(([key, list]) => {
    const colon = key.lastIndexOf(":");
    return { service: key.slice(0, colon), port: Number(key.slice(colon + 1)), endpoints: list };
  });
}

function connections({ pusher }: DebugRoutesOptions): readonly ProxyConnection[] {
  return pusher.connected.map(({ proxy, connection }) => ({
    connectionId: `${proxy.nodeId}-${connection.id}`,
    proxy: proxyId(proxy),
    peer: connection.peer,
    ...(connection.peerIdentity === undefined ? {} : { identity: spiffeIdText(connection.peerIdentity) }),
    labels: proxy.labels,
    connectedAt: new Date(connection.connectedAtMs).toISOString(),
  }));
}

async function configDump(options: DebugRoutesOptions, id: string | null): Promise<ProxyConfiguration> {
  if (id === null) throw new ApiFailure(400, "say which proxy: ?proxyID=<pod>.<namespace>");
  const found = options.pusher.connected.findLast(({ proxy }) => proxyId(proxy) === id || proxy.nodeId === id);
  if (found?.view === undefined) throw new ApiFailure(404, `no proxy ${id} is connected here`);
  const decoded = await decoder();
  const { CDS, EDS, LDS, RDS } = options.cache.resources(found.view, options.mesh.endpoints);
  const json = (type: ResourceTypeName, resources: ResourceMap) =>
    [...resources.values()].map((each) => decoded(type, each));
  return {
    proxy: id,
    clusters: json("CDS", CDS),
    endpoints: json("EDS", EDS),
    listeners: json("LDS", LDS),
    routes: json("RDS", RDS),
  };
}

/** The schemas of all messages are loaded when somebody asks for a dump, and not before. */
async function decoder(): Promise<(type: ResourceTypeName, resource: EncodedResource) => unknown> {
  const { messageToJson } = await import("@tulle/xds/json");
  const { resourceSchemas } = await import("@tulle/xds/resource-schemas");
  return (type, resource) => {
    const schema: DescMessage = resourceSchemas[type];
    return messageToJson(schema, fromBinary(schema, resource.any.value), { fieldNames: "snake_case" });
  };
}
