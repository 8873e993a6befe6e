// Who may have whose configuration: a proxy gets that of the pod which its certificate is of, and nothing else.
import { spiffeIdText } from "@tulle/identity";
import type { Logger } from "@tulle/telemetry";
import type { AdsConnection } from "@tulle/xds";
import { parseNode } from "../scope/proxy.ts";
import type { CaMetrics } from "./ca-metrics.ts";
import type { KnownPods } from "./known-pods.ts";

type Asking = Pick<AdsConnection, "peer" | "peerIdentity" | "node">;

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

function refusal({ node, peerIdentity }: Asking, pods: KnownPods): string | undefined {
  if (peerIdentity === undefined) return "this port serves workloads that show their certificate";
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
