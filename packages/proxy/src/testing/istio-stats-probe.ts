// Istio's metrics filter with requests that are made up: what a test asks of labels, and nothing else.
import { ActiveSpan } from "../tracing/active-span.ts";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { type JsonObject } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { MetricRegistry } from "@tulle/telemetry";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { compileCluster } from "../compile/compile-cluster.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { Place, Problems } from "../fields/problems.ts";
import { type RequestProperties, accepted, fromConfiguration, requestHead, streamInfo } from "./from-configuration.ts";
import { ManualClock } from "./manual-clock.ts";
import { DataPath } from "../worker/data-path.ts";
import type { TlsInfo, UpstreamTlsInfo } from "../tls/tls-info.ts";
import type { HttpFilter, HttpStream } from "../http/filter.ts";
import { HeaderMap } from "../http/header-map.ts";
import { filterOfType } from "../filters/http/table.ts";
import { unwrapTypedConfig } from "../fields/typed-config.ts";
import { TypedStructSchema } from "@tulle/xds/xds/type/v3/typed_struct_pb";
import { toBinary } from "@bufbuild/protobuf";

export const peer = (told: object): string => Buffer.from(JSON.stringify(told)).toString("base64");
export const own = {
  workload: "webapp",
  workload_namespace: "shop",
  app: "webapp",
  version: "v1",
  canonical_service: "webapp",
  canonical_revision: "v1",
  cluster: "local",
};

export interface StatsFilterOptions {
  readonly settings?: object;
  readonly clock?: ManualClock;
  /** Warnings that are expected, by place and words. */
  readonly warnings?: readonly string[];
}

export function filter(metrics: MetricRegistry, isInbound: boolean, options: StatsFilterOptions = {}): HttpFilter {
  const { settings = {}, clock: ownClock = clock, warnings = [] } = options;
  const struct = create(TypedStructSchema, {
    typeUrl: "type.googleapis.com/stats.PluginConfig",
    value: settings as JsonObject,
  });
  const any = create(AnySchema, {
    typeUrl: `type.googleapis.com/${TypedStructSchema.typeName}`,
    value: toBinary(TypedStructSchema, struct),
  });
  const config = unwrapTypedConfig(any)!;
  const node = create(NodeSchema, { id: "sidecar~a", metadata: { ISTIO_VERSION: "1.25.0", LABELS: { team: "blue" } } });
  const scope = detachedScope({
    metrics,
    bootstrapNode: node,
    clock: ownClock,
    environment: { TULLE_PEER_METADATA: peer(own) },
  });
  const problems = new Problems();
  const made = filterOfType(config.typeUrl)?.compile(config, {
    name: "istio.stats",
    scope,
    isInbound,
    statPrefix: "test",
    clusterNames: new Set(),
    secretSlots: new Set(),
    place: Place.root,
    problems,
  });
  const told = problems.list.map(({ severity, place, message }) => `${severity}: ${place}: ${message}`);
  assert.deepEqual(told, warnings);
  return made!;
}

export function cluster(name: string, metadata: object, endpointMetadata: object = {}) {
  const json = {
    name,
    metadata: { filter_metadata: metadata },
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: [
            {
              endpoint: { address: { socket_address: { address: "10.0.0.1", port_value: 80 } } },
              metadata: { filter_metadata: endpointMetadata },
            },
          ],
        },
      ],
    },
  };
  return accepted(compileCluster(fromConfiguration(ClusterSchema, json), detachedScope())).cluster;
}

export interface Run {
  readonly request?: RequestProperties;
  readonly cluster?: ReturnType<typeof cluster>;
  readonly hasHost?: boolean;
  readonly code?: number;
  readonly flags?: number;
  readonly tls?: TlsInfo;
  readonly upstreamTls?: UpstreamTlsInfo;
  readonly trailers?: readonly string[];
  readonly traceId?: string;
  readonly isSampled?: boolean;
  /** Of gRPC, counted by the filter that is there for it. */
  readonly messages?: readonly [request: number, response: number];
}

export const clock = new ManualClock();
export const dataPath = new DataPath({ logging: detachedScope().logging, clock });

/** Passes one request through the filter; the header list that goes on to the next filter. */
export function pass(hooks: HttpFilter, run: Run): readonly string[] {
  const request = requestHead(run.request);
  const info = streamInfo(request);
  info.cluster = run.cluster;
  info.downstreamTls = run.tls;
  info.upstreamTls = run.upstreamTls;
  if (run.hasHost !== false) info.upstreamHost = run.cluster?.hosts[0];
  if (run.trailers !== undefined) info.responseTrailers = new HeaderMap([...run.trailers]);
  info.responseCode = run.code ?? 200;
  info.responseFlags = run.flags ?? 0;
  info.durationMs = 7;
  if (run.traceId !== undefined)
    info.span = new ActiveSpan(run.traceId, "b".repeat(16), "", run.isSampled !== false, undefined);
  info.bytesReceived = 10;
  info.bytesSent = 20;
  if (run.messages !== undefined) {
    const [sent, received] = run.messages;
    info.grpcMessages = { request: { count: sent }, response: { count: received } };
  }
  const stream = { info, request, dataPath } as unknown as HttpStream;
  hooks.onRequestHead?.(stream, true);
  hooks.onComplete?.(stream);
  return request.headers.entries;
}

export function series(metrics: MetricRegistry, name = "istio_requests_total") {
  return [...metrics.allSeries()].filter((one) => one.name === name);
}
