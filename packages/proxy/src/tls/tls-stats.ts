// Counters of TLS connections under Envoy's names: `cluster.<name>.ssl.handshake`,
// `listener.<address>.ssl.versions.TLSv1.3` …
import { keyExchangeGroup } from "./tls-info.ts";
import type { TLSSocket } from "node:tls";
import type { Counter, MetricRegistry } from "@tulle/telemetry";
import type { CommonTlsContext } from "./common-tls-context.ts";
import type { SecretSlot } from "./secret-slot.ts";
import { counterGroup, eachOf, statDescription, type StatScope } from "../stats/stat-description.ts";
import type { PeerFailureKind } from "./verify-peer.ts";

const names = {
  connectionErrors: "ssl.connection_error",
  handshakes: "ssl.handshake",
  sessionsReused: "ssl.session_reused",
  noCertificate: "ssl.no_certificate",
  failVerifyNoCert: "ssl.fail_verify_no_cert",
  failVerifyError: "ssl.fail_verify_error",
  failVerifySan: "ssl.fail_verify_san",
  failVerifyCertHash: "ssl.fail_verify_cert_hash",
} as const;

/** Behind `client_ssl_socket_factory` or `server_ssl_socket_factory`; each has both sides' names, as Envoy's. */
const factoryNames = {
  updatesBySds: "ssl_context_update_by_sds",
  upstreamNotReady: "upstream_context_secrets_not_ready",
  downstreamNotReady: "downstream_context_secrets_not_ready",
} as const;

const failureCounters = {
  no_certificate: "failVerifyNoCert",
  chain: "failVerifyError",
  name: "failVerifySan",
  hash: "failVerifyCertHash",
} as const;

export class TlsStats {
  readonly #metrics: MetricRegistry;
  readonly #scope: StatScope;
  readonly #context: CommonTlsContext;
  readonly #counters: Record<keyof typeof names, Counter>;
  readonly #factory: Record<keyof typeof factoryNames, Counter>;
  /** Of versions, ciphers and curves, made when the first handshake settles on them; OpenSSL has a few dozen. */
  readonly #settled = new Map<string, Counter>();

  constructor(metrics: MetricRegistry, scope: StatScope, context: CommonTlsContext) {
    this.#metrics = metrics;
    this.#scope = scope;
    this.#context = context;
    this.#counters = counterGroup(metrics, scope, names);
    this.#factory = eachOf(factoryNames, (stat) =>
      metrics.counter(statDescription(scope, `${context.role}_ssl_socket_factory.${stat}`)),
    );
    this.#showExpirations();
  }

  /** These secrets have other contents. */
  onSecrets(changed: ReadonlySet<SecretSlot>): void {
    const { size } = this.#context.secrets.intersection(changed);
    if (size === 0) return;
    this.#factory.updatesBySds.add(size);
    this.#showExpirations();
  }

  /** A connection cannot be made for want of a secret. */
  onSecretsNotReady(): void {
    const { upstreamNotReady, downstreamNotReady } = this.#factory;
    (this.#context.role === "client" ? upstreamNotReady : downstreamNotReady).increment();
  }

  #showExpirations(): void {
    for (const { name, certificate } of this.#context.namedCertificates()) {
      const gauge = this.#metrics.gauge(
        statDescription(this.#scope, `ssl.certificate.${name}.expiration_unix_time_seconds`),
      );
      gauge.set(Math.floor(certificate.validToDate.getTime() / 1000));
    }
  }

  /** A handshake is complete and its peer accepted. */
  onHandshake(socket: TLSSocket, peerHasCertificate: boolean, group = keyExchangeGroup(socket)): void {
    this.#counters.handshakes.increment();
    if (socket.isSessionReused()) this.#counters.sessionsReused.increment();
    if (!peerHasCertificate) this.#counters.noCertificate.increment();
    this.#settle(`ssl.versions.${socket.getProtocol() ?? "unknown"}`);
    this.#settle(`ssl.ciphers.${socket.getCipher().name}`);
    if (group !== "") this.#settle(`ssl.curves.${group}`);
  }

  /** The handshake itself failed. */
  onConnectionError(): void {
    this.#counters.connectionErrors.increment();
  }

  /** The peer's certificate was refused, which Envoy counts here and not as an error of the connection. */
  onPeerFailure(kind: PeerFailureKind): void {
    this.#counters[failureCounters[kind]].increment();
  }

  #settle(stat: string): void {
    let counter = this.#settled.get(stat);
    if (counter === undefined) {
      counter = this.#metrics.counter(statDescription(this.#scope, stat));
      this.#settled.set(stat, counter);
    }
    counter.increment();
  }
}

/** What a chain or a cluster does TLS with. */
export interface TlsTransport {
  readonly context: CommonTlsContext;
  readonly stats: TlsStats;
}
