// What the tests of `tulle up --mode namespaces` share: its start, and what stands beside the shop.
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { debianTool } from "../tools/debian-tool.ts";
import { ToolUnavailable } from "../tools/tool-unavailable.ts";
import { ShopInstance } from "./shop-instance.ts";

export async function requireNamespaces(): Promise<void> {
  if (process.getuid?.() !== 0) throw new ToolUnavailable("network namespaces", "it takes root to make them");
  for (const name of ["iproute2", "nftables", "curl"] as const) await debianTool(name);
}

export const namespacesArgs = ["--mode", "namespaces"];

/** The shop with `plain` beside it, and with `more`. */
export function startWithPlain(more = ""): Promise<ShopInstance> {
  return ShopInstance.start({
    args: namespacesArgs,
    prepare: (folder) => writeFile(path.join(folder, "plain.yaml"), `${plain}---${more}`),
  });
}

/** A pod that no proxy is beside, and a way to the catalog by the nodes' own addresses. */
export const plain = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: plain, namespace: shop }
spec:
  replicas: 1
  selector: { matchLabels: { app: plain } }
  template:
    metadata:
      labels: { app: plain, sidecar.istio.io/inject: "false" }
      annotations: { local.tulle.io/command.plain: '["sleep", "infinity"]' }
    spec: { securityContext: { runAsUser: 65534 }, containers: [{ name: plain }] }
---
apiVersion: v1
kind: Service
metadata: { name: catalog-nodes, namespace: shop }
spec:
  type: NodePort
  selector: { app: catalog, version: v1 }
  ports: [{ name: http, port: 80, targetPort: http, nodePort: 30080 }]
---
apiVersion: v1
kind: Service
metadata: { name: catalog-both, namespace: shop }
spec:
  ipFamilyPolicy: PreferDualStack
  selector: { app: catalog, version: v1 }
  ports: [{ name: http, port: 80, targetPort: http }, { name: http-six, port: 81, targetPort: 3055 }]
`;
