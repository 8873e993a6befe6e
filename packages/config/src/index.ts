/**
 * `@tulle/config`: the mesh's resources – their schemas and types, loading, checking and analysing them, and the store.
 */
export type { Finding, FindingCode, Place, Severity } from "./findings/finding.ts";
export { findingCodes, findingPages } from "./findings/finding.ts";
export type {
  AuthorizationCondition,
  AuthorizationOperation,
  AuthorizationPolicy,
  AuthorizationRule,
  AuthorizationSource,
  BrowserLogin,
  ClientTls,
  ConfigMap,
  Destination,
  DestinationRule,
  Deployment,
  Endpoint,
  EndpointSlice,
  Gateway,
  GatewayServer,
  HeaderRouteMatch,
  HttpMatch,
  HttpRoute,
  JwtRule,
  MeshResource,
  Namespace,
  PeerAuthentication,
  Pod,
  RequestAuthentication,
  ResourceOf,
  Retries,
  Rollout,
  ServiceEntry,
  WorkloadEntry,
  RolloutAnalysis,
  RolloutFreeze,
  RolloutMetric,
  RolloutSpec,
  RolloutStep,
  RolloutVersion,
  Secret,
  Service,
  ServiceAccount,
  ServicePort,
  Subset,
  TcpRoute,
  Telemetry,
  TlsRoute,
  TrafficPolicy,
  VirtualService,
  WeightedDestination,
} from "./kinds/resource.ts";
export type { ResourceKey } from "./findings/finding.ts";
export { defaultNamespace, effectiveNamespace, keyOf, keyText, sameContent } from "./kinds/resource.ts";
export type { ObjectMeta } from "./kinds/metadata.ts";
export type { Container, PodSpec, Probe } from "./kinds/pod-spec.ts";
export type { StringMatch } from "./kinds/http-route.ts";
export { istioMetrics } from "./kinds/telemetry.ts";
export type { Kind } from "./kinds/kinds.ts";
export { findKind, isKind, kindDefinitions, kinds } from "./kinds/kinds.ts";
export { serviceNameLabel } from "./kinds/endpoint-slice.ts";
export { claimPath, headerOfKey } from "./kinds/authorization-keys.ts";
export { routedClaim } from "./schema/formats.ts";
export { isPathTemplate } from "./kinds/authorization-formats.ts";
export { isSingleAddress, rangeText, splitIpBlock } from "./schema/ip-block.ts";
export type { AuthorityCredential, ReadCredential, ServerCredential } from "./kinds/credentials.ts";
export {
  authoritiesSuffix,
  authorityCredential,
  concealSecrets,
  localhostSecret,
  serverCredential,
} from "./kinds/credentials.ts";
export { secretKeys, secretValue, tlsSecretType } from "./kinds/secret.ts";
export type { JsonWebKeySet } from "./rules/json-web-key-set.ts";
export { parseKeySet } from "./rules/json-web-key-set.ts";
export type { MutualTlsMode, MutualTlsModes, PeerAuthenticationScope } from "./rules/mutual-tls-mode.ts";
export { modeOfPort, mutualTlsModes, peerAuthenticationScope } from "./rules/mutual-tls-mode.ts";
export type { Exported } from "./rules/export-to.ts";
export { exportedTo, isExportedTo, serviceExportTo } from "./rules/export-to.ts";
export { isBehind, selects } from "./rules/label-selector.ts";
export type { PolicyScope } from "./rules/policy-scope.ts";
export { isDryRun, policyHolds, policyScope, rootNamespaces } from "./rules/policy-scope.ts";
export type { PlaceTable } from "./findings/places.ts";
export { attachPlaces, formatPath, placeOf, placesOf } from "./findings/places.ts";
export type {
  ExtensionProvider,
  GrpcAuthorizerProvider,
  HttpAuthorizerProvider,
  MeshConfig,
  PathNormalization,
} from "./mesh-config/mesh-config.ts";
export { meshConfigOf, providerHost, readMeshConfig } from "./mesh-config/mesh-config.ts";
export type { MeshNetworksConfig } from "./mesh-config/mesh-networks.ts";
export { meshNetworksOf } from "./mesh-config/mesh-networks.ts";
export { labelledNetwork, leadsIntoNetwork } from "./rules/network-labels.ts";
export type { Path } from "./findings/places.ts";
export { parseDuration } from "./schema/duration.ts";
export type {
  ApplyResult,
  ApplyOptions,
  DeleteOptions,
  Store,
  StoreChange,
  StoreListener,
  StoreRefusalReason,
  Unwatch,
} from "./store/store.ts";
export { StoreOverMemory } from "./store/store-over-memory.ts";
export { StoreRefusal } from "./store/store.ts";
export type { MemoryStoreOptions } from "./store/memory-store.ts";
export { MemoryStore, defaultHistoryChanges } from "./store/memory-store.ts";
export type { ApiClientOptions, ApiEndpoint, ApplyAnswer } from "./api/api-client.ts";
export { ApiClient, ApiError, controlPlaneName } from "./api/api-client.ts";
export type { ResourceWatch, ResourceWatchOptions } from "./api/resource-watch.ts";
export type { Loaded } from "./load/load.ts";
export type { CustomTag } from "./mesh-config/custom-tags.ts";
export { soundTags } from "./mesh-config/custom-tags.ts";
export type {
  FileAccessLogProvider,
  HttpAccessLogServiceProvider,
  OpenTelemetryProvider,
  OtelAccessLogProvider,
  ProviderHeader,
  ZipkinProvider,
} from "./mesh-config/telemetry-providers.ts";
export type { GatewayTopology } from "./rules/gateway-topology.ts";
export { jsonLogFormat } from "./mesh-config/telemetry-settings.ts";
export { expressionProblem } from "./rules/cel-expression.ts";
export { formatProblem, withoutSecretQueries, withoutSecretTags } from "./rules/log-format.ts";
export { type Created, oldestFirst } from "./rules/oldest-first.ts";
export { gatewayNameLabel, targetGateways } from "./rules/telemetry-targets.ts";
export { meshConfigFields } from "./mesh-config/mesh-config.ts";
export { serverCredentialNames, usableCipherSuites } from "./kinds/gateway-tls.ts";
export { loadPaths, loadText, maxFileBytes } from "./load/load.ts";
export { loadPathsApart } from "./load/load-apart.ts";
export { beyondBounds } from "./documents/document-bounds.ts";
export { unreadKinds } from "./kinds/unread-kinds.ts";
export type { FieldNode, Json, Node } from "./schema/schema.ts";
export type { ParsedResource } from "./load/parse-resource.ts";
export { parseResource } from "./load/parse-resource.ts";
export {
  clusterDomain,
  hostCovers,
  hostsOverlap,
  parseServiceHost,
  resolveGateway,
  resolveHost,
  serviceHost,
} from "./rules/resolve-host.ts";
export type { PortProtocol } from "./rules/port-protocol.ts";
export { entryProtocol, isHttp, passesConnections, portProtocol } from "./rules/port-protocol.ts";
export { proxyContainers } from "./rules/injected-containers.ts";
export { nearestName } from "./findings/nearest-name.ts";
export type { AnalyzeOptions } from "./analyzers/analyzer.ts";
export { analyze, analyzers } from "./analyzers/analyze.ts";
export { renderFinding, sortFindings } from "./findings/render-finding.ts";
export type { JsonSchema } from "./kinds/json-schema.ts";
export { toJsonSchema } from "./kinds/json-schema.ts";
export type { ProxyConfig } from "./rules/proxy-config.ts";
export { readProxyConfig } from "./rules/proxy-config.ts";
export type { ExplainedInjection, Injection, InjectionInput } from "./rules/decide-injection.ts";
export { decideInjection, explainInjection, templateNames } from "./rules/decide-injection.ts";
export { memoryQuantityBytes, parseQuantity, type Quantity, quantityIn } from "./rules/quantity.ts";
export type { ParsedDocument, ParsedDocuments } from "./documents/parse-documents.ts";
export { parseDocuments } from "./documents/parse-documents.ts";
export type { EntryResolution } from "./rules/service-entries.ts";
export { allocatesAddresses, entryHosts, entryResolution } from "./rules/service-entries.ts";
export { mergesMetrics, metricsAnnotations, type MetricsAnnotations } from "./rules/metrics-annotations.ts";
