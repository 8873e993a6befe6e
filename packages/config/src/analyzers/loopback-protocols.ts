/**
 * TUL0005: in loopback mode applications reach services through an HTTP proxy, so ports of other protocols are not carried. Those of
 * a gateway are for clients outside.
 */
import { isHttp, portProtocol } from "../port-protocol.ts";
import type { Service } from "../resource.ts";
import { type AnalyzedMesh, type Analyzer, injectionOf, selects } from "./analyzer.ts";

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

function isOfGateways(mesh: AnalyzedMesh, { metadata, spec }: Service): boolean {
  const { selector } = spec;
  if (selector === undefined) return false;
  const behind = mesh.workloads.filter(
    ({ namespace, labels }) => namespace === metadata.namespace && selects(selector, labels),
  );
  return behind.length > 0 && behind.every((workload) => injectionOf(mesh, workload) === "gateway");
}
