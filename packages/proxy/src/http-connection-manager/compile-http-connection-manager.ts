// The HTTP connection manager of a filter chain: limits, header rules, filters, routes and logs
// (extensions.filters.network.http_connection_manager.v3.HttpConnectionManager).
import {
  type HttpConnectionManager,
  HttpConnectionManager_CodecType as CodecType,
  HttpConnectionManager_ForwardClientCertDetails as ClientCert,
  HttpConnectionManager_PathWithEscapedSlashesAction as EscapedSlashes,
  HttpConnectionManager_ServerHeaderTransformation as ServerHeader,
} from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import { http2StatsOf } from "../codec/http2/http2-stats.ts";
import { defaultHttp2Options } from "../codec/http2/http2-options.ts";
import { compileHttp2Options } from "../fields/compile-http2-options.ts";
import { UuidRequestIdConfigSchema } from "@tulle/xds/envoy/extensions/request_id/uuid/v3/uuid_pb";
import { filterOfType } from "../filters/http/table.ts";
import { enablementKey } from "../filters/http/enablement-key.ts";
import { accessLogObserver, statisticsObserver } from "./record-stream.ts";
import { HttpFilterChain } from "./filter-chain.ts";
import { StreamObservers } from "./stream-observer.ts";
import type { HttpFilter } from "../http/filter.ts";
import type { ClientCertForwarding, ForwardClientCert } from "./forwarded-client-cert.ts";
import type { RouteTable } from "../route/route-table.ts";
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";
import { makeHttpConnectionManagerStats, makeListenerRequestStats } from "./http-connection-manager-stats.ts";
import { Slot } from "../runtime/slot.ts";
import { compileCidr } from "../fields/cidr.ts";
import { checkResourceSource, initialFetchTimeoutMs } from "../fields/check-resource-source.ts";
import { checkHeaderText } from "../fields/check-header-text.ts";
import { compileAccessLog } from "../fields/compile-access-log.ts";
import { compileIntermediateLogs } from "./intermediate-logs.ts";
import { compileLocalReplies } from "./compile-local-replies.ts";
import type { ListenerBuild } from "../listener/listener-build.ts";
import { buildRouteTable } from "../compile/compile-route-configuration.ts";
import { decodedSource } from "../compile/route-source.ts";
import { durationMs } from "../fields/duration.ts";
import { runAtOnce } from "@tulle/timing";
import type { Place, Problems } from "../fields/problems.ts";
import { typeUrlOf, unwrapTypedConfig } from "../fields/typed-config.ts";
import { compileTracing } from "../tracing/compile-tracing.ts";

const defaultIdleTimeoutMs = 3_600_000;
const defaultStreamIdleTimeoutMs = 300_000;
const defaultDrainTimeoutMs = 5000;
const defaultDelayedCloseMs = 1000;
const defaultMaxHeadersKb = 60;
const defaultMaxHeadersCount = 100;

const escapedSlashes: Readonly<Record<number, HttpConnectionManagerConfig["pathWithEscapedSlashesAction"]>> = {
  [EscapedSlashes.KEEP_UNCHANGED]: "keep_unchanged",
  [EscapedSlashes.REJECT_REQUEST]: "reject_request",
  [EscapedSlashes.UNESCAPE_AND_REDIRECT]: "unescape_and_redirect",
  [EscapedSlashes.UNESCAPE_AND_FORWARD]: "unescape_and_forward",
};

const serverHeaders: Readonly<Record<number, HttpConnectionManagerConfig["serverHeaderTransformation"]>> = {
  [ServerHeader.OVERWRITE]: "overwrite",
  [ServerHeader.APPEND_IF_ABSENT]: "append_if_absent",
  [ServerHeader.PASS_THROUGH]: "pass_through",
};

const clientCertModes: Readonly<Record<number, ForwardClientCert>> = {
  [ClientCert.SANITIZE]: "sanitize",
  [ClientCert.FORWARD_ONLY]: "forward_only",
  [ClientCert.APPEND_FORWARD]: "append_forward",
  [ClientCert.SANITIZE_SET]: "sanitize_set",
  [ClientCert.ALWAYS_FORWARD_ONLY]: "always_forward_only",
};

export function compileHttpConnectionManager(
  message: HttpConnectionManager,
  build: ListenerBuild,
  place: Place,
): HttpConnectionManagerConfig | undefined {
  const { scope, problems } = build;
  checkLimitsOfThisProxy(message, place, problems);
  const routeTable = compileRouteSource(message, build, place);
  const filterChain = compileFilters(message, build, place);
  const accessLogs = message.accessLog.map((log, index) =>
    compileAccessLog(log, scope, place.field("access_log", index), problems),
  );
  const logs = accessLogs.filter((log) => log !== undefined);
  const intermediate = compileIntermediateLogs(message, logs, place, problems);
  const isInternalAddress = internalAddresses(message, place, problems);
  const serverName = checkHeaderText(message.serverName, place.field("server_name"), problems);
  const localReplies = place.field("local_reply_config");
  const rewriteLocalReply = compileLocalReplies(message.localReplyConfig, scope, localReplies, problems);
  const via = checkHeaderText(message.via, place.field("via"), problems);
  const atHttp2 = place.field("http2_protocol_options");
  const http2 = compileHttp2Options(message.http2ProtocolOptions, defaultHttp2Options, atHttp2, problems);
  const tracing = compileTracing(message, build, place);
  if (routeTable === undefined || problems.hasErrors) return undefined;
  const stats = makeHttpConnectionManagerStats(scope.metrics, message.statPrefix);
  const common = message.commonHttpProtocolOptions;
  const http1 = message.httpProtocolOptions;
  const strip = message.stripPortMode;
  return {
    statPrefix: message.statPrefix,
    codecType: codecTypes[message.codecType] ?? "auto",
    http2,
    http2Stats: http2StatsOf(scope.metrics),
    routeTable,
    filterChain,
    observers: new StreamObservers([
      statisticsObserver(stats, makeListenerRequestStats(scope.metrics, build.statName, message.statPrefix)),
      // Its headers are set before anybody logs them.
      ...(tracing === undefined ? [] : [tracing]),
      ...intermediate,
      ...logs.map(accessLogObserver),
    ]),
    redactedNames: scope.redactedNames,
    serverName: serverName === "" ? "envoy" : serverName,
    serverHeaderTransformation: serverHeaders[message.serverHeaderTransformation] ?? "overwrite",
    connectionIdleTimeoutMs: durationMs(common?.idleTimeout, defaultIdleTimeoutMs),
    requestHeadersTimeoutMs: durationMs(message.requestHeadersTimeout, 0),
    streamIdleTimeoutMs: durationMs(message.streamIdleTimeout, defaultStreamIdleTimeoutMs),
    requestTimeoutMs: durationMs(message.requestTimeout, 0),
    delayedCloseMs: durationMs(message.delayedCloseTimeout, defaultDelayedCloseMs),
    maxStreamDurationMs: durationMs(common?.maxStreamDuration, 0),
    maxConnectionDurationMs: durationMs(common?.maxConnectionDuration, 0),
    endsConnectionsSafely: message.http1SafeMaxConnectionDuration,
    maxRequestsPerConnection: common?.maxRequestsPerConnection ?? 0,
    maxRequestHeadersBytes: (message.maxRequestHeadersKb ?? defaultMaxHeadersKb) * 1024,
    maxRequestHeadersCount: common?.maxHeadersCount ?? defaultMaxHeadersCount,
    generateRequestId: message.generateRequestId ?? true,
    preserveExternalRequestId: message.preserveExternalRequestId,
    alwaysSetRequestIdInResponse: message.alwaysSetRequestIdInResponse,
    useRemoteAddress: message.useRemoteAddress ?? false,
    xffNumTrustedHops: message.xffNumTrustedHops,
    skipXffAppend: message.skipXffAppend,
    via,
    clientCert: clientCertForwarding(message),
    normalizePath: message.normalizePath ?? false,
    mergeSlashes: message.mergeSlashes,
    pathWithEscapedSlashesAction: escapedSlashes[message.pathWithEscapedSlashesAction] ?? "keep_unchanged",
    stripMatchingHostPort: message.stripMatchingHostPort,
    stripAnyHostPort: strip.case === "stripAnyHostPort" && strip.value,
    acceptHttp10: http1?.acceptHttp10 ?? false,
    allowAbsoluteUrl: http1?.allowAbsoluteUrl ?? true,
    enableTrailers: http1?.enableTrailers ?? false,
    isInternalAddress,
    upgradeTypes: new Set(
      message.upgradeConfigs
        .filter((upgrade) => upgrade.enabled ?? true)
        .map((upgrade) => upgrade.upgradeType.toLowerCase()),
    ),
    drainTimeoutMs: durationMs(message.drainTimeout, defaultDrainTimeoutMs),
    rewriteLocalReply,
    stats,
  };
}

function clientCertForwarding(message: HttpConnectionManager): ClientCertForwarding {
  const details = message.setCurrentClientCertDetails;
  return {
    mode: clientCertModes[message.forwardClientCertDetails] ?? "sanitize",
    details: {
      cert: details?.cert ?? false,
      chain: details?.chain ?? false,
      subject: details?.subject ?? false,
      uri: details?.uri ?? false,
      dns: details?.dns ?? false,
    },
  };
}

/**
 * Whose `x-envoy-*` headers are believed: nobody's, unless ranges are named. Envoy believes 127.0.0.1 and private
 * networks where the field is there and names none.
 */
function internalAddresses(
  message: HttpConnectionManager,
  place: Place,
  problems: Problems,
): HttpConnectionManagerConfig["isInternalAddress"] {
  const at = place.field("internal_address_config");
  const ranges = (message.internalAddressConfig?.cidrRanges ?? []).map((range, index) =>
    compileCidr(range, at.field("cidr_ranges", index), problems),
  );
  return ranges.length === 0 ? () => false : (ip) => ranges.some((range) => range.contains(ip));
}

const codecTypes: Readonly<Partial<Record<CodecType, HttpConnectionManagerConfig["codecType"]>>> = {
  [CodecType.HTTP1]: "HTTP/1.1",
  [CodecType.HTTP2]: "HTTP/2",
};

/** What Envoy refuses too, and what only this proxy cannot do yet. */
function checkLimitsOfThisProxy(message: HttpConnectionManager, place: Place, problems: Problems): void {
  if (message.statPrefix === "")
    problems.error(place.field("stat_prefix"), "value length must be at least 1 characters");
  if (message.codecType === CodecType.HTTP3) {
    problems.error(place.field("codec_type"), "only AUTO, HTTP1 and HTTP2 are supported");
  }
  if ((message.maxRequestHeadersKb ?? defaultMaxHeadersKb) > 8192) {
    problems.error(place.field("max_request_headers_kb"), "value must be inside range (0, 8192]");
  }
  const common = message.commonHttpProtocolOptions;
  const at = place.field("common_http_protocol_options");
  if (common !== undefined && common.headersWithUnderscoresAction !== 0) {
    problems.error(at.field("headers_with_underscores_action"), "only ALLOW is supported");
  }
  const requestId = message.requestIdExtension?.typedConfig?.typeUrl;
  if (requestId !== undefined && requestId !== typeUrlOf(UuidRequestIdConfigSchema)) {
    problems.error(place.field("request_id_extension"), "only the UUID extension is supported");
  }
}

function compileRouteSource(
  message: HttpConnectionManager,
  build: ListenerBuild,
  place: Place,
): Slot<RouteTable> | undefined {
  const { scope, problems, options } = build;
  const source = message.routeSpecifier;
  switch (source.case) {
    case "rds": {
      const at = place.field("rds");
      checkResourceSource(source.value.configSource, at.field("config_source"), problems);
      const name = source.value.routeConfigName;
      if (name === "") problems.error(at.field("route_config_name"), "value length must be at least 1 characters");
      const timeoutMs = initialFetchTimeoutMs(source.value.configSource);
      build.routes.set(name, { timeoutMs, statPrefix: message.statPrefix });
      return scope.routeTableSlot(name);
    }
    case "routeConfig": {
      const inline = { ...(options.clusterExists && { clusterExists: options.clusterExists }), isInline: true };
      const table = runAtOnce(
        buildRouteTable(decodedSource(source.value), scope, inline, place.field("route_config"), problems),
      );
      for (const name of table.clusterNames) build.clusterNames.add(name);
      const slot = new Slot<RouteTable>(source.value.name);
      slot.current = table;
      return slot;
    }
    case "scopedRoutes":
      problems.error(place.field("scoped_routes"), "this field is not supported");
      return undefined;
    case undefined:
      problems.error(place, "a route specifier is required");
      return undefined;
  }
}

interface KnownFilter {
  readonly name: string;
  readonly isTerminal: boolean;
  readonly isDisabled: boolean;
  readonly filter: HttpFilter | undefined;
}

function compileFilters(message: HttpConnectionManager, build: ListenerBuild, place: Place): HttpFilterChain {
  const { scope, problems } = build;
  const known: KnownFilter[] = [];
  for (const [index, entry] of message.httpFilters.entries()) {
    const at = place.field("http_filters", index);
    const any = entry.configType;
    if (any.case === "configDiscovery") {
      problems.error(at.field("config_discovery"), "this field is not supported");
      continue;
    }
    const config = any.case === "typedConfig" ? unwrapTypedConfig(any.value) : undefined;
    const registration = config && filterOfType(config.typeUrl);
    if (config === undefined || registration === undefined) {
      const type = config?.typeUrl.replace(/^.*\//, "") ?? "";
      const words = `Didn't find a registered implementation for '${entry.name}' with type URL: '${type}'`;
      if (entry.isOptional) problems.warning(at, `${words}; skipped because it is optional`);
      else problems.error(at, words);
      continue;
    }
    if (entry.disabled && registration.isTerminal) problems.error(at, "a terminal filter cannot be disabled");
    const filter = registration.compile(config, {
      name: entry.name,
      scope,
      isInbound: build.isInbound,
      statPrefix: message.statPrefix,
      clusterNames: build.clusterNames,
      secretSlots: build.secretSlots,
      place: at.field("typed_config"),
      problems,
    });
    known.push({
      name: entry.name,
      isTerminal: registration.isTerminal,
      isDisabled: entry.disabled,
      filter,
    });
  }
  checkOrder(known, place, problems);
  return new HttpFilterChain(
    known.flatMap(({ name, isDisabled, filter }) =>
      filter === undefined ? [] : [{ filter, enablementKey: isDisabled ? enablementKey(name) : undefined }],
    ),
  );
}

function checkOrder(filters: readonly KnownFilter[], place: Place, problems: Problems): void {
  const at = place.field("http_filters");
  const names = new Set<string>();
  for (const [index, { name, isTerminal }] of filters.entries()) {
    if (names.has(name)) problems.warning(at, `the filter name ${name} occurs more than once`);
    names.add(name);
    const isLast = index === filters.length - 1;
    if (isTerminal && !isLast) {
      problems.error(
        at,
        `Error: terminal filter named ${name} of type ${name} must be the last filter in a http filter chain.`,
      );
    } else if (!isTerminal && isLast) {
      problems.error(
        at,
        `Error: non-terminal filter named ${name} of type ${name} is the last filter in a http filter chain.`,
      );
    }
  }
  if (filters.length === 0) problems.error(at, "a terminal filter is required, such as envoy.filters.http.router");
}
