/**
 * MeshConfig: what holds for the mesh as a whole, as Istio has it: YAML under the key `mesh` of the ConfigMap `tulle`
 * or `istio` in a root namespace. Field list of Istio 1.31 (mesh/v1alpha1).
 */
import { webUrl } from "../schema/web-url.ts";
import { rootNamespaces } from "../rules/policy-scope.ts";
import { parseDocuments } from "../documents/parse-documents.ts";
import { check, isMapping, type Problem } from "../schema/check.ts";
import { type Format, durationOrZero, exportedNamespace, nonEmpty, quote } from "../schema/formats.ts";
import { telemetryProviderFields, telemetryProviderKinds, unreadProviderKinds } from "./telemetry-providers.ts";
import { logFormatFits, metricsVariablesFit, telemetrySettings } from "./telemetry-settings.ts";
import {
  boolean,
  enumeration,
  type Infer,
  integer,
  list,
  map,
  type Node,
  object,
  optional,
  required,
  string,
} from "../schema/schema.ts";

/** Names of the ConfigMap, the first that is there counts. */
export const meshConfigNames: readonly string[] = ["tulle", "istio"];
export const meshConfigKey = "mesh";

const status: Format = {
  name: "HTTP status",
  description: 'an HTTP status as text, such as "503"',
  check: (value) => (/^[2-5]\d\d$/.test(value) ? undefined : `${quote(value)} is no HTTP status`),
  jsonSchema: { pattern: String.raw`^[2-5]\d\d$` },
};

const absolutePath: Format = {
  name: "path",
  description: 'a path that begins with "/"',
  check: (value) => (value === "" || value.startsWith("/") ? undefined : `${quote(value)} does not begin with "/"`),
  jsonSchema: { pattern: "^(/.*)?$" },
};

const requestBody = object({
  maxRequestBytes: required(integer({ minimum: 1 }), "Bytes of the body that the authorizer gets."),
  allowPartialMessage: optional(boolean(), "Longer bodies are cut; without it they are refused with 413."),
  packAsBytes: optional(boolean(), "For gRPC: the body as bytes rather than text."),
});

const authorizerFields = {
  service: required(string(nonEmpty), "Host of the authorizer's Service, in full; `<namespace>/<host>` is taken too."),
  port: required(integer({ minimum: 1, maximum: 65_535 }), "Port of the Service."),
  timeout: optional(string(durationOrZero), "How long an answer may take; 10 minutes when missing."),
  failOpen: optional(boolean(), "Requests pass where the authorizer cannot be asked."),
  clearRouteCache: optional(boolean(), "Routes are looked for again once the authorizer has changed headers."),
  statusOnError: optional(
    string(status),
    "Status of requests about which the authorizer cannot be asked; 403 when missing.",
  ),
  includeRequestBodyInCheck: optional(requestBody, "How much of the body the authorizer sees; nothing when missing."),
} as const;

const headerNames = list(string(nonEmpty));

const httpAuthorizer = object({
  ...authorizerFields,
  pathPrefix: optional(string(absolutePath), "Stands before the request's path."),
  includeRequestHeadersInCheck: optional(
    headerNames,
    "Headers of the request that the authorizer sees; `*` at one end.",
  ),
  includeHeadersInCheck: optional(headerNames, "The older name of includeRequestHeadersInCheck."),
  includeAdditionalHeadersInCheck: optional(map(string()), "Headers that are added for the authorizer."),
  headersToUpstreamOnAllow: optional(headerNames, "Headers of the answer that the application gets."),
  headersToDownstreamOnDeny: optional(
    headerNames,
    "Headers of the answer that a refused client gets; all when missing.",
  ),
  headersToDownstreamOnAllow: optional(headerNames, "Headers of the answer that other clients get."),
});

const extensionProvider = object(
  {
    name: required(string(nonEmpty), "How policies and Telemetry resources call it."),
    envoyExtAuthzHttp: optional(httpAuthorizer, "An authorizer that speaks HTTP."),
    envoyExtAuthzGrpc: optional(object(authorizerFields), "An authorizer that speaks gRPC."),
    ...telemetryProviderFields,
  },
  { exactlyOne: [["envoyExtAuthzHttp", "envoyExtAuthzGrpc", ...telemetryProviderKinds]] },
);

const exportTo = list(string(exportedNamespace));

const parameterName: Format = {
  name: "parameter",
  description: "the name of a parameter of a query",
  check: (value) =>
    /^[^,&;=?#\s]+$/.test(value) ? undefined : `${quote(value)} cannot be the name of a parameter of a query`,
  jsonSchema: { minLength: 1 },
};

export const meshConfigFields = {
  ...telemetrySettings,
  redactedQueryParameters: optional(
    list(string(parameterName)),
    "Parameters of queries whose values stand in no access log; those of sign-ins when missing, none when empty.",
  ),
  extensionProviders: optional(
    list(extensionProvider, { uniqueBy: "name" }),
    "Services that policies may ask, and where traces, metrics and logs may go.",
  ),
  rolloutPrometheusUrls: optional(
    list(string(webUrl)),
    "Base URLs of the Prometheus servers that analyses of Rollouts may query; none when missing.",
  ),
  pathNormalization: optional(
    object({
      normalization: optional(
        enumeration(["DEFAULT", "NONE", "BASE", "MERGE_SLASHES", "DECODE_AND_MERGE_SLASHES"]),
        "BASE when missing, which DEFAULT means as well.",
      ),
    }),
    "What paths become before routes and policies look at them.",
  ),
  h2UpgradePolicy: optional(
    enumeration(["DO_NOT_UPGRADE", "UPGRADE"]),
    "Whether HTTP/1.1 between sidecars becomes HTTP/2, where each workload of a Service has one; UPGRADE when missing.",
  ),
  protocolDetectionTimeout: optional(
    string(durationOrZero),
    "How long a connection may say nothing before the server is expected to speak first; 5s when missing, 0s without end.",
  ),
  outboundTrafficPolicy: optional(
    object({ mode: optional(enumeration(["ALLOW_ANY", "REGISTRY_ONLY"]), "ALLOW_ANY when missing.") }),
    "Whether workloads reach hosts that are not of the mesh.",
  ),
  defaultServiceExportTo: optional(exportTo, "Namespaces that see a Service which does not say; all when missing."),
  defaultVirtualServiceExportTo: optional(exportTo, "The same of VirtualServices."),
  defaultDestinationRuleExportTo: optional(exportTo, "The same of DestinationRules."),
} as const;

const meshConfigSchema = object(meshConfigFields, { rules: [logFormatFits, metricsVariablesFit] });

export type MeshConfig = Infer<typeof meshConfigSchema>;
export type ExtensionProvider = NonNullable<MeshConfig["extensionProviders"]>[number];
export type HttpAuthorizerProvider = NonNullable<ExtensionProvider["envoyExtAuthzHttp"]>;
export type GrpcAuthorizerProvider = NonNullable<ExtensionProvider["envoyExtAuthzGrpc"]>;
export type PathNormalization = NonNullable<NonNullable<MeshConfig["pathNormalization"]>["normalization"]>;

/** Fields of Istio's that have no effect yet. */
const notYetFields: ReadonlySet<string> = new Set(
  `proxyListenPort proxyInboundListenPort proxyHttpPort connectTimeout tcpKeepalive ingressClass ingressService
  ingressControllerMode ingressSelector
  enableEnvoyAccessLogService inboundTrafficPolicy configSources
  enableAutoMtls trustDomain trustDomainAliases caCertificates 
  localityLbSetting dnsRefreshRate inboundClusterStatName
  outboundClusterStatName certificates thriftConfig serviceSettings verifyCertificateAtClient ca
  defaultHttpRetryPolicy meshMTLS tlsDefaults
  hboneIdleTimeout zoneAwareLbSetting serviceScopeConfigs defaultTrafficPolicy
  serviceEntryVisibility`.split(/\s+/),
);

/**
 * Fields of Istio's that narrow what is read, or say where policies for all are, with what a mesh without them does.
 */
const narrowingFields: ReadonlyMap<string, string> = new Map([
  ["discoverySelectors", "resources of every namespace are read"],
  ["rootNamespace", `policies for all workloads are those of ${rootNamespaces.join(" and ")}`],
]);

export interface ReadMeshConfig {
  /** Missing after an error. */
  readonly config?: MeshConfig;
  /** Paths are those within the text. */
  readonly problems: readonly Problem[];
}

export function readMeshConfig(text: string): ReadMeshConfig {
  const { documents, findings } = parseDocuments(text, meshConfigKey);
  if (findings.length > 0) {
    const problems = findings.map(({ message, place, severity }): Problem => {
      const where = place === undefined ? "" : ` (line ${place.line} of it)`;
      return {
        code: "IST0106",
        severity: severity === "error" ? "error" : "warning",
        path: [],
        message: message + where,
      };
    });
    return { problems };
  }
  const value = documents[0]?.value ?? {};
  if (documents.length > 1 || !isMapping(value)) {
    return {
      problems: [{ code: "IST0106", severity: "error", path: [], message: "is not YAML of fields and values" }],
    };
  }
  const known = withoutNotYet(byJsonNames(meshConfigSchema.node, value) as typeof value);
  const checked = check(meshConfigSchema.node, known.value, { unknownField: "warning" });
  const problems = [...known.problems, ...checked.problems];
  return problems.some(({ severity }) => severity === "error")
    ? { problems }
    : { config: checked.value as MeshConfig, problems };
}

/** Istio reads JSON of protobuf, where a field has its name in the message as well: `resource_detectors`. */
function byJsonNames(node: Node, value: unknown): unknown {
  if (node.type === "list") {
    return Array.isArray(value) ? value.map((each: unknown) => byJsonNames(node.items, each)) : value;
  }
  if (!isMapping(value)) return value;
  const entries = Object.entries(value);
  if (node.type === "map")
    return Object.fromEntries(entries.map(([key, each]) => [key, byJsonNames(node.values, each)]));
  if (node.type !== "object") return value;
  return Object.fromEntries(
    entries.map(([key, each]) => {
      const name = key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
      return Object.hasOwn(node.fields, name) ? [name, byJsonNames(node.fields[name]!.node, each)] : [key, each];
    }),
  );
}

/** What has no effect is pointed out and not looked at. */
function withoutNotYet(value: Readonly<Record<string, unknown>>): {
  readonly value: Readonly<Record<string, unknown>>;
  readonly problems: readonly Problem[];
} {
  const problems: Problem[] = [];
  const left = Object.entries(value).filter(([name, content]) => {
    const otherwise = narrowingFields.get(name);
    if (otherwise !== undefined) {
      const isAsItIs = name === "rootNamespace" ? rootNamespaces.includes(String(content)) : isEmptyList(content);
      if (!isAsItIs) problems.push(narrows(name, otherwise));
      return false;
    }
    if (!notYetFields.has(name)) return true;
    problems.push(notYet([name], `"${name}"`));
    return false;
  });
  const kept: Record<string, unknown> = Object.fromEntries(left);
  const { extensionProviders: providers } = kept;
  if (Array.isArray(providers)) {
    kept["extensionProviders"] = providers.filter((provider: unknown, index) => {
      const other = isMapping(provider) ? unreadProviderKinds.find((name) => provider[name] !== undefined) : undefined;
      if (other !== undefined) problems.push(notYet(["extensionProviders", index, other], `a provider of "${other}"`));
      return other === undefined;
    });
  }
  const { defaultConfig } = kept;
  if (isMapping(defaultConfig)) {
    const { tracing, proxyMetadata, gatewayTopology, ...others } = defaultConfig;
    const metadata = isMapping(proxyMetadata) ? metricsVariables(proxyMetadata, problems) : proxyMetadata;
    kept["defaultConfig"] = {
      ...(tracing === undefined ? {} : { tracing }),
      ...(metadata === undefined ? {} : { proxyMetadata: metadata }),
      ...(gatewayTopology === undefined ? {} : { gatewayTopology }),
    };
    for (const name of Object.keys(others)) problems.push(notYet(["defaultConfig", name], `"${name}"`));
  }
  return { value: kept, problems };
}

function metricsVariables(metadata: Readonly<Record<string, unknown>>, problems: Problem[]): object {
  const isRead = (name: string): boolean => name.startsWith("OTEL_");
  for (const name of Object.keys(metadata).filter((each) => !isRead(each)))
    problems.push(notYet(["defaultConfig", "proxyMetadata", name], `"${name}"`));
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => isRead(name)));
}

function notYet(path: Problem["path"], what: string): Problem {
  return { code: "TUL0001", severity: "warning", path, message: `${what} is not implemented yet and has no effect` };
}

function narrows(name: string, otherwise: string): Problem {
  const message = `"${name}" is not implemented yet, and without it ${otherwise}: the configuration is refused`;
  return { code: "TUL0001", severity: "error", path: [name], message };
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

interface ConfigMapLike {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly data?: Readonly<Record<string, string>>;
}

export function isMeshConfig({ metadata }: ConfigMapLike): boolean {
  return meshConfigNames.includes(metadata.name) && rootNamespaces.includes(metadata.namespace);
}

/** The ConfigMap that holds the mesh's configuration: the first by namespace, then by name. */
export function meshConfigMap<C extends ConfigMapLike>(configMaps: readonly C[]): C | undefined {
  for (const namespace of rootNamespaces) {
    for (const name of meshConfigNames) {
      const found = configMaps.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
      if (found?.data?.[meshConfigKey] !== undefined) return found;
    }
  }
  return undefined;
}

/** What it says; nothing when there is none. */
export function meshConfigOf(configMaps: readonly ConfigMapLike[]): MeshConfig {
  const text = meshConfigMap(configMaps)?.data?.[meshConfigKey];
  return (text === undefined ? undefined : readMeshConfig(text).config) ?? {};
}

/** The host of a provider's Service, whose namespace may stand before it. */
export function providerHost(service: string): string {
  return service.slice(service.indexOf("/") + 1).toLowerCase();
}
