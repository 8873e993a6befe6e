// envoy.filters.listener.proxy_protocol: a proxy before this one says, ahead of the connection's own bytes, whose
// connection it is. Only a proxy that is trusted may be let in here: it can say anything.
import { ProxyProtocolConfig_Version as Version } from "@tulle/xds/envoy/config/core/v3/proxy_protocol_pb";
import { ProxyProtocolSchema } from "@tulle/xds/envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol_pb";
import type { Counter, MetricRegistry } from "@tulle/telemetry";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import { inspectorCounters } from "../inspector-counters.ts";
import type { InspectionStatus, ListenerFilterRegistration } from "../listener-filter.ts";
import { readProxyHeader } from "./proxy-header.ts";

const proxyProtocolMessage = checkedMessage(ProxyProtocolSchema, {
  [ProxyProtocolSchema.typeName]: {
    used: "allow_requests_without_proxy_protocol disallowed_versions stat_prefix",
    harmless: {
      pass_through_tlvs: "for a transport socket towards hosts, which is refused by itself",
      tlv_location: "without rules there is nothing to put there",
    },
    warned: { rules: "extensions of the header are not read" },
  },
});

interface VersionStats {
  readonly found: Counter;
  readonly disallowed: Counter;
  readonly error: Counter;
}

export const proxyProtocolRegistration: ListenerFilterRegistration = {
  types: [ProxyProtocolSchema.typeName],
  compile(config, build) {
    const message = decodeTypedConfig(proxyProtocolMessage, config, build.place, build.problems);
    if (message === undefined) return undefined;
    const { allowRequestsWithoutProxyProtocol: isOptional, statPrefix } = message;
    const scope = statPrefix === "" ? "proxy_proto" : `proxy_proto.${statPrefix}`;
    const missing = inspectorCounters(build.metrics, scope, ["not_found_disallowed", "not_found_allowed"]);
    const stats = { 1: versionStats(build.metrics, scope, 1), 2: versionStats(build.metrics, scope, 2) };
    const errors = build.metrics.counter({
      name: "envoy_downstream_cx_proxy_proto_error",
      statName: "downstream_cx_proxy_proto_error",
    });
    const disallowed = new Set(message.disallowedVersions.map((version) => (version === Version.V1 ? 1 : 2)));
    return {
      name: build.name,
      isSkipped: () => false,
      onAccept: undefined,
      inspector: (connection) => (data) => {
        const read = readProxyHeader(data);
        if (read.kind === "none") return withoutHeader();
        const isDisallowed = disallowed.has(read.version);
        if (isOptional && isDisallowed) return withoutHeader();
        if (read.kind === "wait") return "wait";
        const counters = stats[read.version];
        if (isDisallowed && read.kind !== "endless") {
          counters.found.increment();
          counters.disallowed.increment();
          return "close";
        }
        if (read.kind !== "header") {
          counters.error.increment();
          return refuse();
        }
        counters.found.increment();
        const { lengthBytes, addresses } = read.header;
        if (addresses !== undefined) connection.restoreProxied(addresses.source, addresses.destination);
        return lengthBytes;
      },
    };

    function withoutHeader(): InspectionStatus {
      if (isOptional) {
        missing.not_found_allowed.increment();
        return "continue";
      }
      missing.not_found_disallowed.increment();
      return refuse();
    }

    function refuse(): "close" {
      errors.increment();
      return "close";
    }
  },
};

function versionStats(metrics: MetricRegistry, scope: string, version: 1 | 2): VersionStats {
  return inspectorCounters(metrics, `${scope}.versions.v${version}`, ["found", "disallowed", "error"]);
}
