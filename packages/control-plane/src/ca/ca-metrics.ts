// What can be measured of the authority and of the door that it guards, under Istio's names where it has one
// (security/pkg/server/ca/monitoring.go).
import type { CertificateExpiry } from "@tulle/identity";
import type { Counter, Gauge, MetricRegistry } from "@tulle/telemetry";

export interface CaMetrics {
  readonly requests: Counter;
  readonly issued: Counter;
  readonly authenticationFailures: Counter;
  signingFailures(error: string): Counter;
  /** Connections to the port with TLS that were closed for what the client showed. */
  refusedConnections(reason: string): Counter;
  readonly deniedStreams: Counter;
  setExpiry(expiry: readonly CertificateExpiry[]): void;
}

export function caMetrics(registry: MetricRegistry): CaMetrics {
  const counter = (name: string, help: string, labels: Readonly<Record<string, string>> = {}): Counter =>
    registry.counter({ name, help, labels });
  const gauge = (name: string, help: string): Gauge => registry.gauge({ name, help });
  const certificates = [
    { role: "root", prefix: "citadel_server_root_cert_expiry", what: "the first of the trusted roots expires" },
    { role: "intermediate", prefix: "citadel_server_cert_chain_expiry", what: "the first of the chain expires" },
  ].map(({ role, prefix, what }) => ({
    role,
    timestamp: gauge(`${prefix}_timestamp`, `Unix time at which ${what}.`),
    seconds: gauge(`${prefix}_seconds`, `Seconds until ${what}, negative once it has.`),
  }));
  return {
    requests: counter("citadel_server_csr_count", "Certificate requests received."),
    issued: counter("citadel_server_success_cert_issuance_count", "Certificates issued."),
    authenticationFailures: counter(
      "citadel_server_authentication_failure_count",
      "Certificate requests of callers that proved no identity.",
    ),
    signingFailures: (error) =>
      counter("citadel_server_csr_sign_err_count", "Certificate requests that were not signed.", { error }),
    refusedConnections: (reason) =>
      counter("tulle_xds_refused_connections_total", "TLS connections refused, by reason.", { reason }),
    deniedStreams: counter(
      "tulle_xds_denied_streams_total",
      "xDS streams of clients that asked for another workload's configuration.",
    ),
    setExpiry: (expiry) => {
      for (const { role, timestamp, seconds } of certificates) {
        const ends = expiry.filter((each) => each.role === role);
        if (ends.length === 0) continue;
        timestamp.set(Math.round(Math.min(...ends.map(({ notAfterMs }) => notAfterMs)) / 1000));
        seconds.set(Math.round(Math.min(...ends.map(({ remainingMs }) => remainingMs)) / 1000));
      }
    },
  };
}
