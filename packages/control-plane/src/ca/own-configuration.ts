// Who may have whose configuration: a proxy gets that of the pod which its certificate is of, and nothing else.
import { spiffeIdText } from "@tulle/identity";
import type { Logger } from "@tulle/telemetry";
import type { AdsConnection, AdsServerHandlers, Refusal, StreamOpening } from "@tulle/xds";
import { parseNode } from "../scope/proxy.ts";
import type { CaMetrics } from "./ca-metrics.ts";
import type { KnownPods } from "./known-pods.ts";

type Asking = Pick<AdsConnection, "peer" | "peerIdentity" | "node">;

/** Streams of one pod's proxy and agent: each has one or two, and the next before the last is noticed to be dead. */
export const maxStreamsPerPod = 8;

const withCertificateOnly = "this port serves workloads that show their certificate";

/**
 * For `AdsServerOptions.admission` of the port with TLS. Before its first request a stream says nothing of its pod: what one identity
 * may open goes by how many pods it has, so that no workload takes the streams of all others.
 */
export function workloadsOnly(pods: KnownPods, metrics: CaMetrics): (opening: StreamOpening) => Refusal | undefined {
  return ({ peerIdentity, openStreams }) => {
    if (peerIdentity === undefined) {
      metrics.deniedStreams.increment();
      return { status: "PERMISSION_DENIED", details: withCertificateOnly };
    }
    if (openStreams < maxStreamsPerPod) return undefined;
    const allowed = maxStreamsPerPod * pods.count(peerIdentity.namespace, peerIdentity.serviceAccount);
    if (openStreams < allowed) return undefined;
    const details = `more than ${openStreams} streams of ${spiffeIdText(peerIdentity)}`;
    return { status: "RESOURCE_EXHAUSTED", details };
  };
}

/** For `AdsServerHandlers.refusal` of the port with TLS; what is refused is written down. */
export function ownConfigurationOnly(
  pods: KnownPods,
  metrics: CaMetrics,
  log: Logger,
): (connection: Asking) => string | undefined {
  return (connection) => {
    const reason = refusal(connection, pods);
    if (reason === undefined) return undefined;
    metrics.deniedStreams.increment();
    log.warning("a client was denied configuration", { peer: connection.peer, node: connection.node.id, reason });
    return reason;
  };
}

/**
 * The same handlers for streams that end when they would be refused: a pod that is gone, or has become another's, gets no more of its
 * configuration.
 */
export function endingWithThePod(handlers: AdsServerHandlers, pods: KnownPods, log: Logger): AdsServerHandlers {
  const open = new Set<AdsConnection>();
  pods.follow(() => {
    for (const connection of open) {
      const reason = refusal(connection, pods);
      if (reason === undefined) continue;
      open.delete(connection);
      log.info("a stream ends with its pod", { peer: connection.peer, node: connection.node.id, reason });
      connection.close("PERMISSION_DENIED", reason);
    }
  });
  return {
    onConnect: (connection) => {
      open.add(connection);
      handlers.onConnect(connection);
    },
    onSubscribe: (connection, subscription) => handlers.onSubscribe(connection, subscription),
    onAck: (connection, acknowledgement) => handlers.onAck?.(connection, acknowledgement),
    onNack: (connection, rejection) => handlers.onNack?.(connection, rejection),
    onSent: (connection, sent) => handlers.onSent?.(connection, sent),
    onIgnored: (connection, reason, detail) => handlers.onIgnored?.(connection, reason, detail),
    onDisconnect: (connection, reason) => {
      open.delete(connection);
      handlers.onDisconnect(connection, reason);
    },
  };
}

function refusal({ node, peerIdentity }: Asking, pods: KnownPods): string | undefined {
  if (peerIdentity === undefined) return withCertificateOnly;
  const parsed = parseNode(node);
  if ("problem" in parsed) return parsed.problem;
  const { name, namespace } = parsed.proxy;
  const caller = spiffeIdText(peerIdentity);
  // Said before the pod is looked up: what is not its own is nobody's to learn about.
  if (namespace !== peerIdentity.namespace) return `${caller} may not have the configuration of ${name}.${namespace}`;
  const pod = pods.get(namespace, name);
  if (pod === undefined) return `there is no pod ${name}.${namespace}`;
  return pod.serviceAccount === peerIdentity.serviceAccount
    ? undefined
    : `${caller} may not have the configuration of ${name}.${namespace}, which runs under ${pod.serviceAccount}`;
}
