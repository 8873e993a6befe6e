// Services and slices of a test, with what most of them have.
import type { ClusterEndpoint, ClusterEndpointSlice, ClusterService } from "../services/cluster-objects.ts";
import { serviceNameLabel } from "../services/cluster-objects.ts";
import { machine, nodeOf, podAddress, podPort, type PodName } from "./node-network.ts";

export type PodConditions = NonNullable<ClusterEndpoint["conditions"]>;

export function service(name: string, spec: Partial<ClusterService["spec"]> = {}): ClusterService {
  return {
    metadata: { name, namespace: "shop" },
    spec: {
      ports: [
        { name: "web", port: 80, protocol: "TCP" },
        { name: "datagrams", port: 80, protocol: "UDP" },
      ],
      ipFamilyPolicy: "PreferDualStack",
      ...spec,
    },
  };
}

export function slices(
  name: string,
  pods: Partial<Record<PodName, PodConditions>>,
  namespace = "shop",
): readonly ClusterEndpointSlice[] {
  return ([4, 6] as const).map((family) => ({
    metadata: { namespace, labels: { [serviceNameLabel]: name } },
    addressType: `IPv${family}`,
    ports: [
      { name: "web", port: podPort, protocol: "TCP" },
      { name: "datagrams", port: podPort, protocol: "UDP" },
    ],
    endpoints: (Object.entries(pods) as readonly (readonly [PodName, PodConditions])[]).map(([pod, conditions]) => ({
      addresses: [podAddress[pod][family]],
      conditions,
      nodeName: nodeOf[pod],
    })),
  }));
}

export const clusterRanges = ["10.96.0.0/16", "fd96::/108"] as const;

export const serviceNodes = (["node1", "node2"] as const).map((name, index) => ({
  name,
  addresses: [machine[name][4], machine[name][6]],
  podRanges: [`10.244.${index + 1}.0/24`, `fd44:${index + 1}::/64`],
}));
