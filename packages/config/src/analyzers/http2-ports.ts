/**
 * TUL0001: ports that speak HTTP/2. Tulle's proxy takes their clusters for calls of its own, to authorizers, and
 * carries no requests to them yet; a stock Envoy does. Clients of a gateway meet its listener, whatever its Service
 * calls the port.
 */
import { portProtocol } from "../rules/port-protocol.ts";
import { type Analyzer, isOfGateways } from "./analyzer.ts";

export const http2Ports: Analyzer = {
  name: "http2-ports",
  codes: ["TUL0001"],
  *run(mesh) {
    for (const resource of mesh.list("Service")) {
      if (isOfGateways(mesh, resource)) continue;
      for (const [index, port] of resource.spec.ports.entries()) {
        const protocol = portProtocol(port);
        if (protocol !== "http2" && protocol !== "grpc") continue;
        yield {
          code: "TUL0001",
          resource,
          path: ["spec", "ports", index],
          message:
            `port ${port.port} speaks HTTP/2, which Tulle's proxy does not carry yet: ` +
            "it answers requests for this port with 503 (cluster_speaks_http2)",
          suggestion:
            'If the application speaks HTTP/1.1 too, name the port "http"; else let Envoy stand beside callers and workload ("sidecar.tulle.io/proxy: envoy"). Authorizers are reached all the same.',
        };
      }
    }
  },
};
