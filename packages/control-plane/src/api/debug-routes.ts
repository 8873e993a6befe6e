// The pages under `/debug/`, `/ready` and `/metrics`: what istiod shows of itself, for people and for tools that know istiod.
import type { MetricRegistry } from "@tulle/telemetry";
import { concealSecrets, type Store } from "@tulle/config";
import { spiffeIdText } from "@tulle/identity";
import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import type { EncodedResource, ResourceTypeName } from "@tulle/xds";
import type { Pusher } from "../serve/pusher.ts";
import { proxyId } from "../serve/pusher.ts";
import type { MeshState } from "../serve/mesh-state.ts";
import type { TranslationCache } from "../serve/translation-cache.ts";
import type { ResourceMap } from "../translate/translate.ts";
import { type ApiAnswer, ApiFailure, type ApiRoute } from "./http-api.ts";
import { syncStatus } from "./sync-status.ts";

export interface DebugRoutesOptions {
  readonly store: Store;
  readonly mesh: MeshState;
  readonly cache: TranslationCache;
  readonly pusher: Pick<Pusher, "connected" | "isPending">;
  readonly metrics: MetricRegistry;
  readonly instanceId: string;
  readonly version: string;
}

export function debugRoutes(options: DebugRoutesOptions): readonly ApiRoute[] {
  const page = (path: string, summary: string, json: () => unknown): ApiRoute => ({
    method: "GET",
    path,
    summary,
    handle: () => ({ status: 200, json: json() }),
  });
  const routes: ApiRoute[] = [
    page("/debug/syncz", "whether each proxy holds what was sent", () =>
      syncStatus(options.pusher.connected, options.instanceId, options.mesh.snapshot.trustDomain !== undefined),
    ),
    page("/debug/pending", "whether changes wait to be sent", () => ({
      pending: options.mesh.isPending || options.pusher.isPending,
    })),
    page("/debug/configz", "every resource", () => options.store.all().map(concealSecrets)),
    page("/debug/registryz", "every Service", () => options.mesh.snapshot.services),
    page("/debug/endpointz", "the endpoints of every Service port", () => endpoints(options.mesh)),
    page("/debug/connections", "open xDS streams", () => connections(options)),
    {
      method: "GET",
      path: "/debug/config_dump",
      summary: "what one proxy should have (?proxyID=<pod>.<namespace>)",
      handle: ({ query }) => configDump(options, query.get("proxyID")),
    },
    {
      method: "GET",
      path: "/ready",
      isPublic: true,
      summary: "200 once configuration is served",
      handle: () => text("ready\n"),
    },
    {
      ...page("/version", "version and instance", () => ({ version: options.version, instance: options.instanceId })),
      isPublic: true,
    },
    {
      method: "GET",
      path: "/metrics",
      isPublic: true,
      summary: "Prometheus metrics",
      handle: () => text(options.metrics.renderPrometheus(), "text/plain; version=0.0.4; charset=utf-8"),
    },
  ];
  return [...routes, page("/debug", "this list", () => routes.map(({ path, summary }) => ({ path, summary })))];
}

function text(body: string, contentType = "text/plain; charset=utf-8"): ApiAnswer {
  return { status: 200, text: body, contentType };
}

function endpoints(mesh: MeshState): unknown {
  return [...mesh.endpoints.byServicePort].map(([key, list]) => {
    const colon = key.lastIndexOf(":");
    return { service: key.slice(0, colon), port: Number(key.slice(colon + 1)), endpoints: list };
  });
}

function connections({ pusher }: DebugRoutesOptions): unknown {
  return pusher.connected.map(({ proxy, connection }) => ({
    connectionId: `${proxy.nodeId}-${connection.id}`,
    proxy: proxyId(proxy),
    peer: connection.peer,
    ...(connection.peerIdentity === undefined ? {} : { identity: spiffeIdText(connection.peerIdentity) }),
    labels: proxy.labels,
    connectedAt: new Date(connection.connectedAtMs).toISOString(),
  }));
}

async function configDump(options: DebugRoutesOptions, id: string | null): Promise<ApiAnswer> {
  if (id === null) throw new ApiFailure(400, "say which proxy: ?proxyID=<pod>.<namespace>");
  const found = options.pusher.connected.findLast(({ proxy }) => proxyId(proxy) === id || proxy.nodeId === id);
  if (found?.view === undefined) throw new ApiFailure(404, `no proxy ${id} is connected here`);
  const decoded = await decoder();
  const { CDS, EDS, LDS, RDS } = options.cache.resources(found.view, options.mesh.endpoints);
  const json = (type: ResourceTypeName, resources: ResourceMap) =>
    [...resources.values()].map((each) => decoded(type, each));
  return {
    status: 200,
    json: {
      proxy: id,
      clusters: json("CDS", CDS),
      endpoints: json("EDS", EDS),
      listeners: json("LDS", LDS),
      routes: json("RDS", RDS),
    },
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
