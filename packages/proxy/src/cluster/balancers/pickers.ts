// The load-balancing policies: round robin, least request and random, by Envoy's rules (docs:
// intro/arch_overview/upstream/ load_balancing/load_balancers).
import type { Host } from "../cluster.ts";
import type { HostPicker, MakePicker } from "../host-set.ts";
import { EdfScheduler } from "./edf-scheduler.ts";

/** In [0, 1). */
export type Random = () => number;

const none: HostPicker = { pick: () => undefined };

function haveEqualWeights(hosts: readonly Host[]): boolean {
  return hosts.every((host) => host.weight === hosts[0]!.weight);
}

function scheduled(hosts: readonly Host[], weightOf: (host: Host) => number, random: Random): HostPicker {
  const scheduler = new EdfScheduler(hosts, weightOf);
  // A random number of first picks, or every worker and every update would begin with the same host.
  for (let skipped = Math.floor(random() * hosts.length); skipped > 0; skipped -= 1) scheduler.pick();
  return scheduler;
}

/** In turn; hosts of unequal weights come up in proportion to them. */
export function roundRobin(random: Random): MakePicker {
  return (hosts) => {
    if (hosts.length === 0) return none;
    if (!haveEqualWeights(hosts)) return scheduled(hosts, (host) => host.weight, random);
    let next = Math.floor(random() * hosts.length);
    return {
      pick: () => {
        const host = hosts[next];
        next = next + 1 === hosts.length ? 0 : next + 1;
        return host;
      },
    };
  };
}

/**
 * The least busy of `choiceCount` random hosts; with unequal weights a schedule by weight ÷ (active requests + 1)^bias
 * (LeastRequestLbConfig.active_request_bias).
 */
export function leastRequest(random: Random, choiceCount: number, activeRequestBias: number): MakePicker {
  return (hosts) => {
    if (hosts.length === 0) return none;
    if (!haveEqualWeights(hosts)) {
      return scheduled(hosts, (host) => host.weight / (host.activeRequests + 1) ** activeRequestBias, random);
    }
    return {
      pick: () => {
        let chosen = hosts[Math.floor(random() * hosts.length)]!;
        for (let choices = 1; choices < choiceCount; choices += 1) {
          const other = hosts[Math.floor(random() * hosts.length)]!;
          if (other.activeRequests < chosen.activeRequests) chosen = other;
        }
        return chosen;
      },
    };
  };
}

/** Any host, whatever its weight. */
export function randomPick(random: Random): MakePicker {
  return (hosts) => (hosts.length === 0 ? none : { pick: () => hosts[Math.floor(random() * hosts.length)] });
}
