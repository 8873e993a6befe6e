// How a cluster speaks to its hosts: HTTP/1.1 or HTTP/2, with the limits of
// HttpProtocolOptions (extensions.upstreams.http.v3.HttpProtocolOptions, or the older fields of Cluster).
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { Http1ProtocolOptions, Http2ProtocolOptions } from "@tulle/xds/envoy/config/core/v3/protocol_pb";
import type { HttpProtocolOptions } from "@tulle/xds/envoy/extensions/upstreams/http/v3/http_protocol_options_pb";
import type { AutoServerName, UpstreamProtocolChoice } from "../cluster/cluster.ts";
import { defaultUpstreamHttp2Options, type Http2Options } from "../codec/http2/http2-options.ts";
import { compileHttp2Options } from "../fields/compile-http2-options.ts";
import { durationMs } from "../fields/duration.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { decodeTypedConfig, unwrapTypedConfig } from "../fields/typed-config.ts";
import { httpProtocolOptionsMessage } from "./cluster-fields.ts";

const optionsName = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
const defaultIdleTimeoutMs = 3_600_000;

export interface UpstreamProtocol {
  readonly idleTimeoutMs: number;
  readonly maxConnectionDurationMs: number;
  readonly maxStreamDurationMs: number;
  readonly maxRequestsPerConnection: number;
  readonly enableTrailers: boolean;
  readonly protocol: UpstreamProtocolChoice;
  readonly http2: Http2Options;
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
  if (options !== undefined) checkProtocol(options, at.key("", optionsName), problems);
  const http2 = http2Options(options, at.key("", optionsName), message, place);
  const common = options?.commonHttpProtocolOptions ?? message.commonHttpProtocolOptions;
  return {
    idleTimeoutMs: durationMs(common?.idleTimeout, defaultIdleTimeoutMs),
    maxConnectionDurationMs: durationMs(common?.maxConnectionDuration, 0),
    maxStreamDurationMs: durationMs(common?.maxStreamDuration, 0),
    maxRequestsPerConnection: common?.maxRequestsPerConnection ?? message.maxRequestsPerConnection ?? 0,
    enableTrailers: http1Options(options, message)?.enableTrailers ?? false,
    protocol: protocolOf(options, message),
    http2: compileHttp2Options(http2?.options, defaultUpstreamHttp2Options, http2?.place ?? place, problems),
    autoServerName: autoServerName(options, message, place, problems),
  };
}

function protocolOf(options: HttpProtocolOptions | undefined, message: Cluster): UpstreamProtocolChoice {
  const chosen = options?.upstreamProtocolOptions;
  if (chosen === undefined) return message.http2ProtocolOptions === undefined ? "HTTP/1.1" : "HTTP/2";
  if (chosen.case === "useDownstreamProtocolConfig") return "downstream";
  const isHttp2 = chosen.case === "explicitHttpConfig" && chosen.value.protocolConfig.case === "http2ProtocolOptions";
  return isHttp2 ? "HTTP/2" : "HTTP/1.1";
}

interface PlacedHttp2Options {
  readonly options: Http2ProtocolOptions | undefined;
  readonly place: Place;
}

function http2Options(
  options: HttpProtocolOptions | undefined,
  optionsPlace: Place,
  message: Cluster,
  place: Place,
): PlacedHttp2Options | undefined {
  const protocol = options?.upstreamProtocolOptions;
  switch (protocol?.case) {
    case "explicitHttpConfig": {
      const { protocolConfig } = protocol.value;
      const at = optionsPlace.field("explicit_http_config").field("http2_protocol_options");
      return protocolConfig.case === "http2ProtocolOptions" ? { options: protocolConfig.value, place: at } : undefined;
    }
    case "useDownstreamProtocolConfig": {
      const at = optionsPlace.field("use_downstream_protocol_config").field("http2_protocol_options");
      return { options: protocol.value.http2ProtocolOptions, place: at };
    }
    default:
      return { options: message.http2ProtocolOptions, place: place.field("http2_protocol_options") };
  }
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
      if (explicit === "httpProtocolOptions" || explicit === "http2ProtocolOptions") return;
      problems.error(place.field("explicit_http_config"), "HTTP/3 to the upstream is not supported");
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
