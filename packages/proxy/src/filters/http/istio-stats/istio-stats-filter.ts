// Istio's request metrics. The handles of a combination of labels are resolved once and kept where the next request
// finds them: on the host (as source), under the peer's header (as destination). After that a request costs two
// look-ups and four adds.
import type { Counter, Histogram, MetricRegistry } from "@tulle/telemetry";
import type { Cluster } from "../../../cluster/cluster.ts";
import type { TlsInfo } from "../../../tls/tls-info.ts";
import { isGrpc, toldGrpcStatus } from "../../../http/grpc-status.ts";
import type { FilterStatus, HttpFilter, HttpStream } from "../../../http/filter.ts";
import { ownText } from "../../../http/own-text.ts";
import { responseFlagsText } from "../../../http/response-flags.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import type { DataPath } from "../../../worker/data-path.ts";
import { CallbackTimer } from "../../../worker/timer-wheel.ts";
import { type ConnectionSecurity, noSecurity, securityOf, upstreamSecurityOf } from "./connection-security.ts";
import { clusterServiceOf, hostLabels, type Traffic, trafficLabels } from "./traffic-labels.ts";
import { decodePeerLabels, type ServiceLabels, unknownWorkload, type WorkloadLabels } from "./workload-labels.ts";

export const peerMetadataHeader = "x-envoy-peer-metadata";

/** Peers told apart; the header comes from outside, so that one more counts as unknown. */
const maxPeers = 1024;
/** Streams may last for days: what they have carried is told meanwhile (Istio: tcp_reporting_duration). */
const reportIntervalMs = 5000;
/** Host headers told apart, where a cluster names no service. */
const maxAuthorities = 256;

export interface IstioStatsOptions {
  readonly name: string;
  readonly metrics: MetricRegistry;
  readonly reporter: "source" | "destination";
  /** The workload that this proxy stands beside. */
  readonly own: WorkloadLabels;
  /** False = the service is unknown where the cluster's metadata names none (Istio: disable_host_header_fallback). */
  readonly usesHostHeader: boolean;
}

interface Handles {
  readonly requests: Counter;
  readonly durationMs: Histogram;
  readonly requestBytes: Histogram;
  readonly responseBytes: Histogram;
}

/** Of gRPC, by who speaks to whom alone, as Istio counts them. */
interface MessageHandles {
  readonly request: Counter;
  readonly response: Counter;
}

/** Who speaks to whom: handles by flags, response code and gRPC status, as one number, and those of messages. */
interface Pair {
  readonly outcomes: Map<number, Handles>;
  messages: MessageHandles | undefined;
}

/** Messages of one call that have been counted. */
interface CountedMessages {
  request: number;
  response: number;
}

interface Peer {
  readonly labels: WorkloadLabels;
  readonly security: ConnectionSecurity;
  readonly clusters: Map<string, Pair>;
}

/** Peers of one security, by the header that they sent. */
interface PeerGroup {
  readonly security: ConnectionSecurity;
  readonly peers: Map<string, Peer>;
}

/** Clusters that are no service but a rule of the mesh; their name stands for the service's (Istio). */
const ruleClusters = new Set(["BlackHoleCluster", "PassthroughCluster", "InboundPassthroughCluster"]);

export class IstioStatsFilter implements HttpFilter {
  readonly name: string;
  readonly #options: IstioStatsOptions;
  /** As source: on each host, by `metricLabels`; this is for requests that found none. */
  readonly #withoutHost = new Map<string, Pair>();
  /** As destination: by what the handshake proved, the peer's header, then by cluster. */
  readonly #groups = new Map<string, PeerGroup>();
  readonly #groupOfConnection = new WeakMap<TlsInfo, PeerGroup>();
  readonly #plain: PeerGroup = { security: noSecurity, peers: new Map() };
  /** As source: who is at the two ends of a connection, as one text. */
  readonly #principalsOfConnection = new WeakMap<TlsInfo, string>();
  #peerCount = 0;
  /** gRPC under way. */
  readonly #calls = new Map<StreamInfo, CountedMessages>();
  #reportTimer: CallbackTimer | undefined = undefined;
  /** The header that was last found to say nothing. */
  #unreadable = "";

  constructor(options: IstioStatsOptions) {
    this.name = options.name;
    this.#options = options;
  }

  onRequestHead(stream: HttpStream): FilterStatus {
    if (stream.request.headers.get("content-type")?.startsWith("application/grpc") === true) this.#followCall(stream);
    if (this.#options.reporter === "source") return "continue";
    const { headers } = stream.request;
    stream.info.downstreamPeerMetadata = headers.get(peerMetadataHeader);
    // It is for us alone: the application gets what its caller sent.
    headers.remove(peerMetadataHeader);
    return "continue";
  }

  onComplete({ info }: HttpStream): void {
    const counted = this.#calls.get(info);
    // gRPC-Web is gRPC by now.
    const isCall = counted !== undefined && info.request !== undefined && isGrpc(info.request.headers);
    const pair = this.#pairOf(info);
    const key = (info.responseFlags * 1024 + info.responseCode) * 32 + (isCall ? 1 + grpcStatusOf(info) : 0);
    let handles = pair.outcomes.get(key);
    if (handles === undefined) {
      handles = this.#resolve(info, isCall, overflow.has(pair));
      pair.outcomes.set(key, handles);
    }
    handles.requests.increment();
    handles.durationMs.record(info.durationMs);
    handles.requestBytes.record(info.bytesReceived);
    handles.responseBytes.record(info.bytesSent);
    if (counted === undefined) return;
    this.#countMessages(info, counted);
    this.#calls.delete(info);
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
    timers.arm(this.#reportTimer!, reportIntervalMs, turn.nowMs);
  }

  #countMessages(info: StreamInfo, counted: CountedMessages): void {
    const { grpcMessages } = info;
    if (grpcMessages === undefined) return;
    const pair = this.#pairOf(info);
    pair.messages ??= this.#resolveMessages(info, overflow.has(pair));
    const { request, response } = grpcMessages;
    pair.messages.request.add(request.count - counted.request);
    pair.messages.response.add(response.count - counted.response);
    counted.request = request.count;
    counted.response = response.count;
  }

  #pairOf(info: StreamInfo): Pair {
    return this.#options.reporter === "source" ? this.#asSource(info) : this.#asDestination(info);
  }

  #asSource(info: StreamInfo): Pair {
    const host = info.upstreamHost;
    const authority = info.cluster === undefined || this.#readsAuthority(info.cluster) ? authorityOf(info) : "";
    if (host === undefined) return at(this.#withoutHost, `${info.cluster?.name ?? ""} ${authority}`);
    const principals = info.upstreamTls === undefined ? "" : this.#principals(info.upstreamTls);
    const place = authority === "" ? principals : `${authority} ${principals}`;
    // The host may live for months, this filter until its listener is next configured.
    const kept = (host.metricLabels ??= new WeakMap()) as WeakMap<IstioStatsFilter, Map<string, Pair>>;
    let byPlace = kept.get(this);
    if (byPlace === undefined) {
      byPlace = new Map();
      kept.set(this, byPlace);
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
    return at(
      this.#peer(this.#group(info.downstreamTls), info.downstreamPeerMetadata).clusters,
      info.cluster?.name ?? "",
    );
  }

  #group(tls: TlsInfo | undefined): PeerGroup {
    if (tls === undefined) return this.#plain;
    let group = this.#groupOfConnection.get(tls);
    if (group === undefined) {
      const security = securityOf(tls);
      const key = Object.values(security).join(" ");
      group = this.#groups.get(key);
      if (group === undefined) {
        group = { security, peers: new Map() };
        this.#groups.set(key, group);
      }
      this.#groupOfConnection.set(tls, group);
    }
    return group;
  }

  #peer(group: PeerGroup, header: string | undefined): Peer {
    const key = header ?? "";
    let peer = group.peers.get(key);
    if (peer !== undefined) return peer;
    // What cannot be read comes again with each request of the same peer (measured: 6 of 78 µs to find out each time).
    const labels = key === this.#unreadable ? unknownWorkload : decodePeerLabels(header);
    const isKnown = labels !== unknownWorkload && this.#peerCount < maxPeers;
    if (!isKnown && key !== "") {
      if (labels === unknownWorkload && key !== this.#unreadable) this.#unreadable = ownText(key);
      return this.#peer(group, undefined);
    }
    peer = { labels, security: group.security, clusters: new Map() };
    group.peers.set(ownText(key), peer);
    this.#peerCount += 1;
    return peer;
  }

  #readsAuthority(cluster: Cluster): boolean {
    return this.#options.usesHostHeader && clusterServiceOf(cluster) === undefined;
  }

  #resolve(info: StreamInfo, isCall: boolean, isOverflow: boolean): Handles {
    const { metrics } = this.#options;
    const labels = trafficLabels(this.#traffic(info, isOverflow), {
      request_protocol: isCall ? "grpc" : "http",
      response_code: String(info.responseCode),
      grpc_response_status: isCall ? grpcStatusText(grpcStatusOf(info)) : "",
      response_flags: responseFlagsText(info.responseFlags),
    });
    return {
      requests: metrics.counter({ name: "istio_requests_total", labels }),
      durationMs: metrics.histogram({ name: "istio_request_duration_milliseconds", labels }),
      requestBytes: metrics.histogram({ name: "istio_request_bytes", labels }),
      responseBytes: metrics.histogram({ name: "istio_response_bytes", labels }),
    };
  }

  #resolveMessages(info: StreamInfo, isOverflow: boolean): MessageHandles {
    const { metrics } = this.#options;
    const { connection_security_policy: _policy, ...labels } = trafficLabels(this.#traffic(info, isOverflow), {});
    return {
      request: metrics.counter({ name: "istio_request_messages_total", labels }),
      response: metrics.counter({ name: "istio_response_messages_total", labels }),
    };
  }

  #traffic(info: StreamInfo, isOverflow: boolean): Traffic {
    const { reporter, own } = this.#options;
    const isSource = reporter === "source";
    const peer = isSource ? undefined : this.#peer(this.#group(info.downstreamTls), info.downstreamPeerMetadata);
    const security = peer === undefined ? upstreamSecurityOf(info.upstreamTls) : peer.security;
    const source = peer === undefined ? own : peer.labels;
    const destination = isSource ? hostLabels(info.upstreamHost) : own;
    const service = this.#service(info, destination, isOverflow);
    return { reporter, source, destination, service, security };
  }

  #service(info: StreamInfo, destination: WorkloadLabels, isOverflow: boolean): ServiceLabels {
    const { cluster } = info;
    const told = cluster && clusterServiceOf(cluster);
    if (told !== undefined) return told;
    const authority = this.#options.usesHostHeader && !isOverflow ? authorityOf(info) : "unknown";
    const isRule = cluster !== undefined && ruleClusters.has(cluster.name);
    return {
      service: authority,
      name: isRule ? cluster.name : authority,
      namespace: isRule ? "unknown" : destination.workload_namespace,
    };
  }
}

function authorityOf(info: StreamInfo): string {
  const authority = info.request?.authority ?? "";
  return authority === "" ? "unknown" : authority.toLowerCase();
}

/** Maps that stand for all the keys for which there was no more room. */
const overflow = new WeakSet<Pair>();
const overflowKey = "\0";

/** The map under `key`, made when it is new; when there are too many, requests share one. */
function at(map: Map<string, Pair>, key: string): Pair {
  const kept = map.get(key);
  if (kept !== undefined) return kept;
  if (map.size >= maxAuthorities && key !== overflowKey) return at(map, overflowKey);
  const made: Pair = { outcomes: new Map(), messages: undefined };
  if (key === overflowKey) overflow.add(made);
  map.set(ownText(key), made);
  return made;
}

/** gRPC has 17; what an upstream makes up must not become a series each. */
const grpcStatusCount = 17;
const noGrpcStatus = grpcStatusCount;
const unknownGrpcStatus = grpcStatusCount + 1;

function grpcStatusOf(info: StreamInfo): number {
  const text = toldGrpcStatus(info, info.response);
  if (text === undefined) return noGrpcStatus;
  return /^\d{1,2}$/.test(text) && Number(text) < grpcStatusCount ? Number(text) : unknownGrpcStatus;
}

function grpcStatusText(status: number): string {
  if (status === noGrpcStatus) return "";
  return status === unknownGrpcStatus ? "unknown" : String(status);
}
