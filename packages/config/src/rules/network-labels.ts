/** Labels that say in which network something is (Istio: label.TopologyNetwork, label.NetworkingGatewayPort). */

type Labels = Readonly<Record<string, string>>;

/** Of a pod or a machine: where it is. Of a Service: the network whose gateway it is. Undefined where none is said. */
export function labelledNetwork(labels: Labels): string | undefined {
  const network = labels["topology.tulle.io/network"] ?? labels["topology.istio.io/network"] ?? "";
  return network === "" ? undefined : network;
}

/** Istio: DefaultNetworkGatewayPort. */
const defaultGatewayPort = 15_443;

/** Port of a gateway's Service at which proxies of other networks come in. */
export function networkGatewayPort(labels: Labels): number {
  const port = Number(labels["networking.tulle.io/gatewayPort"] ?? labels["networking.istio.io/gatewayPort"] ?? "");
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : defaultGatewayPort;
}
