// The balancer of a cluster: lb_policy, or the first policy of load_balancing_policy that is known
// (config.cluster.v3.LoadBalancingPolicy).
import {
  type Cluster,
  type Cluster_LeastRequestLbConfig,
  Cluster_LbPolicy as LbPolicy,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import {
  type LeastRequest,
  LeastRequestSchema,
} from "@tulle/xds/envoy/extensions/load_balancing_policies/least_request/v3/least_request_pb";
import { RandomSchema } from "@tulle/xds/envoy/extensions/load_balancing_policies/random/v3/random_pb";
import { RoundRobinSchema } from "@tulle/xds/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin_pb";
import { type Random, leastRequest, randomPick, roundRobin } from "../cluster/balancers/pickers.ts";
import type { ClusterType } from "../cluster/cluster.ts";
import type { MakePicker } from "../cluster/host-set.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig } from "../fields/typed-config.ts";
import { leastRequestMessage, randomMessage, roundRobinMessage } from "./cluster-fields.ts";

export function compileLoadBalancing(
  message: Cluster,
  type: ClusterType,
  random: Random,
  place: Place,
  problems: Problems,
): MakePicker {
  if (message.loadBalancingPolicy !== undefined) return byPolicyList(message, random, place, problems);
  const at = place.field("lb_policy");
  switch (message.lbPolicy) {
    case LbPolicy.ROUND_ROBIN:
      return roundRobin(random);
    case LbPolicy.LEAST_REQUEST: {
      const config = message.lbConfig.case === "leastRequestLbConfig" ? message.lbConfig.value : undefined;
      return byLeastRequest(config, random, place.field("least_request_lb_config"), problems);
    }
    case LbPolicy.RANDOM:
      return randomPick(random);
    case LbPolicy.CLUSTER_PROVIDED:
      if (type !== "dynamic_forward_proxy" && type !== "original_dst")
        problems.error(at, "CLUSTER_PROVIDED is not allowed with this cluster type");
      return roundRobin(random);
    default:
      problems.error(at, `${lbPolicyName(message.lbPolicy)} is not supported`);
      return roundRobin(random);
  }
}

function lbPolicyName(policy: number): string {
  return Object.entries(LbPolicy).find(([, value]) => value === policy)?.[0] ?? `unknown value ${policy}`;
}

function byLeastRequest(
  config: Cluster_LeastRequestLbConfig | LeastRequest | undefined,
  random: Random,
  place: Place,
  problems: Problems,
): MakePicker {
  const choiceCount = config?.choiceCount ?? 2;
  if (choiceCount < 2) problems.error(place.field("choice_count"), "value must be greater than or equal to 2");
  return leastRequest(random, choiceCount, config?.activeRequestBias?.defaultValue ?? 1);
}

function byPolicyList(message: Cluster, random: Random, place: Place, problems: Problems): MakePicker {
  const at = place.field("load_balancing_policy");
  const names: string[] = [];
  for (const [index, policy] of message.loadBalancingPolicy!.policies.entries()) {
    const config = unwrapTypedConfig(policy.typedExtensionConfig?.typedConfig);
    names.push(policy.typedExtensionConfig?.name ?? "");
    const here = at.field("policies", index).field("typed_extension_config").field("typed_config");
    if (config?.typeUrl === typeUrlOf(RoundRobinSchema)) {
      decodeTypedConfig(roundRobinMessage, config, here, problems);
      return roundRobin(random);
    }
    if (config?.typeUrl === typeUrlOf(RandomSchema)) {
      decodeTypedConfig(randomMessage, config, here, problems);
      return randomPick(random);
    }
    if (config?.typeUrl === typeUrlOf(LeastRequestSchema)) {
      return byLeastRequest(decodeTypedConfig(leastRequestMessage, config, here, problems), random, here, problems);
    }
  }
  problems.error(
    at,
    `cluster: didn't find a registered load balancer factory with any of these names: ${names.join(", ")}`,
  );
  return roundRobin(random);
}
