/**
 * TUL0005: in loopback mode applications reach services through an HTTP proxy, so ports of other protocols are not carried.
 */
import { isHttp, portProtocol } from "../port-protocol.ts";
import type { Analyzer } from "./analyzer.ts";

export const loopbackProtocols: Analyzer = {
  name: "loopback-protocols",
  codes: ["TUL0005"],
  *run(mesh) {
    if (mesh.options.networkMode !== "loopback") return;
    for (const resource of mesh.list("Service")) {
      for (const [index, port] of resource.spec.ports.entries()) {
        const protocol = portProtocol(port);
        if (isHttp(protocol)) continue;
        yield {
          code: "TUL0005",
          resource,
          path: ["spec", "ports", index],
          message: `port ${port.port} speaks ${protocol}, which the loopback mode does not carry: other workloads cannot reach it through the mesh`,
          suggestion: 'If it speaks HTTP, name the port "http" or "http-<something>".',
        };
      }
    }
  },
};
