/**
 * Which protocol a Service port speaks: from `appProtocol`, else from the prefix of its name, as Istio reads them.
 */

/** What a Service or a pod says of one of its ports. */
interface DeclaredPort {
  readonly name?: string | undefined;
  readonly protocol?: string | undefined;
  readonly appProtocol?: string | undefined;
}

export type PortProtocol =
  | "http"
  | "http2"
  | "grpc"
  | "grpc-web"
  | "https"
  | "tls"
  | "tcp"
  | "udp"
  | "mongo"
  | "mysql"
  | "redis"
  /** Neither field tells: proxies look at the first bytes of each connection (Istio: protocol selection). */
  | "auto";

// Names that contain "-" themselves come first, or "grpc-web" would be read as "grpc".
const namedProtocols = [
  "grpc-web",
  "grpc",
  "http2",
  "http",
  "https",
  "tls",
  "tcp",
  "udp",
  "mongo",
  "mysql",
  "redis",
] as const;

/** Values of appProtocol that Kubernetes standardised (KEP-3726). */
const kubernetesAppProtocols: Readonly<Record<string, PortProtocol>> = {
  "kubernetes.io/h2c": "http2",
  "kubernetes.io/ws": "http",
  "kubernetes.io/wss": "https",
};

export function portProtocol(port: DeclaredPort): PortProtocol {
  // Neither is a stream of TCP, which is all that proxies carry.
  if (port.protocol === "UDP" || port.protocol === "SCTP") return "udp";
  if (port.appProtocol !== undefined) {
    const value = port.appProtocol.toLowerCase();
    return kubernetesAppProtocols[value] ?? namedProtocols.find((protocol) => protocol === value) ?? "auto";
  }
  const name = port.name?.toLowerCase() ?? "";
  return namedProtocols.find((protocol) => name === protocol || name.startsWith(`${protocol}-`)) ?? "auto";
}

/** Whether requests on a port of this protocol are routed one by one; at `auto` those are that are found. */
export function isHttp(protocol: PortProtocol): boolean {
  return (
    protocol === "http" || protocol === "http2" || protocol === "grpc" || protocol === "grpc-web" || protocol === "auto"
  );
}

/** Whether connections to a port of this protocol are passed on as they are; at `auto` those where no HTTP is found. */
export function passesConnections(protocol: PortProtocol): boolean {
  return protocol !== "udp" && (protocol === "auto" || !isHttp(protocol));
}

/** What `protocol` of a ServiceEntry's port says, in any case; empty stands for `auto`, undefined is none. */
export function entryProtocol(text: string): PortProtocol | undefined {
  if (text === "") return "auto";
  const name = text.toLowerCase();
  return namedProtocols.find((protocol) => protocol === name);
}
