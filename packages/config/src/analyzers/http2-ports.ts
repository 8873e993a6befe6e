/**
 * TUL0001: ports that speak HTTP/2. Tulle's proxy takes their clusters for calls of its own, to authorizers, and carries no requests
 * to them yet; a stock Envoy does.
 */
import { portProtocol } from "../port-protocol.ts";
import type { Analyzer } from "./analyzer.ts";

export const http2Ports: Analyzer = {
  name: "http2-ports",
  codes: ["TUL0001"],
  *run(mesh) {
    for (const resource of mesh.list("Service")) {
      for (const [index, port] of resource.spec.ports.entries()) {
        const protocol = portProtocol(port);
        if (protocol !== "http2" && protocol !== "grpc") continue;
        yield {
          code: "TUL0001",
          severity: "info",
          resource,
          path: ["spec", "ports", index],
          message: `port ${port.port} speaks HTTP/2, which Tulle's proxy does not carry yet: requests that come through it get 503`,
          suggestion:
            'Let Envoy stand beside callers and workload ("sidecar.tulle.io/proxy: envoy"); authorizers are reached all the same.',
        };
      }
    }
  },
};
