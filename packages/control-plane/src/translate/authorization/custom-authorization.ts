// AuthorizationPolicies of the action CUSTOM → for each provider a filter that finds out whether a rule matches, and
// one that then asks the authorizer (Istio: authz/builder/extauthz.go). The first writes the name of the policy into
// the request's metadata, which switches the second on.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { Filter } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import type { GrpcServiceSchema } from "@tulle/xds/envoy/config/core/v3/grpc_service_pb";
import { RBAC_Action } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/http/rbac/v3/rbac_pb";
import {
  type AuthorizationResponseSchema,
  ExtAuthzSchema,
} from "@tulle/xds/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb";
import { ExtAuthzSchema as NetworkExtAuthzSchema } from "@tulle/xds/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb";
import { RBACSchema as NetworkRBACSchema } from "@tulle/xds/envoy/extensions/filters/network/rbac/v3/rbac_pb";
import type { StatusCode } from "@tulle/xds/envoy/type/v3/http_status_pb";
import type { MetadataMatcherSchema } from "@tulle/xds/envoy/type/matcher/v3/metadata_pb";
import type { ListStringMatcherSchema, StringMatcherSchema } from "@tulle/xds/envoy/type/matcher/v3/string_pb";
import type { WorkloadSecurity } from "../../scope/proxy-view.ts";
import type { MeshAuthorizer } from "../../snapshot/authorizers.ts";
import type { MeshAuthorizationPolicy } from "../../snapshot/mesh-snapshot.ts";
import { durationOfMs, networkFilter, pack } from "../messages.ts";
import { outboundClusterName } from "../../names/resource-names.ts";
import { networkStatPrefix, rulesOf } from "./authorization-filter.ts";
import { connectionRule } from "./connection-rule.ts";

/** The prefix of what the first filter writes, and of the names of policies there. */
const metadataPrefix = "istio_ext_authz_";
const policyPrefix = "istio-ext-authz";
/** Of policies on trial: what they would ask is counted, and nobody is asked. */
const dryRunPrefix = "istio_dry_run_custom_";
const deniedSuffix = "-deny-due-to-bad-CUSTOM-action";

export interface NamedConfig {
  readonly name: string;
  readonly config: Any;
}

interface ProviderPolicies {
  readonly provider: string;
  readonly policies: readonly MeshAuthorizationPolicy[];
  /** Undefined: nobody can be asked, and what the policies match is denied. */
  readonly authorizer: MeshAuthorizer | undefined;
}

export function customHttpFilters(security: WorkloadSecurity | undefined): readonly NamedConfig[] {
  const byProvider = enforcedByProvider(security);
  const filters = byProvider.flatMap(({ provider, policies, authorizer }, index): readonly NamedConfig[] => {
    // Two filters of one name are a mistake to a proxy.
    const number = index === 0 ? "" : `.${index + 1}`;
    const name = `istio.authorization.custom${number}`;
    if (authorizer === undefined) return [{ name, config: pack(RBACSchema, { rules: denying(policies) }) }];
    const shadowRules = rulesOf(policies, naming(provider));
    return [
      { name, config: pack(RBACSchema, { shadowRules, shadowRulesStatPrefix: metadataPrefix }) },
      { name: `envoy.filters.http.ext_authz${number}`, config: httpExtAuthz(authorizer) },
    ];
  });
  const onTrial = dryRuns(security);
  if (onTrial.length === 0) return filters;
  const shadowRules = rulesOf(onTrial, { action: RBAC_Action.DENY });
  const config = pack(RBACSchema, { shadowRules, shadowRulesStatPrefix: dryRunPrefix });
  return [...filters, { name: "istio.authorization.custom.dry-run", config }];
}

/**
 * At ports that do not speak HTTP. An authorizer that speaks HTTP cannot be asked about connections: its policies are
 * left out there.
 */
export function customNetworkFilters(security: WorkloadSecurity | undefined): readonly Filter[] {
  const read: Parameters<typeof rulesOf>[2] = (rule) => connectionRule(rule, "CUSTOM");
  const rbac = (init: MessageInitShape<typeof NetworkRBACSchema>): Filter =>
    networkFilter("envoy.filters.network.rbac", pack(NetworkRBACSchema, { ...init, statPrefix: networkStatPrefix }));
  const filters = enforcedByProvider(security).flatMap(({ provider, policies, authorizer }) => {
    if (authorizer === undefined) return [rbac({ rules: denying(policies, read) })];
    if (authorizer.settings.protocol === "http") return [];
    const shadowRules = rulesOf(policies, naming(provider), read);
    return [
      rbac({ shadowRules, shadowRulesStatPrefix: metadataPrefix }),
      networkFilter("envoy.filters.network.ext_authz", networkExtAuthz(authorizer)),
    ];
  });
  const onTrial = dryRuns(security);
  if (onTrial.length === 0) return filters;
  const shadowRules = rulesOf(onTrial, { action: RBAC_Action.DENY }, read);
  return [...filters, rbac({ shadowRules, shadowRulesStatPrefix: dryRunPrefix })];
}

function enforcedByProvider(security: WorkloadSecurity | undefined): readonly ProviderPolicies[] {
  const enforced = customPolicies(security).filter(({ dryRun }) => !dryRun);
  return [...Map.groupBy(enforced, (policy) => policy.provider ?? "")].map(([provider, policies]) => ({
    provider,
    policies,
    authorizer: security?.authorizers?.find(({ name }) => name === provider),
  }));
}

function dryRuns(security: WorkloadSecurity | undefined): readonly MeshAuthorizationPolicy[] {
  return customPolicies(security).filter(({ dryRun }) => dryRun);
}

function customPolicies(security: WorkloadSecurity | undefined): readonly MeshAuthorizationPolicy[] {
  return (security?.policies ?? []).filter(({ action }) => action === "CUSTOM");
}

/** Names of one provider's policies begin alike, and like nobody else's: a namespace has no bracket. */
function naming(provider: string): Parameters<typeof rulesOf>[1] {
  return { action: RBAC_Action.DENY, namePrefix: `${policyPrefix}-${provider}-` };
}

function denying(
  policies: readonly MeshAuthorizationPolicy[],
  read?: Parameters<typeof rulesOf>[2],
): ReturnType<typeof rulesOf> {
  return rulesOf(policies, { action: RBAC_Action.DENY, nameSuffix: deniedSuffix }, read);
}

function enabledBy(filter: string, { name }: MeshAuthorizer): MessageInitShape<typeof MetadataMatcherSchema> {
  const prefix = `${policyPrefix}-${name}-ns[`;
  return {
    filter,
    path: [{ segment: { case: "key", value: `${metadataPrefix}shadow_effective_policy_id` } }],
    value: { matchPattern: { case: "stringMatch", value: { matchPattern: { case: "prefix", value: prefix } } } },
  };
}

type Services = NonNullable<MessageInitShape<typeof ExtAuthzSchema>["services"]>;

function httpExtAuthz(authorizer: MeshAuthorizer): Any {
  const { failOpen, clearRouteCache, statusOnError, includeRequestBodyInCheck } = authorizer.settings.provider;
  return pack(ExtAuthzSchema, {
    transportApiVersion: 2,
    services: services(authorizer),
    failureModeAllow: failOpen ?? false,
    clearRouteCache: clearRouteCache ?? false,
    ...(statusOnError === undefined ? {} : { statusOnError: { code: Number(statusOnError) as StatusCode } }),
    ...(includeRequestBodyInCheck === undefined ? {} : { withRequestBody: { ...includeRequestBodyInCheck } }),
    ...shownHeaders(authorizer),
    filterEnabledMetadata: enabledBy("envoy.filters.http.rbac", authorizer),
  });
}

function networkExtAuthz(authorizer: MeshAuthorizer): Any {
  return pack(NetworkExtAuthzSchema, {
    statPrefix: networkStatPrefix,
    transportApiVersion: 2,
    grpcService: grpcService(authorizer),
    failureModeAllow: authorizer.settings.provider.failOpen ?? false,
    filterEnabledMetadata: enabledBy("envoy.filters.network.rbac", authorizer),
  });
}

function services(authorizer: MeshAuthorizer): Services {
  const { settings, hostname, port, timeoutMs } = authorizer;
  if (settings.protocol === "grpc") return { case: "grpcService", value: grpcService(authorizer) };
  const { provider } = settings;
  const { pathPrefix = "", includeAdditionalHeadersInCheck: added = {} } = provider;
  // They are fixed texts, and Envoy's are formats.
  const headersToAdd = Object.entries(added).map(([key, value]) => ({ key, value: value.replaceAll("%", "%%") }));
  return {
    case: "httpService",
    value: {
      serverUri: {
        uri: `http://${hostname}:${port}`,
        httpUpstreamType: { case: "cluster", value: outboundClusterName(hostname, port) },
        timeout: durationOfMs(timeoutMs),
      },
      pathPrefix,
      ...(headersToAdd.length === 0 ? {} : { authorizationRequest: { headersToAdd } }),
      authorizationResponse: answerHeaders(authorizer),
    },
  };
}

/** A cluster's name has characters that no authority may have. */
function grpcService({ hostname, port, timeoutMs }: MeshAuthorizer): MessageInitShape<typeof GrpcServiceSchema> {
  const clusterName = outboundClusterName(hostname, port);
  const value = { clusterName, authority: clusterName.replaceAll("|", "_.") };
  return { targetSpecifier: { case: "envoyGrpc", value }, timeout: durationOfMs(timeoutMs) };
}

type HeaderList = MessageInitShape<typeof ListStringMatcherSchema>;

function shownHeaders({ settings }: MeshAuthorizer): { readonly allowedHeaders?: HeaderList } {
  if (settings.protocol === "grpc") return {};
  const { includeRequestHeadersInCheck, includeHeadersInCheck } = settings.provider;
  const allowedHeaders = headerList(includeRequestHeadersInCheck ?? includeHeadersInCheck);
  return allowedHeaders === undefined ? {} : { allowedHeaders };
}

function answerHeaders({ settings }: MeshAuthorizer): MessageInitShape<typeof AuthorizationResponseSchema> {
  if (settings.protocol === "grpc") return {};
  const { headersToUpstreamOnAllow, headersToDownstreamOnDeny, headersToDownstreamOnAllow } = settings.provider;
  const lists = {
    allowedUpstreamHeaders: headerList(headersToUpstreamOnAllow),
    allowedClientHeaders: headerList(headersToDownstreamOnDeny),
    allowedClientHeadersOnSuccess: headerList(headersToDownstreamOnAllow),
  };
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list !== undefined));
}

function headerList(names: readonly string[] = []): HeaderList | undefined {
  return names.length === 0 ? undefined : { patterns: names.map(headerName) };
}

function headerName(name: string): MessageInitShape<typeof StringMatcherSchema> {
  const ignoreCase = true;
  if (name === "*") return { matchPattern: { case: "safeRegex", value: { regex: ".+" } } };
  if (name.startsWith("*")) return { matchPattern: { case: "suffix", value: name.slice(1) }, ignoreCase };
  if (name.endsWith("*")) return { matchPattern: { case: "prefix", value: name.slice(0, -1) }, ignoreCase };
  return { matchPattern: { case: "exact", value: name }, ignoreCase };
}
