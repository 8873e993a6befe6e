/** `@tulle/config`: the mesh's resources – their schemas and types, loading, checking and analysing them, and the store. */
export type { Finding, FindingCode, Place, Severity } from "./finding.ts";
export { findingCodes, findingPages } from "./finding.ts";
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
  HttpMatch,
  HttpRoute,
  JwtRule,
  MeshResource,
  Namespace,
  PeerAuthentication,
  Pod,
  RequestAuthentication,
  ResourceKey,
  ResourceOf,
  Retries,
  Secret,
  Service,
  ServiceAccount,
  ServicePort,
  Subset,
  TcpRoute,
  TlsRoute,
  TrafficPolicy,
  VirtualService,
  WeightedDestination,
} from "./resource.ts";
export { defaultNamespace, effectiveNamespace, keyOf, keyText, sameContent } from "./resource.ts";
export type { ObjectMeta } from "./kinds/metadata.ts";
export type { Container, PodSpec, Probe } from "./kinds/pod-spec.ts";
export type { StringMatch } from "./kinds/http-route.ts";
export type { Kind } from "./kinds/kinds.ts";
export { findKind, isKind, kindDefinitions, kinds } from "./kinds/kinds.ts";
export { serviceNameLabel } from "./kinds/endpoint-slice.ts";
export { claimPath, headerOfKey } from "./kinds/authorization-keys.ts";
export { routedClaim } from "./schema/formats.ts";
export { isPathTemplate } from "./kinds/authorization-formats.ts";
export { splitIpBlock } from "./schema/ip-block.ts";
export type { AuthorityCredential, ReadCredential, ServerCredential } from "./credentials.ts";
export {
  authoritiesSuffix,
  authorityCredential,
  concealSecrets,
  localhostSecret,
  serverCredential,
} from "./credentials.ts";
export { secretKeys, secretValue, tlsSecretType } from "./kinds/secret.ts";
export type { JsonWebKeySet } from "./json-web-key-set.ts";
export { parseKeySet } from "./json-web-key-set.ts";
export type { MutualTlsMode, MutualTlsModes, PeerAuthenticationScope } from "./mutual-tls-mode.ts";
export { modeOfPort, mutualTlsModes, peerAuthenticationScope } from "./mutual-tls-mode.ts";
export type { Exported } from "./export-to.ts";
export { exportedTo, isExportedTo, serviceExportTo } from "./export-to.ts";
export type { PolicyScope } from "./policy-scope.ts";
export { isDryRun, policyHolds, policyScope, rootNamespaces } from "./policy-scope.ts";
export type { PlaceTable } from "./places.ts";
export { attachPlaces, formatPath, placeOf, placesOf } from "./places.ts";
export type {
  ExtensionProvider,
  GrpcAuthorizerProvider,
  HttpAuthorizerProvider,
  MeshConfig,
  PathNormalization,
} from "./mesh-config/mesh-config.ts";
export { meshConfigOf, providerHost } from "./mesh-config/mesh-config.ts";
export type { Path } from "./schema/schema.ts";
export { parseDuration } from "./schema/duration.ts";
export type {
  ApplyResult,
  DeleteOptions,
  Store,
  StoreChange,
  StoreListener,
  StoreRefusalReason,
  Unwatch,
} from "./store.ts";
export { StoreRefusal } from "./store.ts";
export type {
  ApplyRequest,
  ApplyResponse,
  DeleteResponse,
  ErrorResponse,
  FindingsResponse,
  ListResponse,
  WatchEvent,
} from "./api.ts";
export {
  apiPort,
  apiSocketName,
  bookmarkIntervalMs,
  findingsPath,
  gracePeriodParameter,
  kindPath,
  maxApplyBodyBytes,
  noNamespaceSegment,
  parseResourcePath,
  resourcePath,
  resourcesPath,
  watchContentType,
  watchPath,
} from "./api.ts";
export type { MemoryStoreOptions } from "./memory-store.ts";
export { MemoryStore, defaultHistoryChanges } from "./memory-store.ts";
export type { ApiClientOptions, ApiEndpoint, ApplyAnswer } from "./api-client.ts";
export { ApiClient, ApiError, controlPlaneName } from "./api-client.ts";
export type { ResourceWatch, ResourceWatchOptions } from "./resource-watch.ts";
export type { Loaded } from "./load.ts";
export { defaultRedactedParameters } from "./mesh-config/mesh-config.ts";
export { serverCredentialNames, usableCipherSuites } from "./kinds/gateway-tls.ts";
export { loadPaths, loadText, maxFileBytes } from "./load.ts";
export { loadPathsApart } from "./load-apart.ts";
export { beyondBounds } from "./document-bounds.ts";
export { unreadKinds } from "./kinds/unread-kinds.ts";
export type { FieldNode, Node } from "./schema/schema.ts";
export type { ParsedResource } from "./parse-resource.ts";
export { parseResource } from "./parse-resource.ts";
export {
  clusterDomain,
  hostCovers,
  hostsOverlap,
  parseServiceHost,
  resolveGateway,
  resolveHost,
  serviceHost,
} from "./resolve-host.ts";
export type { PortProtocol } from "./port-protocol.ts";
export { isHttp, portProtocol } from "./port-protocol.ts";
export { nearestName } from "./nearest-name.ts";
export type { AnalyzeOptions } from "./analyzers/analyzer.ts";
export { analyze, analyzers } from "./analyze.ts";
export type { RenderOptions } from "./render-finding.ts";
export { renderFinding, sortFindings } from "./render-finding.ts";
export type { JsonSchema } from "./schema/json-schema.ts";
export { toJsonSchema } from "./schema/json-schema.ts";
export type { ProxyConfig } from "./proxy-config.ts";
export { readProxyConfig } from "./proxy-config.ts";
export type { Injection, InjectionInput } from "./decide-injection.ts";
export { decideInjection } from "./decide-injection.ts";
