// The TLS contexts of all listeners and clusters that serve.
import { tlsTransports } from "../listener/listener.ts";
import type { RuntimeOwner } from "../runtime/runtime-owner.ts";
import type { CommonTlsContext } from "../tls/common-tls-context.ts";

export function servedTlsContexts(owner: RuntimeOwner): readonly CommonTlsContext[] {
  const ofListeners = [...owner.current.listeners.values()].flatMap(tlsTransports);
  const ofClusters = [...owner.clusters()].flatMap((cluster) => cluster.tlsTransports);
  return [...ofListeners, ...ofClusters].map(({ context }) => context);
}
