// ExtAuthz of the wire → what the filter reads. Envoy's defaults, and what this proxy refuses, stand here.
import type { HttpUri } from "@tulle/xds/envoy/config/core/v3/http_uri_pb";
import type { HeaderValue } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type {
  AuthorizationResponse,
  BufferSettings,
  ExtAuthz,
  ExtAuthzPerRoute,
  HttpService,
} from "@tulle/xds/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb";
import type { ListStringMatcher } from "@tulle/xds/envoy/type/matcher/v3/string_pb";
import { compileRetries } from "../../../fields/compile-async-retries.ts";
import { durationMs } from "../../../fields/duration.ts";
import { fractionOf } from "../../../fields/matchers/fraction.ts";
import { compileMetadataMatcher } from "../../../fields/matchers/metadata-matcher.ts";
import { compileStringMatcher } from "../../../fields/matchers/string-matcher.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import { compileTextFormat } from "../../../format/substitution-format.ts";
import { utf8AsLatin1 } from "../../../http/header-value.ts";
import type { FilterBuild } from "../filter-registration.ts";
import { compileGrpcAuthorizer } from "./compile-grpc-authorizer.ts";
import type { Authorizer, BodySettings, ExtAuthzConfig, ExtAuthzRouteConfig } from "./ext-authz-config.ts";
import { type HeaderTest, HttpAuthorizer, type HttpAuthorizerConfig } from "./http-authorizer.ts";

const forbidden = 403;

/** Undefined after an error. */
export function compileExtAuthzConfig(message: ExtAuthz, build: FilterBuild): ExtAuthzConfig | undefined {
  const { place, problems } = build;
  const authorizer = compileAuthorizer(message, build);
  const enabled = message.filterEnabled?.defaultValue;
  const enabledBy = message.filterEnabledMetadata;
  const config = {
    failureModeAllow: message.failureModeAllow,
    failureModeHeader: message.failureModeAllowHeaderAdd,
    body: compileBody(message.withRequestBody, place.field("with_request_body"), problems),
    clearsRouteCache: message.clearRouteCache,
    statusOnError: message.statusOnError?.code || forbidden,
    enabledShare: enabled === undefined ? 1 : fractionOf(enabled),
    enabledBy:
      enabledBy && compileMetadataMatcher(enabledBy, place.field("filter_enabled_metadata"), problems)?.matches,
    deniesWhenDisabled: message.denyAtDisable?.defaultValue ?? false,
    showsHeader: compileShownHeaders(message, place, problems),
    metadataNamespaces: message.metadataContextNamespaces,
    takesMetadata: message.enableDynamicMetadataIngestion ?? true,
    maxDeniedBodyBytes: message.maxDeniedResponseBodyBytes,
  };
  return authorizer === undefined || problems.hasErrors ? undefined : { ...config, authorizer };
}

function compileAuthorizer(message: ExtAuthz, build: FilterBuild): Authorizer | undefined {
  const { services } = message;
  const { place, problems } = build;
  switch (services.case) {
    case "httpService":
      return compileHttpAuthorizer(services.value, build, place.field("http_service"));
    case "grpcService":
      return compileGrpcAuthorizer(services.value, message, build, place.field("grpc_service"));
    case undefined:
      problems.error(place.field("services"), "is required");
      return undefined;
  }
}

function compileHttpAuthorizer(service: HttpService, build: FilterBuild, place: Place): Authorizer | undefined {
  const { scope, problems } = build;
  const cluster = clusterOf(service.serverUri, place.field("server_uri"), build);
  for (const [field, path] of [
    ["path_prefix", service.pathPrefix],
    ["path_override", service.pathOverride],
  ] as const) {
    if (path !== "" && !path.startsWith("/")) problems.error(place.field(field), `should start with "/".`);
  }
  if (service.pathPrefix !== "" && service.pathOverride !== "") {
    problems.error(place, "only one of path_prefix and path_override can be set");
  }
  if (cluster === undefined) return undefined;
  return new HttpAuthorizer({
    cluster: scope.clusterSlot(cluster),
    timeoutMs: durationMs(service.serverUri?.timeout, 0),
    retries: service.retryPolicy && compileRetries(service.retryPolicy),
    pathPrefix: service.pathPrefix,
    pathOverride: service.pathOverride === "" ? undefined : service.pathOverride,
    added: compileAdded(service.authorizationRequest?.headersToAdd ?? [], build, place.field("authorization_request")),
    ...compileAnswerTests(service.authorizationResponse, place.field("authorization_response"), problems),
  });
}

function clusterOf(
  uri: HttpUri | undefined,
  place: Place,
  { clusterNames, problems }: FilterBuild,
): string | undefined {
  const type = uri?.httpUpstreamType;
  if (type?.case !== "cluster" || type.value === "") {
    problems.error(place.field("cluster"), "value length must be at least 1 characters");
    return undefined;
  }
  clusterNames.add(type.value);
  return type.value;
}

function compileAdded(
  headers: readonly HeaderValue[],
  { scope, problems }: FilterBuild,
  place: Place,
): HttpAuthorizerConfig["added"] {
  return headers.map(({ key, value }, index) => ({
    name: key.toLowerCase(),
    format: compileTextFormat(utf8AsLatin1(value), "", scope, place.field("headers_to_add", index), problems),
  }));
}

/** The authorizer's usual answer to a client, whatever list there is. */
const clientHeaders = new Set(["content-length", "www-authenticate", "location"]);

type AnswerTests = Pick<
  HttpAuthorizerConfig,
  "toUpstream" | "toUpstreamAppended" | "toClientWhenDenied" | "toClientWhenAllowed" | "toMetadata"
>;

function compileAnswerTests(answer: AuthorizationResponse | undefined, place: Place, problems: Problems): AnswerTests {
  const test = (list: ListStringMatcher | undefined, field: string): HeaderTest | undefined =>
    compileList(list, place.field(field), problems);
  const none: HeaderTest = () => false;
  const named = test(answer?.allowedClientHeaders, "allowed_client_headers");
  return {
    toUpstream: test(answer?.allowedUpstreamHeaders, "allowed_upstream_headers") ?? none,
    toUpstreamAppended: test(answer?.allowedUpstreamHeadersToAppend, "allowed_upstream_headers_to_append") ?? none,
    toClientWhenDenied: named === undefined ? () => true : (name) => clientHeaders.has(name) || named(name),
    toClientWhenAllowed: test(answer?.allowedClientHeadersOnSuccess, "allowed_client_headers_on_success") ?? none,
    toMetadata: test(answer?.dynamicMetadataFromHeaders, "dynamic_metadata_from_headers") ?? none,
  };
}

/** Over HTTP a few are shown whatever the list says; over gRPC all are where there is none. */
const alwaysShown = new Set(["authorization", ":method", ":path", ":authority"]);

function compileShownHeaders(message: ExtAuthz, place: Place, problems: Problems): HeaderTest {
  const { services } = message;
  const ofService = services.case === "httpService" ? services.value.authorizationRequest?.allowedHeaders : undefined;
  const allowed = compileList(message.allowedHeaders ?? ofService, place.field("allowed_headers"), problems);
  const hidden = compileList(message.disallowedHeaders, place.field("disallowed_headers"), problems);
  const isShown: HeaderTest =
    services.case === "httpService"
      ? (name) => alwaysShown.has(name) || allowed?.(name) === true
      : (allowed ?? (() => true));
  return hidden === undefined ? isShown : (name) => !hidden(name) && isShown(name);
}

/** Undefined where the list is empty. */
function compileList(list: ListStringMatcher | undefined, place: Place, problems: Problems): HeaderTest | undefined {
  if (list === undefined || list.patterns.length === 0) return undefined;
  const tests = list.patterns.map((pattern, index) =>
    compileStringMatcher(pattern, place.field("patterns", index), problems),
  );
  return (name) => tests.some((matches) => matches(name));
}

function compileBody(settings: BufferSettings | undefined, place: Place, problems: Problems): BodySettings | undefined {
  if (settings === undefined) return undefined;
  if (settings.maxRequestBytes === 0) problems.error(place.field("max_request_bytes"), "value must be greater than 0");
  return {
    maxBytes: settings.maxRequestBytes,
    allowsPartial: settings.allowPartialMessage,
    packAsBytes: settings.packAsBytes,
  };
}

export function compileRouteConfig(message: ExtAuthzPerRoute, place: Place, problems: Problems): ExtAuthzRouteConfig {
  const { override } = message;
  const settings = override.case === "checkSettings" ? override.value : undefined;
  if (override.case === undefined) problems.error(place.field("override"), "is required");
  return {
    isDisabled: override.case === "disabled" && override.value,
    contextExtensions: settings?.contextExtensions ?? {},
    ignoresBody: settings?.disableRequestBodyBuffering ?? false,
    body: compileBody(settings?.withRequestBody, place.field("check_settings").field("with_request_body"), problems),
  };
}
