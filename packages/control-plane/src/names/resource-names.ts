// The names of xDS resources, exactly Istio's: dashboards, scripts and people know them.

import type { PortProtocol } from "@tulle/config";

export const blackHoleCluster = "BlackHoleCluster";
export const passthroughCluster = "PassthroughCluster";

export const inboundPassthroughCluster = "InboundPassthroughCluster";

/** Where the kernel redirects a workload's connections to (Istio: proxyListenPort, proxyInboundListenPort). */
export const capturedPorts = { outbound: 15_001, inbound: 15_006 } as const;

/** Route table of the explicit HTTP proxy (Istio: proxyHttpPort). */
export const httpProxyRoute = "http_proxy";
export const httpProxyPort = 15_007;

export function outboundClusterName(hostname: string, port: number, subset = ""): string {
  return `outbound|${port}|${subset}|${hostname}`;
}

/**
 * For connections that are passed on as they are. A port whose protocol is not named has such a cluster beside the one
 * for requests, since each tells the other side by its ALPN what comes.
 */
export function connectionClusterName(
  hostname: string,
  { number, protocol }: { readonly number: number; readonly protocol: PortProtocol },
  subset = "",
): string {
  const name = outboundClusterName(hostname, number, subset);
  return protocol === "auto" ? name.replace("outbound", "outbound-tcp") : name;
}

export const podTakes = ["mutual TLS", "plain text"] as const;

/** For connections to a pod that the client has chosen, by what the pod takes. Not in Istio. */
export function podClusterName(connectionCluster: string, takes: (typeof podTakes)[number]): string {
  return connectionCluster.replace(/^[^|]*/, takes === "mutual TLS" ? "outbound-pod" : "outbound-pod-plain");
}

/** For requests to such a pod. */
export function podRequestsClusterName(cluster: string): string {
  return cluster.replace(/^[^|]*/, "outbound-pod-http");
}

/**
 * A cluster's name as a TLS server name, by which gateways pass connections on: `|` may not stand in one (Istio:
 * BuildDNSSrvSubsetKey).
 */
export function sniName(hostname: string, port: number, subset = ""): string {
  return `outbound_.${port}_.${subset}_.${hostname}`;
}

export function inboundClusterName(targetPort: number): string {
  return `inbound|${targetPort}||`;
}

export function inboundVirtualHostName(servicePort: number): string {
  return `inbound|http|${servicePort}`;
}

export function gatewayRouteName(targetPort: number): string {
  return `http.${targetPort}`;
}

export function listenerName(address: string, port: number): string {
  return `${address}_${port}`;
}

/** As it stands in a Host header: IPv6 addresses in brackets (RFC 3986 section 3.2.2). */
export function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

export function withPort(host: string, port: number): string {
  return `${bracketed(host)}:${port}`;
}
