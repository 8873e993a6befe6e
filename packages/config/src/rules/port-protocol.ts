/**
 * Which protocol a Service port speaks: from `appProtocol`, else from the prefix of its name, as Istio reads them.
 */
import type { ServicePort } from "../kinds/resource.ts";

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
  /** Neither field tells. Istio detects it from the first bytes; Tulle takes it for HTTP until detection comes. */
  | "unknown";

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

export function portProtocol(port: Pick<ServicePort, "name" | "protocol" | "appProtocol">): PortProtocol {
  if (port.protocol === "UDP") return "udp";
  if (port.protocol === "SCTP") return "tcp";
  if (port.appProtocol !== undefined) {
    const value = port.appProtocol.toLowerCase();
    return kubernetesAppProtocols[value] ?? namedProtocols.find((protocol) => protocol === value) ?? "unknown";
  }
  const name = port.name?.toLowerCase() ?? "";
  return namedProtocols.find((protocol) => name === protocol || name.startsWith(`${protocol}-`)) ?? "unknown";
}

/** Whether requests on a port of this protocol are routed one by one. */
export function isHttp(protocol: PortProtocol): boolean {
  return (
    protocol === "http" ||
    protocol === "http2" ||
    protocol === "grpc" ||
    protocol === "grpc-web" ||
    protocol === "unknown"
  );
}
