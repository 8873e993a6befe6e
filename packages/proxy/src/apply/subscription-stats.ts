// What happens to subscriptions, under Envoy's names: `cluster_manager.cds.update_success`,
// `cluster.<name>.update_rejected` and their kin, and the state of the stream (`control_plane.connected_state`).
// Counters of single resources are made when they first count.
import { createHash } from "node:crypto";
import type { Labels, MetricRegistry } from "@tulle/telemetry";

const counters = [
  "update_attempt",
  "update_success",
  "update_failure",
  "update_rejected",
  "init_fetch_timeout",
] as const;

/** Where the counters of a subscription stand. */
export interface StatPlace {
  /** In Envoy's tree: `cluster_manager.cds`. */
  readonly statName: string;
  /** Of Prometheus: `envoy_cluster_manager_cds`. */
  readonly family: string;
  readonly labels?: Labels;
}

export class SubscriptionStats {
  readonly #metrics: MetricRegistry;
  readonly #place: StatPlace;

  constructor(metrics: MetricRegistry, place: StatPlace) {
    this.#metrics = metrics;
    this.#place = place;
  }

  /** All of them, at zero: of what there is one of. */
  show(): this {
    for (const name of counters) this.#count(name, 0);
    this.#gauge("update_time", 0);
    this.#version("");
    return this;
  }

  /** Asked for, or asked again. */
  onAttempt(): void {
    this.#count("update_attempt", 1);
  }

  onSuccess(versionInfo: string): void {
    this.#count("update_success", 1);
    this.#gauge("update_time", Date.now());
    this.#version(versionInfo);
    this.onAttempt();
  }

  onRejected(): void {
    this.#count("update_rejected", 1);
    this.onAttempt();
  }

  /** The stream has ended. */
  onFailure(): void {
    this.#count("update_failure", 1);
    this.onAttempt();
  }

  onTimeout(): void {
    this.#count("init_fetch_timeout", 1);
    this.onAttempt();
  }

  #count(name: (typeof counters)[number], amount: number): void {
    this.#metrics.counter(this.#described(name)).add(amount);
  }

  #gauge(name: string, value: number): void {
    this.#metrics.gauge(this.#described(name)).set(value);
  }

  #version(versionInfo: string): void {
    this.#gauge("version", versionInfo === "" ? 0 : numberOf(versionInfo));
    this.#metrics.text(this.#described("version_text")).set(versionInfo);
  }

  #described(name: string): { readonly name: string; readonly statName: string; readonly labels?: Labels } {
    const { statName, family, labels } = this.#place;
    return { name: `${family}_${name}`, statName: `${statName}.${name}`, ...(labels && { labels }) };
  }
}

/**
 * Equal versions have equal numbers, so that two proxies can be compared. 48 bits: numbers of JSON are exact up to 53.
 */
function numberOf(versionInfo: string): number {
  return createHash("sha256").update(versionInfo).digest().readUIntBE(0, 6);
}

const inName = (name: string): string => name.replaceAll(":", "_");

export const clustersPlace: StatPlace = { statName: "cluster_manager.cds", family: "envoy_cluster_manager_cds" };
export const listenersPlace: StatPlace = { statName: "listener_manager.lds", family: "envoy_listener_manager_lds" };

/** `name` is the cluster's in statistics. */
export function endpointsPlace(name: string): StatPlace {
  return { statName: `cluster.${inName(name)}`, family: "envoy_cluster", labels: { envoy_cluster_name: name } };
}

export function routesPlace(managerPrefix: string, name: string): StatPlace {
  const labels = { envoy_http_conn_manager_prefix: managerPrefix, envoy_rds_route_config: name };
  return { statName: `http.${inName(managerPrefix)}.rds.${inName(name)}`, family: "envoy_http_rds", labels };
}

export function secretPlace(name: string): StatPlace {
  return { statName: `sds.${inName(name)}`, family: "envoy_sds", labels: { envoy_xds_resource_name: name } };
}

/** Of the aggregated stream. */
export class ControlPlaneStats {
  readonly #metrics: MetricRegistry;

  constructor(metrics: MetricRegistry) {
    this.#metrics = metrics;
    this.onConnected(false);
    this.onIdentifier("");
    this.onPending(0, false);
  }

  onConnected(isConnected: boolean): void {
    this.#metrics.gauge(described("connected_state")).set(isConnected ? 1 : 0);
  }

  onIdentifier(identifier: string): void {
    this.#metrics.text(described("identifier")).set(identifier);
  }

  onPending(pending: number, isHeldBack: boolean): void {
    this.#metrics.gauge(described("pending_requests")).set(pending);
    this.#metrics.counter(described("rate_limit_enforced")).add(isHeldBack ? 1 : 0);
  }
}

function described(name: string): { readonly name: string; readonly statName: string } {
  return { name: `envoy_control_plane_${name}`, statName: `control_plane.${name}` };
}
