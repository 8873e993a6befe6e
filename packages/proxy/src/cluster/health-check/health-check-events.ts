// What health checks make of hosts, told to the log, and to the file of HealthCheck.event_log_path: a line of JSON for
// each event (data.core.v3.HealthCheckEvent).
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "../../worker/clock.ts";
import type { Host } from "../cluster.ts";
import type { CheckFailure } from "./probe.ts";

export interface HealthCheckEventsOptions {
  readonly clusterName: string;
  readonly checkerType: "HTTP" | "TCP" | "GRPC";
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined = there is no such file. */
  readonly file: { write(line: string): void } | undefined;
}

export class HealthCheckEvents {
  readonly #options: HealthCheckEventsOptions;

  constructor(options: HealthCheckEventsOptions) {
    this.#options = options;
  }

  onHealthy(host: Host, isFirst: boolean): void {
    const { log, clusterName } = this.#options;
    log.info("a host is healthy", { cluster: clusterName, host: host.addressText });
    this.#write(host, { add_healthy_event: { first_check: isFirst } });
  }

  onUnhealthy(host: Host, failure: CheckFailure): void {
    const { log, clusterName } = this.#options;
    log.warning("a host has failed its health check", { cluster: clusterName, host: host.addressText, failure });
    this.#write(host, { eject_unhealthy_event: { failure_type: failure.toUpperCase() } });
  }

  onFailure(host: Host, failure: CheckFailure, isFirst: boolean): void {
    const event = { failure_type: failure.toUpperCase(), first_check: isFirst };
    this.#write(host, { health_check_failure_event: event });
  }

  onSuccess(host: Host): void {
    this.#write(host, { successful_health_check_event: {} });
  }

  onDegraded(host: Host, isDegraded: boolean): void {
    this.#write(host, isDegraded ? { degraded_healthy_host: {} } : { no_longer_degraded_host: {} });
  }

  #write({ address }: Host, event: object): void {
    const { file, checkerType, clusterName, clock } = this.#options;
    const host =
      address.type === "pipe"
        ? { pipe: { path: address.path } }
        : { socket_address: { protocol: "TCP", address: address.ip, port_value: address.port } };
    const timestamp = new Date(clock.wallMs()).toISOString();
    const fields = { health_checker_type: checkerType, host, cluster_name: clusterName, timestamp, ...event };
    file?.write(`${JSON.stringify(fields)}\n`);
  }
}
