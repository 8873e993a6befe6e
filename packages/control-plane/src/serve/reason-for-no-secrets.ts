// Whether a proxy that asks for Secrets may have any.
import type { AdsConnection } from "@tulle/xds";
import type { ProxyView } from "../scope/proxy-view.ts";

interface SecretAsker {
  readonly connection: Pick<AdsConnection, "peerIdentity">;
  /** Undefined before the first push. */
  readonly view: ProxyView | undefined;
}

/**
 * A node says itself that it is a gateway. That a Gateway has chosen its pod is said by others, by labels that the
 * store has of it: without that any workload of a gateway's namespace could fetch its keys.
 */
export function reasonForNoSecrets({ connection, view }: SecretAsker): string | undefined {
  if (connection.peerIdentity === undefined) return "it has shown no certificate";
  if (view?.type !== "router") return "it is no gateway";
  const { routes, own } = view;
  const isChosen = routes.value.ports.length > 0 || (own.value.connectionListeners ?? []).length > 0;
  return isChosen ? undefined : "no Gateway has chosen its pod";
}
