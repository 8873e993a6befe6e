// Where the `tcp` and `tls` routes of a VirtualService lead, at gateways and in tunnels.
import type { TcpRoute } from "@tulle/config";
import { connectionClusterName } from "../names/resource-names.ts";
import type { MeshPort, MeshService } from "../snapshot/mesh-snapshot.ts";
import type { Layer4Match } from "./gateway-listeners.ts";
import type { ConnectionDestination } from "./gateway-view.ts";

/** Whether a match of a `tls` or `tcp` route is about sidecars' connections to that port. */
export function isMeantForMesh({ gateways = [], port }: Layer4Match, wanted: number): boolean {
  return (gateways.length === 0 || gateways.includes("mesh")) && (port === undefined || port === wanted);
}

/** See `ConnectionDestination`. */
export function namedAtPort(
  service: Pick<MeshService, "entry"> | undefined,
  port: MeshPort | undefined,
): Pick<ConnectionDestination, "namedAtPort"> {
  return service?.entry?.resolution === "DYNAMIC_DNS" && port !== undefined
    ? { namedAtPort: Number(port.targetPort) }
    : {};
}

/**
 * One destination takes everything, whatever its weight; of several those without a weight get nothing. `port` is meant
 * where a Service has several and the destination names none.
 */
export function connectionDestinations(
  routes: TcpRoute["route"],
  port: number,
  serviceOf: (hostname: string) => MeshService | undefined,
): readonly ConnectionDestination[] {
  const all = routes.map(({ destination: { host, port: named, subset }, weight = 0 }): ConnectionDestination => {
    const ports = serviceOf(host)?.ports ?? [];
    const number = named?.number ?? (ports.length === 1 ? ports[0]!.number : port);
    const known = ports.find((each) => each.number === number);
    const { protocol = "tcp" } = known ?? {};
    const cluster = connectionClusterName(host, { number, protocol }, subset);
    return { cluster, weight, ...namedAtPort(serviceOf(host), known) };
  });
  return all.length === 1 ? [{ ...all[0]!, weight: 1 }] : all.filter(({ weight }) => weight > 0);
}
