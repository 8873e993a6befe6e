// How a cluster speaks to its hosts: HTTP/1.1 (or HTTP/2, for calls of the proxy's own), with the limits of
// HttpProtocolOptions (extensions.upstreams.http.v3.HttpProtocolOptions, or the older fields of Cluster).
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type {
  Http1ProtocolOptions,
  Http2ProtocolOptions,
  KeepaliveSettings,
} from "@tulle/xds/envoy/config/core/v3/protocol_pb";
import type { HttpProtocolOptions } from "@tulle/xds/envoy/extensions/upstreams/http/v3/http_protocol_options_pb";
import type { AutoServerName } from "../cluster/cluster.ts";
import { durationMs } from "../fields/duration.ts";
import type { Http2KeepAlive } from "../upstream/http2-keep-alive.ts";
import { Place, type Problems } from "../fields/problems.ts";
import { decodeTypedConfig, unwrapTypedConfig } from "../fields/typed-config.ts";
import { httpProtocolOptionsMessage } from "./cluster-fields.ts";

const optionsName = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
const defaultIdleTimeoutMs = 3_600_000;

/** Some of a control plane's clusters speak it whether anybody calls them or not. */
const http2Warning =
  "HTTP/2 carries gRPC calls of the proxy's own; requests that routes lead here get cluster_not_found";

export interface UpstreamProtocol {
  readonly idleTimeoutMs: number;
  readonly maxConnectionDurationMs: number;
  readonly maxStreamDurationMs: number;
  readonly maxRequestsPerConnection: number;
  readonly enableTrailers: boolean;
  readonly isHttp2: boolean;
  readonly http2KeepAlive: Http2KeepAlive | undefined;
  /** upstream_http_protocol_options: auto_sni and auto_san_validation. */
  readonly autoServerName: AutoServerName | undefined;
}

export function compileUpstreamProtocol(message: Cluster, place: Place, problems: Problems): UpstreamProtocol {
  const at = place.field("typed_extension_protocol_options");
  let options: HttpProtocolOptions | undefined;
  for (const [name, any] of Object.entries(message.typedExtensionProtocolOptions)) {
    const here = at.key("", name);
    const config = unwrapTypedConfig(any);
    if (name === optionsName && config !== undefined) {
      options = decodeTypedConfig(httpProtocolOptionsMessage, config, here, problems);
    } else {
      problems.error(here, "these protocol options are not supported");
    }
  }
  if (message.http2ProtocolOptions !== undefined) {
    problems.warning(place.field("http2_protocol_options"), http2Warning);
  }
  if (options !== undefined) checkProtocol(options, at.key("", optionsName), problems);
  const http2 = http2Options(options, at.key("", optionsName), message, place);
  const common = options?.commonHttpProtocolOptions ?? message.commonHttpProtocolOptions;
  return {
    idleTimeoutMs: durationMs(common?.idleTimeout, defaultIdleTimeoutMs),
    maxConnectionDurationMs: durationMs(common?.maxConnectionDuration, 0),
    maxStreamDurationMs: durationMs(common?.maxStreamDuration, 0),
    maxRequestsPerConnection: common?.maxRequestsPerConnection ?? message.maxRequestsPerConnection ?? 0,
    enableTrailers: http1Options(options, message)?.enableTrailers ?? false,
    isHttp2: http2 !== undefined,
    http2KeepAlive: http2KeepAlive(http2?.options.connectionKeepalive, http2?.place, problems),
    autoServerName: autoServerName(options, message, place, problems),
  };
}

/** Undefined where the hosts are spoken to in HTTP/1.1. */
function http2Options(
  options: HttpProtocolOptions | undefined,
  optionsPlace: Place,
  message: Cluster,
  place: Place,
): { readonly options: Http2ProtocolOptions; readonly place: Place } | undefined {
  const protocol = options?.upstreamProtocolOptions;
  if (protocol === undefined) {
    const older = message.http2ProtocolOptions;
    return older && { options: older, place: place.field("http2_protocol_options") };
  }
  if (protocol.case !== "explicitHttpConfig" || protocol.value.protocolConfig.case !== "http2ProtocolOptions")
    return undefined;
  const at = optionsPlace.field("explicit_http_config").field("http2_protocol_options");
  return { options: protocol.value.protocolConfig.value, place: at };
}

const defaultJitterPercent = 15;

/**
 * Envoy: KeepaliveSettings; without an interval it pings only before a new stream, and a stream of ours is a
 * connection's first.
 */
function http2KeepAlive(
  message: KeepaliveSettings | undefined,
  place: Place = Place.root,
  problems: Problems,
): Http2KeepAlive | undefined {
  if (message === undefined) return undefined;
  const at = place.field("connection_keepalive");
  const { interval, timeout, intervalJitter } = message;
  if (timeout === undefined) problems.error(at.field("timeout"), "value is required");
  for (const [name, value] of [
    ["interval", interval],
    ["timeout", timeout],
  ] as const) {
    if (value !== undefined && durationMs(value, 0) < 1)
      problems.error(at.field(name), "value must be greater than or equal to 1ms");
  }
  const jitterPercent = intervalJitter?.value ?? defaultJitterPercent;
  if (!(jitterPercent >= 0 && jitterPercent <= 100))
    problems.error(at.field("interval_jitter"), "value must be inside range [0, 100]");
  return interval && { intervalMs: durationMs(interval, 0), jitterPercent, timeoutMs: durationMs(timeout, 0) };
}

function autoServerName(
  options: HttpProtocolOptions | undefined,
  message: Cluster,
  place: Place,
  problems: Problems,
): AutoServerName | undefined {
  const names = options?.upstreamHttpProtocolOptions ?? message.upstreamHttpProtocolOptions;
  if (names === undefined) return undefined;
  const at = place.field("upstream_http_protocol_options");
  if (names.autoSni) return { verifiesCertificate: names.autoSanValidation };
  if (names.autoSanValidation) problems.error(at.field("auto_san_validation"), "needs auto_sni");
  return undefined;
}

function http1Options(options: HttpProtocolOptions | undefined, message: Cluster): Http1ProtocolOptions | undefined {
  const protocol = options?.upstreamProtocolOptions;
  if (protocol?.case === "useDownstreamProtocolConfig") return protocol.value.httpProtocolOptions;
  if (protocol?.case !== "explicitHttpConfig") return message.httpProtocolOptions;
  const explicit = protocol.value.protocolConfig;
  return explicit.case === "httpProtocolOptions" ? explicit.value : undefined;
}

function checkProtocol(options: HttpProtocolOptions, place: Place, problems: Problems): void {
  const protocol = options.upstreamProtocolOptions;
  switch (protocol.case) {
    case "explicitHttpConfig": {
      const explicit = protocol.value.protocolConfig.case;
      if (explicit === "httpProtocolOptions") return;
      const at = place.field("explicit_http_config");
      if (explicit === "http2ProtocolOptions") problems.warning(at, http2Warning);
      else problems.error(at, "HTTP/3 to the upstream is not supported");
      return;
    }
    case "useDownstreamProtocolConfig":
      return;
    case "autoConfig":
      problems.error(place.field("auto_config"), "needs TLS, which is not supported");
      return;
    case undefined:
      problems.error(place.field("upstream_protocol_options"), "value is required");
  }
}
