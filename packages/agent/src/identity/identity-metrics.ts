// What can be measured of a workload's identity, under the names that Istio's agent uses.
import type { WorkloadCertificate } from "@tulle/identity";
import {
  type Counter,
  type ExpositionFormat,
  type Gauge,
  type Histogram,
  MetricRegistry,
  type Series,
} from "@tulle/telemetry";

const certificateRequest = { request_type: "csr" };

export class IdentityMetrics {
  readonly requests: Counter;
  readonly failures: Counter;
  readonly latencyMs: Histogram;
  readonly renewalFailuresInARow: Gauge;
  readonly #registry: MetricRegistry;
  readonly #expiry: Gauge;
  readonly #rootExpiry: Gauge;
  readonly #now: () => number;
  #current: WorkloadCertificate | undefined;

  constructor(now: () => number) {
    this.#now = now;
    const registry = new MetricRegistry();
    this.#registry = registry;
    this.requests = registry.counter({
      name: "istio_agent_num_outgoing_requests",
      help: "Requests for a certificate.",
      labels: certificateRequest,
    });
    this.failures = registry.counter({
      name: "istio_agent_num_failed_outgoing_requests",
      help: "Requests for a certificate that failed.",
      labels: certificateRequest,
    });
    this.latencyMs = registry.histogram({
      name: "istio_agent_outgoing_latency",
      help: "Milliseconds that a request for a certificate took.",
      labels: certificateRequest,
    });
    this.renewalFailuresInARow = registry.gauge({
      name: "tulle_agent_certificate_failures_in_a_row",
      help: "Requests for a certificate that failed since the last that did not.",
    });
    const expiry = (resource: string): Gauge =>
      registry.gauge({
        name: "istio_agent_cert_expiry_seconds",
        help: "Seconds until a certificate expires, negative once it has.",
        labels: { resource_name: resource },
      });
    this.#expiry = expiry("default");
    this.#rootExpiry = expiry("ROOTCA");
  }

  set current(certificate: WorkloadCertificate | undefined) {
    this.#current = certificate;
  }

  /** Without OpenMetrics' end. */
  render(format: ExpositionFormat): string {
    const current = this.#current;
    if (current !== undefined) {
      const secondsUntil = (atMs: number): number => Math.round((atMs - this.#now()) / 1000);
      this.#expiry.set(secondsUntil(current.leaf.notAfterMs));
      this.#rootExpiry.set(secondsUntil(Math.min(...current.roots.map(({ notAfterMs }) => notAfterMs))));
    }
    const accepts = ({ name, metric }: Series): boolean => {
      // The registry's own, which the proxy beside which these are shown has too.
      if (!name.includes("_agent_")) return false;
      // A gauge of 0 would say that the certificate expires this second.
      return current !== undefined || (metric !== this.#expiry && metric !== this.#rootExpiry);
    };
    return [...this.#registry.pieces({ format, accepts, isPart: true })].join("");
  }
}
