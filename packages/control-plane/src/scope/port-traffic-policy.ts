// A DestinationRule's policy for one port of one subset: the rule's own, then the subset's over it, each with its
// settings of the port in place of the others (Istio: MergeTrafficPolicy; what a port's settings leave out has its
// default).
import type { TrafficPolicy } from "@tulle/config";
import type { EffectiveRule } from "./proxy-view.ts";
import type { MeshSubset } from "../snapshot/mesh-snapshot.ts";

const merged = ["loadBalancer", "connectionPool", "outlierDetection", "tls", "retryBudget"] as const;

export type PortTrafficPolicy = Pick<TrafficPolicy, (typeof merged)[number]>;

export function portTrafficPolicy(
  rule: EffectiveRule | undefined,
  subset: MeshSubset | undefined,
  port: number,
): PortTrafficPolicy {
  const own = policyOfPort(rule?.trafficPolicy, port) ?? rule?.trafficPolicy ?? {};
  if (subset?.trafficPolicy === undefined) return own;
  const ofPort = policyOfPort(subset.trafficPolicy, port);
  if (ofPort !== undefined) return ofPort;
  return { ...fieldsOf(own), ...fieldsOf(subset.trafficPolicy) };
}

function fieldsOf(policy: PortTrafficPolicy): PortTrafficPolicy {
  return Object.fromEntries(merged.flatMap((name) => (policy[name] === undefined ? [] : [[name, policy[name]]])));
}

function policyOfPort(policy: TrafficPolicy | undefined, port: number): PortTrafficPolicy | undefined {
  return policy?.portLevelSettings?.find((each) => each.port.number === port);
}
