// The page syncStatus: for each proxy and each type, whether it holds what was sent, as `proxy-status` shows it.
import { type ProxySync, type StatusType, statusTypes, type TypeSync } from "@tulle/config/api";
import type { ResourceTypeName, TypeStatus } from "@tulle/xds";
import type { ConnectedProxy } from "../serve/pusher.ts";
import { proxyId } from "../serve/pusher.ts";

/** Of one type of one proxy: it may refuse all that it has, each with a long reason. */
const maxErrors = 100;

export function syncStatus(
  connected: readonly ConnectedProxy[],
  tulled: string,
  hasAuthority: boolean,
): readonly ProxySync[] {
  return newestOfEach(connected)
    .map(({ proxy, connection }) => {
      const status = connection.status();
      const of = (type: ResourceTypeName): TypeSync => typeSync(status.get(type));
      const types = Object.fromEntries(statusTypes.map((type) => [type, of(type)])) as Record<StatusType, TypeSync>;
      return {
        proxy: proxyId(proxy),
        proxy_type: proxy.type,
        cluster_id: proxy.clusterId,
        istio_version: proxy.version,
        cluster_sent: types.CDS.sent,
        cluster_acked: types.CDS.acked,
        listener_sent: types.LDS.sent,
        listener_acked: types.LDS.acked,
        route_sent: types.RDS.sent,
        route_acked: types.RDS.acked,
        endpoint_sent: types.EDS.sent,
        endpoint_acked: types.EDS.acked,
        extensionconfig_sent: types.ECDS.sent,
        extensionconfig_acked: types.ECDS.acked,
        tulled,
        connectedAt: new Date(connection.connectedAtMs).toISOString(),
        ...(hasAuthority && proxy.withoutCertificate === true ? { withoutCertificate: true as const } : {}),
        types,
      };
    })
    .sort((a, b) => (a.proxy < b.proxy ? -1 : 1));
}

/** A proxy that reconnects may stand here twice until its old stream is noticed to be dead: the newer one counts. */
function newestOfEach(connected: readonly ConnectedProxy[]): readonly ConnectedProxy[] {
  const byNode = new Map<string, ConnectedProxy>();
  for (const each of connected) {
    const known = byNode.get(each.proxy.nodeId);
    if (known === undefined || known.connection.id < each.connection.id) byNode.set(each.proxy.nodeId, each);
  }
  return [...byNode.values()];
}

function typeSync(status: TypeStatus | undefined): TypeSync {
  if (status === undefined) return { state: "NOT SENT", sent: "", acked: "", errors: [] };
  return {
    state: status.state,
    sent: status.sentNonce,
    acked: status.ackedNonce,
    ...(status.sentAtMs === 0 ? {} : { sentAt: new Date(status.sentAtMs).toISOString() }),
    ...(status.ackedAtMs === 0 ? {} : { ackedAt: new Date(status.ackedAtMs).toISOString() }),
    errors: status.rejected.slice(0, maxErrors).map(({ name, message, atMs }) => ({
      resource: name,
      message,
      at: new Date(atMs).toISOString(),
    })),
    ...(status.rejected.length > maxErrors ? { moreErrors: status.rejected.length - maxErrors } : {}),
  };
}
