// Istio's request metrics. The handles of a combination of labels are resolved once and kept where the next request
// finds them: on the host (as source), under the peer's header (as destination). After that a request costs two
// look-ups and four adds.
import {
  type Counter,
  type Histogram,
  type Labels,
  type MetricDescription,
  type MetricRegistry,
  otherValue,
} from "@tulle/telemetry";
import type { CelSubject } from "../../../cel/attributes.ts";
import type { Cluster } from "../../../cluster/cluster.ts";
import type { TlsInfo } from "../../../tls/tls-info.ts";
import { isGrpc } from "../../../http/grpc-status.ts";
import type { FilterStatus, HttpFilter, HttpStream } from "../../../http/filter.ts";
import { ownText } from "../../../http/own-text.ts";
import { responseFlagsText } from "../../../http/response-flags.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import type { DataPath } from "../../../worker/data-path.ts";
import { CallbackTimer } from "../../../worker/timer-wheel.ts";
import { type ConnectionSecurity, noSecurity, securityOf, upstreamSecurityOf } from "./connection-security.ts";
import { grpcStatusOf, grpcStatusText } from "./grpc-status-label.ts";
import { type MetricOverrides, recordCustom } from "./metric-overrides.ts";
import { at, type Handles, type MessageHandles, overflow, overflowKey, type Pair } from "./kept-handles.ts";
import type { Rotation } from "./rotation.ts";
import {
  authorityOf,
  clusterServiceOf,
  hostLabels,
  type Reporter,
  type Traffic,
  trafficLabels,
} from "./traffic-labels.ts";
import { TunnelMetrics } from "./tunnel-metrics.ts";
import {
  decodePeerLabels,
  otherWorkload,
  type ServiceLabels,
  unknownWorkload,
  type WorkloadLabels,
} from "./workload-labels.ts";

export const peerMetadataHeader = "x-envoy-peer-metadata";

/** Peers told apart; the header comes from outside, so that one more counts as `other`. */
const maxPeers = 1024;
/** Codes, flags and values of expressions told apart between two ends; one more counts as `other`. */
const maxOutcomes = 2048;

export interface IstioStatsOptions {
  readonly name: string;
  readonly metrics: MetricRegistry;
  readonly reporter: Reporter;
  /** The workload that this proxy stands beside. */
  readonly own: WorkloadLabels;
  /** False = the service is unknown where the cluster's metadata names none (Istio: disable_host_header_fallback). */
  readonly usesHostHeader: boolean;
  /** Streams may last for days: what they have carried is told meanwhile (Istio: tcp_reporting_duration). */
  readonly reportIntervalMs: number;
  /** Undefined = the standard metrics as they are. */
  readonly overrides: MetricOverrides | undefined;
  readonly rotation: Rotation;
}

/** Messages of one call that have been counted. */
interface CountedMessages {
  request: number;
  response: number;
}

interface Peer {
  readonly labels: WorkloadLabels;
  readonly security: ConnectionSecurity;
  /** By cluster; at a waypoint by host. */
  readonly clusters: Map<string, Pair>;
}

/** Peers of one security, by the header that they sent. */
interface PeerGroup {
  readonly security: ConnectionSecurity;
  readonly peers: Map<string, Peer>;
}

/** Clusters that are no service but a rule of the mesh; their name stands for the service's (Istio). */
const ruleClusters = new Set(["BlackHoleCluster", "PassthroughCluster", "InboundPassthroughCluster"]);

/** Where handles are kept until idle series go. */
class Kept {
  readonly generation: number;
  /** As source: on each host, by `metricLabels`; this is for requests that found none. */
  readonly withoutHost = new Map<string, Pair>();
  /** As destination: by what the handshake proved, the peer's header, then by cluster. */
  readonly groups = new Map<string, PeerGroup>();
  readonly groupOfConnection = new WeakMap<TlsInfo, PeerGroup>();
  readonly plain: PeerGroup = { security: noSecurity, peers: new Map() };
  peerCount = 0;
  /** Something has been counted under `other`, for want of room here. */
  isFull = false;

  constructor(generation: number) {
    this.generation = generation;
  }
}

export class IstioStatsFilter implements HttpFilter {
  readonly name: string;
  readonly #options: IstioStatsOptions;
  #kept: Kept;
  /** As source: who is at the two ends of a connection, as one text. */
  readonly #principalsOfConnection = new WeakMap<TlsInfo, string>();
  readonly #tunnels: TunnelMetrics;
  /** gRPC under way. */
  readonly #calls = new Map<StreamInfo, CountedMessages>();
  #reportTimer: CallbackTimer | undefined = undefined;
  /** The header that was last found to say nothing. */
  #unreadable = "";

  constructor(options: IstioStatsOptions) {
    this.name = options.name;
    this.#options = options;
    this.#tunnels = new TunnelMetrics(options);
    this.#kept = new Kept(options.rotation.generation);
  }

  onRequestHead(stream: HttpStream): FilterStatus {
    if (stream.request.headers.get("content-type")?.startsWith("application/grpc") === true) this.#followCall(stream);
    if (stream.request.method === "CONNECT") this.#tunnels.follow(stream);
    if (this.#options.reporter === "source") return "continue";
    const { headers } = stream.request;
    stream.info.downstreamPeerMetadata = headers.get(peerMetadataHeader);
    // It is for us alone: the application gets what its caller sent.
    headers.remove(peerMetadataHeader);
    return "continue";
  }

  onComplete({ info }: HttpStream): void {
    if (info.request?.method === "CONNECT" && this.#tunnels.onComplete(info)) return;
    const counted = this.#calls.get(info);
    // gRPC-Web is gRPC by now.
    const isCall = counted !== undefined && info.request !== undefined && isGrpc(info.request.headers);
    const { overrides } = this.#options;
    const pair = this.#pairOf(info);
    const outcome = (info.responseFlags * 1024 + info.responseCode) * 32 + (isCall ? 1 + grpcStatusOf(info) : 0);
    const values = overrides?.keyOf(subjectOf(info)) ?? "";
    const key = values === "" ? outcome : `${outcome}${values}`;
    const handles = pair.outcomes.get(key) ?? this.#newOutcome(info, pair, key, isCall);
    handles.requests?.increment();
    handles.durationMs?.record(info.durationMs);
    handles.requestBytes?.record(info.bytesReceived);
    handles.responseBytes?.record(info.bytesSent);
    if (info.span?.isSampled === true) addExemplars(handles, info, info.span.traceId);
    if (handles.custom !== undefined) recordCustom(handles.custom, subjectOf(info));
    if (counted === undefined) return;
    this.#countMessages(info, counted);
    this.#calls.delete(info);
  }

  #newOutcome(info: StreamInfo, pair: Pair, key: number | string, isCall: boolean): Handles {
    const isFull = pair.outcomes.size >= maxOutcomes;
    this.#kept.isFull ||= isFull || overflow.has(pair);
    const kept = isFull ? pair.outcomes.get(overflowKey) : undefined;
    if (kept !== undefined) return kept;
    const handles = this.#resolve(info, isCall, overflow.has(pair), isFull);
    pair.outcomes.set(isFull ? overflowKey : key, handles);
    return handles;
  }

  #followCall({ info, dataPath }: HttpStream): void {
    this.#calls.set(info, { request: 0, response: 0 });
    if (this.#calls.size > 1) return;
    this.#reportTimer ??= new CallbackTimer(() => {
      for (const [each, counted] of this.#calls)
        if (each.upstreamHost !== undefined) this.#countMessages(each, counted);
      if (this.#calls.size > 0) this.#armReport(dataPath);
    });
    this.#armReport(dataPath);
  }

  #armReport({ timers, turn }: DataPath): void {
    timers.arm(this.#reportTimer!, this.#options.reportIntervalMs, turn.nowMs);
  }

  #countMessages(info: StreamInfo, counted: CountedMessages): void {
    const { grpcMessages } = info;
    if (grpcMessages === undefined) return;
    const pair = this.#pairOf(info);
    const { overrides } = this.#options;
    const key = overrides === undefined ? "" : `${info.responseCode}${overrides.keyOf(subjectOf(info))}`;
    let handles = pair.messages.get(key);
    if (handles === undefined) {
      handles = this.#resolveMessages(info, overflow.has(pair));
      if (pair.messages.size < maxOutcomes) pair.messages.set(key, handles);
    }
    const { request, response } = grpcMessages;
    handles.request?.add(request.count - counted.request);
    handles.response?.add(response.count - counted.response);
    counted.request = request.count;
    counted.response = response.count;
  }

  #pairOf(info: StreamInfo): Pair {
    const { rotation, overrides } = this.#options;
    if (this.#kept.generation !== rotation.generation) {
      this.#kept = new Kept(rotation.generation);
      overrides?.forgetValues();
    }
    return this.#options.reporter === "source" ? this.#asSource(info) : this.#asDestination(info);
  }

  #asSource(info: StreamInfo): Pair {
    const host = info.upstreamHost;
    const authority = info.cluster === undefined || this.#readsAuthority(info.cluster) ? authorityOf(info) : "";
    if (host === undefined) return at(this.#kept.withoutHost, `${info.cluster?.name ?? ""} ${authority}`);
    const principals = info.upstreamTls === undefined ? "" : this.#principals(info.upstreamTls);
    const place = authority === "" ? principals : `${authority} ${principals}`;
    // The host may live for months, this filter until its listener is next configured.
    const ofHost = (host.metricLabels ??= new WeakMap()) as WeakMap<Kept, Map<string, Pair>>;
    let byPlace = ofHost.get(this.#kept);
    if (byPlace === undefined) {
      byPlace = new Map();
      ofHost.set(this.#kept, byPlace);
    }
    return at(byPlace, place);
  }

  #principals(tls: TlsInfo): string {
    let text = this.#principalsOfConnection.get(tls);
    if (text === undefined) {
      const { sourcePrincipal, destinationPrincipal } = upstreamSecurityOf(tls);
      text = `${sourcePrincipal} ${destinationPrincipal}`;
      this.#principalsOfConnection.set(tls, text);
    }
    return text;
  }

  #asDestination(info: StreamInfo): Pair {
    const cluster = info.cluster?.name ?? "";
    const { clusters } = this.#peer(this.#group(info.downstreamTls), info.downstreamPeerMetadata);
    const isWaypoint = this.#options.reporter === "waypoint";
    return at(clusters, isWaypoint ? `${cluster} ${info.upstreamHost?.addressText}` : cluster);
  }

  #group(tls: TlsInfo | undefined): PeerGroup {
    if (tls === undefined) return this.#kept.plain;
    const { groups, groupOfConnection } = this.#kept;
    let group = groupOfConnection.get(tls);
    if (group === undefined) {
      const security = securityOf(tls);
      const key = Object.values(security).join(" ");
      group = groups.get(key);
      if (group === undefined) {
        group = { security, peers: new Map() };
        groups.set(key, group);
      }
      groupOfConnection.set(tls, group);
    }
    return group;
  }

  #peer(group: PeerGroup, header: string | undefined): Peer {
    const key = header ?? "";
    let peer = group.peers.get(key);
    if (peer !== undefined) return peer;
    // What cannot be read comes again with each request of the same peer (measured: 6 of 78 µs to find out each time).
    const isFull = this.#kept.peerCount >= maxPeers && key !== overflowKey;
    this.#kept.isFull ||= isFull;
    if (isFull && key !== "") return this.#peer(group, overflowKey);
    const labels =
      key === overflowKey ? otherWorkload : key === this.#unreadable ? unknownWorkload : decodePeerLabels(header);
    if (labels === unknownWorkload && key !== "") {
      if (key !== this.#unreadable) this.#unreadable = ownText(key);
      return this.#peer(group, undefined);
    }
    peer = { labels, security: group.security, clusters: new Map() };
    group.peers.set(ownText(key), peer);
    this.#kept.peerCount += 1;
    return peer;
  }

  #readsAuthority(cluster: Cluster): boolean {
    return this.#options.usesHostHeader && clusterServiceOf(cluster) === undefined;
  }

  #resolve(info: StreamInfo, isCall: boolean, isOverflow: boolean, isOther: boolean): Handles {
    const { metrics, overrides } = this.#options;
    const standard = trafficLabels(this.#traffic(info, isOverflow), {
      request_protocol: isCall ? "grpc" : "http",
      response_code: isOther ? otherValue : String(info.responseCode),
      grpc_response_status: isOther ? otherValue : isCall ? grpcStatusText(grpcStatusOf(info)) : "",
      response_flags: isOther ? otherValue : responseFlagsText(info.responseFlags),
    });
    const histogram = (name: string): Histogram | undefined => {
      const labels = this.#labels(name, standard, info);
      return labels && metrics.histogram(this.#description(name, labels));
    };
    const custom = overrides?.custom(metrics, subjectOf(info));
    return {
      requests: this.#counter("requests_total", standard, info),
      durationMs: histogram("request_duration_milliseconds"),
      requestBytes: histogram("request_bytes"),
      responseBytes: histogram("response_bytes"),
      custom: custom === undefined || custom.length === 0 ? undefined : custom,
    };
  }

  #labels(name: string, standard: Labels, info: StreamInfo): Labels | undefined {
    const { overrides } = this.#options;
    return overrides === undefined ? standard : overrides.labels(name, standard, subjectOf(info));
  }

  #counter(name: string, standard: Labels, info: StreamInfo): Counter | undefined {
    const labels = this.#labels(name, standard, info);
    return labels && this.#options.metrics.counter(this.#description(name, labels));
  }

  #description(name: string, labels: Labels): MetricDescription {
    const isAskerFull = this.#kept.isFull || this.#options.overrides?.isFull === true;
    return { name: `istio_${name}`, labels, isLabelledByRequests: true, isAskerFull };
  }

  #resolveMessages(info: StreamInfo, isOverflow: boolean): MessageHandles {
    const { connection_security_policy: _policy, ...labels } = trafficLabels(this.#traffic(info, isOverflow), {});
    return {
      request: this.#counter("request_messages_total", labels, info),
      response: this.#counter("response_messages_total", labels, info),
    };
  }

  #traffic(info: StreamInfo, isOverflow: boolean): Traffic {
    const { reporter, own } = this.#options;
    const isSource = reporter === "source";
    const peer = isSource ? undefined : this.#peer(this.#group(info.downstreamTls), info.downstreamPeerMetadata);
    const security = peer === undefined ? upstreamSecurityOf(info.upstreamTls) : peer.security;
    const source = peer === undefined ? own : peer.labels;
    const destination = reporter === "destination" ? own : hostLabels(info.upstreamHost);
    const service = this.#service(info, destination, isOverflow);
    return { reporter, source, destination, service, security };
  }

  #service(info: StreamInfo, destination: WorkloadLabels, isOverflow: boolean): ServiceLabels {
    const { cluster } = info;
    const told = cluster && clusterServiceOf(cluster);
    if (told !== undefined) return told;
    const named = isOverflow ? otherValue : authorityOf(info);
    const authority = this.#options.usesHostHeader ? named : "unknown";
    const isRule = cluster !== undefined && ruleClusters.has(cluster.name);
    return {
      service: authority,
      name: isRule ? cluster.name : authority,
      namespace: isRule ? "unknown" : destination.workload_namespace,
    };
  }
}

/** Where the trace of one such request can be looked up. */
function addExemplars({ requests, durationMs }: Handles, info: StreamInfo, traceId: string): void {
  const atMs = info.startTimeMs + info.durationMs;
  if (requests !== undefined) requests.exemplar = { traceId, value: 1, atMs };
  durationMs?.addExemplar({ traceId, value: info.durationMs, atMs });
}

function subjectOf(info: StreamInfo): CelSubject {
  return { info, request: info.request, response: info.response };
}
