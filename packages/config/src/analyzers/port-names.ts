/** IST0118: the name of a Service port tells its protocol, as `http` or `http-web`. */
import { portProtocol } from "../rules/port-protocol.ts";
import type { Analyzer } from "./analyzer.ts";

const kubernetesNamespaces: ReadonlySet<string> = new Set(["kube-system", "kube-public", "kube-node-lease"]);

export const portNames: Analyzer = {
  name: "port-names",
  codes: ["IST0118"],
  *run(mesh) {
    for (const resource of mesh.list("Service")) {
      if (kubernetesNamespaces.has(resource.metadata.namespace)) continue;
      for (const [index, port] of resource.spec.ports.entries()) {
        if (port.appProtocol !== undefined || portProtocol(port) !== "auto") continue;
        const named = port.name === undefined ? "has no name" : `is named "${port.name}"`;
        yield {
          code: "IST0118",
          resource,
          path: ["spec", "ports", index, ...(port.name === undefined ? [] : ["name"])],
          message: `port ${port.port} ${named}, which does not tell its protocol`,
          suggestion: `Name it "http${port.name === undefined ? "" : `-${port.name}`}", or set appProtocol.`,
        };
      }
    }
  },
};
