// A DestinationRule's policy for one port of one subset: the rule's own, then the subset's over it, each with its settings of
// the port in place of the others (Istio: MergeTrafficPolicy; what a port's settings leave out has its default).
import type { TrafficPolicy } from "@tulle/config";
import type { EffectiveRule } from "../scope/proxy-view.ts";
import type { MeshSubset } from "../snapshot/mesh-snapshot.ts";

export type PortTrafficPolicy = Pick<TrafficPolicy, "loadBalancer" | "tls">;

export function portTrafficPolicy(
  rule: EffectiveRule | undefined,
  subset: MeshSubset | undefined,
  port: number,
): PortTrafficPolicy {
  const own = policyOfPort(rule?.trafficPolicy, port) ?? rule?.trafficPolicy ?? {};
  if (subset?.trafficPolicy === undefined) return own;
  const ofPort = policyOfPort(subset.trafficPolicy, port);
  if (ofPort !== undefined) return ofPort;
  const { loadBalancer = own.loadBalancer, tls = own.tls } = subset.trafficPolicy;
  return { ...(loadBalancer === undefined ? {} : { loadBalancer }), ...(tls === undefined ? {} : { tls }) };
}

function policyOfPort(policy: TrafficPolicy | undefined, port: number): PortTrafficPolicy | undefined {
  return policy?.portLevelSettings?.find((each) => each.port.number === port);
}
