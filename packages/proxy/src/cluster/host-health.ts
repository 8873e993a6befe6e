// Whether a host may be chosen: what its endpoint says of it, active health checks and outlier detection, together
// (Envoy: `Host::coarseHealth`, and the flags that `/clusters` shows).
import type { OfProcess } from "../worker/ownership.ts";

/** What active health checks say of a host. Its host set makes it, the checker of its cluster writes it. */
export class ActiveHealth {
  /** True until its first check has succeeded. */
  hasFailed = true;
  /** Its answer had `x-envoy-degraded`. */
  isDegraded = false;
  /** It has not been checked yet, and counts nowhere until then (ignore_new_hosts_until_first_hc). */
  isPending: boolean;
  /** It failed at its own word, `x-envoy-immediate-health-check-fail`, and counts nowhere. */
  isExcluded = false;
  /** The last check of a host that has failed ran out of time. */
  hasTimedOut = false;
  /** Its endpoint is gone; it stays until a check fails (Cluster.ignore_health_on_host_removal). */
  awaitsRemoval = false;

  constructor(isPending: boolean) {
    this.isPending = isPending;
  }
}

/** A host, as far as its health goes. */
export interface JudgedHost {
  readonly healthy: boolean;
  readonly degraded: boolean;
  readonly ejected: OfProcess<boolean>;
  readonly activeHealth: OfProcess<ActiveHealth | undefined>;
}

export type HostCondition = "healthy" | "degraded" | "unhealthy";

export function conditionOf({ healthy, degraded, ejected, activeHealth }: JudgedHost): HostCondition {
  if (!healthy || ejected || activeHealth?.hasFailed === true) return "unhealthy";
  return degraded || activeHealth?.isDegraded === true ? "degraded" : "healthy";
}

/** It counts neither for nor against its priority level. */
export function isExcluded({ activeHealth }: JudgedHost): boolean {
  return activeHealth !== undefined && (activeHealth.isPending || activeHealth.isExcluded);
}

/** Envoy's words, in its order. */
export function healthFlags(host: JudgedHost): readonly string[] {
  const { activeHealth: active } = host;
  const flags: readonly (readonly [name: string, isSet: boolean | undefined])[] = [
    ["failed_active_hc", active?.hasFailed],
    ["failed_outlier_check", host.ejected],
    ["failed_eds_health", !host.healthy],
    ["degraded_active_hc", active?.isDegraded],
    ["degraded_eds_health", host.degraded],
    ["pending_dynamic_removal", active?.awaitsRemoval],
    ["pending_active_hc", active?.isPending],
    ["excluded_via_immediate_hc_fail", active?.isExcluded],
    ["active_hc_timeout", active?.hasTimedOut],
  ];
  return flags.flatMap(([name, isSet]) => (isSet === true ? [name] : []));
}
