/**
 * TUL0005: in loopback mode nothing catches connections, so that applications reach services through their proxy alone:
 * HTTP as they are used to, other protocols through a tunnel that they ask it for, and datagrams not at all. Ports of a
 * gateway are for clients outside.
 */
import { isHttp, portProtocol } from "../rules/port-protocol.ts";
import { type Analyzer, isOfGateways } from "./analyzer.ts";

export const loopbackProtocols: Analyzer = {
  name: "loopback-protocols",
  codes: ["TUL0005"],
  *run(mesh) {
    if (mesh.options.networkMode !== "loopback") return;
    for (const resource of mesh.list("Service")) {
      if (isOfGateways(mesh, resource)) continue;
      for (const [index, port] of resource.spec.ports.entries()) {
        const protocol = portProtocol(port);
        if (isHttp(protocol)) continue;
        const path = ["spec", "ports", index];
        if (port.protocol === "SCTP") continue;
        if (protocol === "udp") {
          yield {
            code: "TUL0005",
            resource,
            path,
            message: `port ${port.port} speaks udp, which the loopback mode does not carry: other workloads cannot reach it through the mesh`,
          };
          continue;
        }
        yield {
          code: "TUL0005",
          severity: "info",
          resource,
          path,
          message: `port ${port.port} speaks ${protocol}: in the loopback mode other workloads reach it by CONNECT through their proxy`,
          suggestion: 'If it speaks HTTP, name the port "http" or "http-<something>".',
        };
      }
    }
  },
};
