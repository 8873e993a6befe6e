// envoy.filters.listener.tls_inspector: is it TLS, which name does the client ask for, which protocols does it offer.
import type { Counter, MetricRegistry } from "@tulle/telemetry";
import { TlsInspectorSchema } from "@tulle/xds/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb";
import type { ConnectionInfo } from "../../../listener/connection-info.ts";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import { type ClientHelloOutcome, ClientHelloReader } from "./client-hello.ts";
import type { InspectionStatus, ListenerFilter, ListenerFilterRegistration } from "../listener-filter.ts";
import { ja3Fingerprint, ja4Fingerprint } from "./hello-fingerprints.ts";
import { inspectorCounters } from "../inspector-counters.ts";

/** Envoy: max_client_hello_size, which may only be made smaller. */
const maxClientHelloBytes = 16_384;

interface TlsInspectorStats {
  readonly tls_found: Counter;
  readonly tls_not_found: Counter;
  readonly alpn_found: Counter;
  readonly alpn_not_found: Counter;
  readonly sni_found: Counter;
  readonly sni_not_found: Counter;
  readonly client_hello_too_large: Counter;
}

function inspectorStats(metrics: MetricRegistry): TlsInspectorStats {
  return inspectorCounters(metrics, "tls_inspector", [
    "tls_found",
    "tls_not_found",
    "alpn_found",
    "alpn_not_found",
    "sni_found",
    "sni_not_found",
    "client_hello_too_large",
  ]);
}

const tlsInspectorMessage = checkedMessage(TlsInspectorSchema, {
  [TlsInspectorSchema.typeName]: {
    used: `max_client_hello_size close_connection_on_client_hello_parsing_errors enable_ja3_fingerprinting
      enable_ja4_fingerprinting`,
    harmless: { initial_read_buffer_size: "performance only" },
  },
});

export const tlsInspectorRegistration: ListenerFilterRegistration = {
  types: [TlsInspectorSchema.typeName],
  compile(config, build) {
    const message = decodeTypedConfig(tlsInspectorMessage, config, build.place, build.problems);
    if (message === undefined) return undefined;
    const maxBytes = message.maxClientHelloSize ?? maxClientHelloBytes;
    if (maxBytes > maxClientHelloBytes) {
      const words = `max_client_hello_size of ${maxBytes} is greater than maximum of ${maxClientHelloBytes}.`;
      build.problems.error(build.place.field("max_client_hello_size"), words);
    }
    const closesOnError = message.closeConnectionOnClientHelloParsingErrors;
    const { enableJa3Fingerprinting = false, enableJa4Fingerprinting = false } = message;
    const stats = inspectorStats(build.metrics);
    return {
      name: build.name,
      isSkipped: () => false,
      onAccept: undefined,
      inspector: (connection) => {
        const hello = new ClientHelloReader();
        return (data) =>
          judge(hello.read(data.length > maxBytes ? data.subarray(0, maxBytes) : data), data, connection);
      },
    };

    function judge(outcome: ClientHelloOutcome, data: Buffer, connection: ConnectionInfo): InspectionStatus {
      switch (outcome.type) {
        case "incomplete":
          if (data.length < maxBytes) return "wait";
          stats.client_hello_too_large.increment();
          return "close";
        case "other":
          if (closesOnError) return "close";
          stats.tls_not_found.increment();
          return "continue";
        case "hello":
          stats.tls_found.increment();
          (outcome.serverName === "" ? stats.sni_not_found : stats.sni_found).increment();
          (outcome.applicationProtocols.length === 0 ? stats.alpn_not_found : stats.alpn_found).increment();
          connection.transportProtocol = "tls";
          connection.serverName = outcome.serverName.toLowerCase();
          connection.applicationProtocols = outcome.applicationProtocols;
          connection.offeredProtocols = outcome.applicationProtocols;
          if (enableJa3Fingerprinting) connection.ja3Fingerprint = ja3Fingerprint(outcome);
          if (enableJa4Fingerprinting) connection.ja4Fingerprint = ja4Fingerprint(outcome);
          return "continue";
      }
    }
  },
};

/**
 * Looks at hellos where no inspector is configured and every chain is TLS: which protocols are offered has to be known
 * before the handshake, because a client that offers none of ours goes on without one, and Node would end it. Chains
 * learn nothing.
 */
export const protocolReader: ListenerFilter = {
  name: "protocol reader",
  isSkipped: () => false,
  onAccept: undefined,
  inspector: (connection) => {
    const hello = new ClientHelloReader();
    return (data) => {
      const outcome = hello.read(data);
      if (outcome.type === "incomplete") return data.length < maxClientHelloBytes ? "wait" : "continue";
      if (outcome.type === "hello") connection.offeredProtocols = outcome.applicationProtocols;
      return "continue";
    };
  },
};
