// The transport socket of a filter chain: plain, or TLS that ends here
// (extensions.transport_sockets.tls.v3.DownstreamTlsContext).
import type { TransportSocket } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { FilterChain } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import {
  type DownstreamTlsContext,
  DownstreamTlsContextSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import { statDescription } from "../stats/stat-description.ts";
import type { DownstreamTls, DownstreamTransport } from "../tls/downstream-tls.ts";
import { TlsStats } from "../tls/tls-stats.ts";
import { compileCommonTlsContext } from "./compile-common-tls-context.ts";
import type { ListenerBuild } from "../listener/listener-build.ts";
import { durationMs } from "../fields/duration.ts";
import type { Place } from "../fields/problems.ts";
import { isRawBuffer } from "../fields/transport-socket.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig } from "../fields/typed-config.ts";
import { downstreamTlsMessage } from "./tls-fields.ts";

/** Where transport_socket_connect_timeout is not set; Envoy waits for ever. */
const defaultHandshakeTimeoutMs = 30_000;
/** OpenSSL's own, and BoringSSL's. */
const defaultSessionTimeoutSeconds = 7200;

export function compileDownstreamTransport(
  chain: FilterChain,
  build: ListenerBuild,
  place: Place,
): DownstreamTransport {
  const socket = chain.transportSocket;
  if (socket === undefined || isRawBuffer(socket)) return { type: "raw" };
  const at = place.field("transport_socket");
  const config = typedConfigOf(socket);
  if (config?.typeUrl !== typeUrlOf(DownstreamTlsContextSchema)) {
    build.problems.error(at, `'${socket.name}' is not supported`);
    return { type: "raw" };
  }
  const typed = at.field("typed_config");
  const message = decodeTypedConfig(downstreamTlsMessage, config, typed, build.problems);
  const handshakeTimeoutMs = durationMs(chain.transportSocketConnectTimeout, defaultHandshakeTimeoutMs);
  return message === undefined ? { type: "raw" } : compileDownstreamTls(message, handshakeTimeoutMs, build, typed);
}

function typedConfigOf(socket: TransportSocket): ReturnType<typeof unwrapTypedConfig> {
  return socket.configType.case === "typedConfig" ? unwrapTypedConfig(socket.configType.value) : undefined;
}

function compileDownstreamTls(
  message: DownstreamTlsContext,
  handshakeTimeoutMs: number,
  build: ListenerBuild,
  place: Place,
): DownstreamTls {
  const { scope, problems, secretSlots, statName } = build;
  if (message.requireSni === true) problems.error(place.field("require_sni"), "this field is not supported");
  if (message.fullScanCertsOnSniMismatch === true) {
    problems.warning(place.field("full_scan_certs_on_sni_mismatch"), "ignored: the first certificate is served then");
  }
  const keys = message.sessionTicketKeysType;
  const common = compileCommonTlsContext(
    message.commonTlsContext,
    "server",
    { scope, problems, secrets: secretSlots },
    place.field("common_tls_context"),
    {
      tickets: !(keys.case === "disableStatelessSessionResumption" && keys.value),
      timeoutSeconds: Math.ceil(durationMs(message.sessionTimeout, defaultSessionTimeoutSeconds * 1000) / 1000),
      prefersClientCiphers: message.preferClientCiphers,
    },
  );
  if (message.requireClientCertificate === true && message.commonTlsContext?.validationContextType.case === undefined) {
    const words = "there is no validation context to verify client certificates with";
    problems.error(place.field("require_client_certificate"), words);
  }
  if (common.hasNoCertificate) problems.error(place, "Server TlsCertificates must have a certificate specified");
  const statScope = { root: "listener", name: statName, label: "envoy_listener_address" };
  const timeouts = statDescription(statScope, "downstream_cx_transport_socket_connect_timeout");
  return {
    type: "tls",
    context: common,
    requiresClientCertificate: message.requireClientCertificate ?? false,
    handshakeTimeoutMs,
    handshakeTimeouts: scope.metrics.counter(timeouts),
    stats: new TlsStats(scope.metrics, statScope, common),
  };
}
