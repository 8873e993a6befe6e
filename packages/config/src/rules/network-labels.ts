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
function networkGatewayPort(labels: Labels): number {
  const port = Number(labels["networking.tulle.io/gatewayPort"] ?? labels["networking.istio.io/gatewayPort"] ?? "");
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : defaultGatewayPort;
}

interface ServiceLike {
  readonly metadata: { readonly labels?: Labels | undefined };
  readonly spec: { readonly ports: readonly { readonly port: number }[] };
}

/** The network that a Service's outside addresses lead into, by its label, and at which port. */
export function leadsIntoNetwork({ metadata, spec }: ServiceLike): { network: string; port: number } | undefined {
  const { labels = {} } = metadata;
  const network = labelledNetwork(labels);
  const port = networkGatewayPort(labels);
  return network !== undefined && spec.ports.some((each) => each.port === port) ? { network, port } : undefined;
}
