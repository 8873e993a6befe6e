// Who may have whose configuration: a proxy gets that of the pod which its certificate is of, and nothing else.
import { spiffeIdText } from "@tulle/identity";
import type { SeldomWarnings } from "@tulle/telemetry";
import type { AdsConnection, Refusal, StreamOpening } from "@tulle/xds";
import { parseNode } from "../scope/proxy.ts";
import type { CaMetrics } from "./ca-metrics.ts";
import type { KnownPods } from "./known-pods.ts";

export type Asking = Pick<AdsConnection, "peer" | "peerIdentity" | "node">;

/**
 * Of one pod's proxy and agent: each has one or two. A network that fails leaves dead ones behind, which are noticed
 * only after minutes; the pod that comes again is not to wait for that.
 */
export const maxStreamsPerPod = 8;
/** Streams of an identity whose first request has not said yet of which pod they are. */
const maxUnnamedStreams = 8;

const withCertificateOnly = "this port serves workloads that show their certificate";

/**
 * For `AdsServerOptions.admission` of the port with TLS. Before its first request a stream says nothing of its pod:
 * what one identity may open goes by how many pods it has, so that no workload takes the streams of all others. Of one
 * pod's the oldest makes way (`PodStreams`): this bound is only met by streams that ask for nothing.
 */
export function workloadsOnly(pods: KnownPods, metrics: CaMetrics): (opening: StreamOpening) => Refusal | undefined {
  return ({ peerIdentity, openStreams }) => {
    if (peerIdentity === undefined) {
      metrics.deniedStreams.increment();
      return { status: "PERMISSION_DENIED", details: withCertificateOnly };
    }
    if (openStreams < maxUnnamedStreams) return undefined;
    const { namespace, serviceAccount } = peerIdentity;
    const allowed = maxStreamsPerPod * pods.count(namespace, serviceAccount) + maxUnnamedStreams;
    if (openStreams < allowed) return undefined;
    const details = `more than ${openStreams} streams of ${spiffeIdText(peerIdentity)}`;
    return { status: "RESOURCE_EXHAUSTED", details };
  };
}

/** For `AdsServerHandlers.refusal` of the port with TLS; what is refused is written down. */
export function ownConfigurationOnly(
  pods: KnownPods,
  metrics: CaMetrics,
  warnings: Pick<SeldomWarnings, "tell">,
): (connection: Asking) => string | undefined {
  return (connection) => {
    const reason = refusalOf(connection, pods);
    if (reason === undefined) return undefined;
    metrics.deniedStreams.increment();
    const fields = { peer: connection.peer, node: connection.node.id, reason };
    warnings.tell("denied", "a client was denied configuration", fields);
    return reason;
  };
}

/** Why it may not have what its node asks for. */
export function refusalOf({ node, peerIdentity }: Asking, pods: KnownPods): string | undefined {
  if (peerIdentity === undefined) return withCertificateOnly;
  const parsed = parseNode(node);
  if ("problem" in parsed) return parsed.problem;
  const { name, namespace } = parsed.proxy;
  const caller = spiffeIdText(peerIdentity);
  // Said before the pod is looked up: what is not its own is nobody's to learn about.
  if (namespace !== peerIdentity.namespace) return `${caller} may not have the configuration of ${name}.${namespace}`;
  const machine = pods.machineOf(peerIdentity.serial);
  if (machine === "gone") return "the machine has left, or was removed";
  const pod = pods.get(namespace, name);
  if (pod === undefined) return `there is no pod ${name}.${namespace}`;
  if (pod.isMachine === true ? machine !== `${namespace}/${name}` : machine !== undefined)
    return `the certificate is not the one of ${name}.${namespace}`;
  return pod.serviceAccount === peerIdentity.serviceAccount
    ? undefined
    : `${caller} may not have the configuration of ${name}.${namespace}, which runs under ${pod.serviceAccount}`;
}
