// How a cluster speaks to each of its hosts: plain or TLS, by the host's metadata (Cluster.transport_socket,
// transport_socket_matches; extensions.transport_sockets.tls.v3.UpstreamTlsContext).
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Cluster as ClusterMessage } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { TransportSocket } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { UpstreamTlsContextSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import type { Host } from "../cluster/cluster.ts";
import type { SecretSlot } from "../tls/secret-slot.ts";
import { TlsStats, type TlsTransport } from "../tls/tls-stats.ts";
import { rawTransport, UpstreamTls, type UpstreamTransport } from "../tls/upstream-tls.ts";
import { compileCommonTlsContext } from "./compile-common-tls-context.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { isRawBuffer } from "../fields/transport-socket.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig } from "../fields/typed-config.ts";
import { upstreamTlsMessage } from "./tls-fields.ts";

/** Chooses the transport of a host; the same host has the same one until its metadata change. */
export type TransportChoice = (host: Host) => UpstreamTransport;

interface Build {
  readonly scope: CompileScope;
  readonly secrets: Set<SecretSlot>;
  readonly observabilityName: string;
  readonly problems: Problems;
}

export interface CompiledTransport {
  /** Undefined = plain TCP to every host. */
  readonly transportOf: TransportChoice | undefined;
  readonly tlsTransports: readonly TlsTransport[];
}

export function compileUpstreamTransport(message: ClusterMessage, build: Build, place: Place): CompiledTransport {
  const { problems } = build;
  const fallback = compileTransport(message.transportSocket, build, place.field("transport_socket"));
  const matches: { readonly criteria: readonly [string, JsonValue][]; readonly transport: UpstreamTransport }[] = [];
  for (const [index, match] of message.transportSocketMatches.entries()) {
    const at = place.field("transport_socket_matches", index);
    if (match.transportSocket === undefined) {
      problems.error(at.field("transport_socket"), "value is required");
      continue;
    }
    const transport = compileTransport(match.transportSocket, build, at.field("transport_socket"));
    matches.push({ criteria: Object.entries(match.match ?? {}), transport });
  }
  const all = [fallback, ...matches.map(({ transport }) => transport)];
  const tlsTransports = all.filter((transport) => transport.kind === "tls");
  if (matches.length === 0) return { transportOf: fallback.kind === "raw" ? undefined : () => fallback, tlsTransports };
  return {
    tlsTransports,
    transportOf: (host) => {
      const metadata = (host.metadata["envoy.transport_socket_match"] ?? {}) as JsonObject;
      const found = matches.find(({ criteria }) => criteria.every(([key, value]) => fits(metadata[key], value)));
      return found?.transport ?? fallback;
    },
  };
}

/** Envoy's label match: equal values; a list among the host's metadata fits by any of its elements. */
function fits(has: JsonValue | undefined, wanted: JsonValue): boolean {
  if (Array.isArray(has) && !Array.isArray(wanted)) return has.some((element) => fits(element, wanted));
  return has !== undefined && JSON.stringify(has) === JSON.stringify(wanted);
}

/**
 * Envoy keeps one session for each context by default; hosts have their own here, and connections are opened several at
 * a time.
 */
const defaultMaxSessions = 4;

function compileTransport(socket: TransportSocket | undefined, build: Build, place: Place): UpstreamTransport {
  const { scope, problems, secrets, observabilityName } = build;
  if (socket === undefined || isRawBuffer(socket)) return rawTransport;
  const config = socket.configType.case === "typedConfig" ? unwrapTypedConfig(socket.configType.value) : undefined;
  if (config?.typeUrl !== typeUrlOf(UpstreamTlsContextSchema)) {
    problems.error(place, `'${socket.name}' is not supported`);
    return rawTransport;
  }
  const at = place.field("typed_config");
  const message = decodeTypedConfig(upstreamTlsMessage, config, at, problems);
  if (message === undefined) return rawTransport;
  if (Buffer.byteLength(message.sni) > 255) problems.error(at.field("sni"), "value length must be at most 255 bytes");
  const context = compileCommonTlsContext(
    message.commonTlsContext,
    "client",
    { scope, problems, secrets },
    at.field("common_tls_context"),
  );
  const stats = { root: "cluster", name: observabilityName, label: "envoy_cluster_name" };
  return new UpstreamTls({
    context,
    serverName: message.sni,
    usesHostName: message.autoHostSni,
    verifiesServerName: message.autoSniSanValidation,
    maxSessionsPerHost: message.maxSessionKeys ?? defaultMaxSessions,
    stats: new TlsStats(scope.metrics, stats, context),
  });
}
