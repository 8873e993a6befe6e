// Asks the hosts of a cluster how they are, again and again, and keeps those that fail out of the balancer's choice
// (Envoy: `HealthCheckerImplBase`). Each host has a session; a cluster is warm once each has had its first check.
import { type Cluster, type FailureListener, Host, type HostAddress } from "../cluster.ts";
import type { CheckQueue } from "./check-queue.ts";
import { HealthCheckSession, type SessionSurroundings, type Transition } from "./health-check-session.ts";
import type { MakeProbe } from "./probe.ts";

export interface HealthCheckerOptions extends Omit<SessionSurroundings, "hasTraffic" | "onResult"> {
  readonly makeProbe: MakeProbe;
  /** A host's health has changed. */
  readonly onChange: (host: Host) => void;
  /** A check of the host has succeeded, and it counts as well. */
  readonly onSuccess: (host: Host) => void;
}

export class HealthChecker implements FailureListener {
  readonly #options: HealthCheckerOptions;
  readonly #cluster: Cluster;
  readonly #surroundings: SessionSurroundings;
  readonly #sessions = new Map<Host, HealthCheckSession>();
  #queue: CheckQueue | undefined = undefined;
  #onWarm: (() => void) | undefined = undefined;
  #isWarm = false;

  constructor(cluster: Cluster, options: HealthCheckerOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#surroundings = {
      ...options,
      hasTraffic: () => cluster.stats.upstreamConnectionsTotal.value > 0,
      onResult: (session, transition, ok) => this.#onResult(session, transition, ok),
    };
  }

  /** Each host that there was at the start has had its first check. */
  get isWarm(): boolean {
    return this.#isWarm;
  }

  /** To be called once what connections need has come; `onWarm` is called later, unless it is warm at once. */
  start(queue: CheckQueue, onWarm: () => void): void {
    if (this.#queue !== undefined) return;
    this.#queue = queue;
    this.setHosts(this.#cluster.hosts);
    this.#onWarm = onWarm;
  }

  /** Follows the cluster's endpoints. */
  setHosts(hosts: readonly Host[]): void {
    const queue = this.#queue;
    if (queue === undefined) return;
    const kept = new Set(hosts);
    for (const [host, session] of this.#sessions) {
      if (kept.has(host)) continue;
      this.#sessions.delete(host);
      session.stop();
    }
    for (const host of hosts) {
      if (host.activeHealth === undefined || this.#sessions.has(host)) continue;
      const target = { endpoint: this.#endpointOf(host), host, cluster: this.#cluster, dataPath: queue.dataPath };
      const session = new HealthCheckSession(host, host.activeHealth, this.#surroundings, queue, (onResult) =>
        this.#options.makeProbe(target, onResult),
      );
      this.#sessions.set(host, session);
      session.start();
    }
    this.#noteWarm();
  }

  failNow(host: Host): void {
    this.#sessions.get(host)?.failNow();
  }

  stop(): void {
    this.#onWarm = undefined;
    for (const session of this.#sessions.values()) session.stop();
    this.#sessions.clear();
  }

  #onResult({ host }: HealthCheckSession, transition: Transition, ok: boolean): void {
    if (transition === "changed") this.#options.onChange(host);
    if (ok && host.activeHealth?.hasFailed === false) this.#options.onSuccess(host);
    this.#noteWarm();
  }

  #noteWarm(): void {
    if (this.#isWarm) return;
    for (const { isChecked } of this.#sessions.values()) if (!isChecked) return;
    this.#isWarm = true;
    this.#onWarm?.();
  }

  /** Where the host is asked, and what chooses the transport (Envoy: `createHealthCheckConnection`). */
  #endpointOf(host: Host): Host {
    const { transportCriteria } = this.#options.settings;
    const metadata =
      transportCriteria === undefined
        ? host.metadata
        : { ...host.metadata, "envoy.transport_socket_match": transportCriteria };
    return new Host(checkAddress(host), host.hostname, host.weight, metadata, true);
  }
}

function checkAddress({ address: own, check }: Host): HostAddress {
  const address = check?.address ?? own;
  if (address.type === "pipe" || check === undefined || check.port === 0) return address;
  return { ...address, port: check.port };
}
