// `/config_dump`: what the proxy was told and what of it serves, as Envoy prints it (admin.v3.ConfigDump).
import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { type AdminPage, type AdminResponse, type AdminTargets, json, parameter } from "./admin-page.ts";
import type { ReceivedResource, RefusedResource, ResourceRecord, ResourceRecords } from "../runtime/config-records.ts";
import { compileRe2 } from "../cel/re2.ts";

const dumpTypes = "type.googleapis.com/envoy.admin.v3.";

type Section = { readonly "@type": string } & Readonly<Record<string, unknown>>;

interface Writer {
  any<D extends DescMessage>(schema: D, message: MessageShape<D>): JsonObject;
  plain<D extends DescMessage>(schema: D, message: MessageShape<D>): JsonObject;
  readonly isWanted: (name: string) => boolean;
}

/** Schemas and the JSON writer are loaded when somebody asks: a proxy that nobody looks at never pays for them. */
async function loadWriter(isWanted: Writer["isWanted"]): Promise<Writer> {
  const { messageToJson } = await import("@tulle/xds/json");
  const plain: Writer["plain"] = (schema, message) =>
    redacted(messageToJson(schema, message, { fieldNames: "snake_case" })) as JsonObject;
  return {
    isWanted,
    plain,
    any: (schema, message) => ({ "@type": `type.googleapis.com/${schema.typeName}`, ...plain(schema, message) }),
  };
}

/** DataSources that hold what is nobody's business (the fields that Envoy's definitions call sensitive). */
const secretFields: ReadonlySet<string> = new Set(["private_key", "password", "secret", "secrets", "keys"]);

/** Base64 of `[redacted]`, as Envoy shows it. */
const redactedBytes = "W3JlZGFjdGVkXQ==";

function redacted(value: JsonValue, isSecret = false): JsonValue {
  if (Array.isArray(value)) return value.map((element) => redacted(element, isSecret));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      if (isSecret && name === "inline_bytes") return [name, redactedBytes];
      if (isSecret && name === "inline_string") return [name, "[redacted]"];
      return [name, redacted(inner, isSecret || secretFields.has(name))];
    }),
  );
}

function time(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** Empty lists and texts stay out, as in all JSON of Envoy. */
function compact(section: Section): Section {
  return Object.fromEntries(
    Object.entries(section).filter(([, value]) => value !== "" && !(Array.isArray(value) && value.length === 0)),
  ) as Section;
}

function state<M>(field: string, received: ReceivedResource<M>, write: (message: M) => JsonObject): JsonObject {
  return {
    ...(received.versionInfo !== "" && { version_info: received.versionInfo }),
    [field]: write(received.message),
    last_updated: time(received.receivedAtMs),
  };
}

function errorState<M>(refused: RefusedResource<M>, write: (message: M) => JsonObject | undefined): JsonObject {
  const failed = refused.message === undefined ? undefined : write(refused.message);
  return {
    ...(failed !== undefined && { failed_configuration: failed }),
    last_update_attempt: time(refused.refusedAtMs),
    details: refused.reason,
    version_info: refused.versionInfo,
  };
}

function wanted<M>(records: ResourceRecords<M>, writer: Writer): ResourceRecord<M>[] {
  return [...records.values()].filter((record) => writer.isWanted(record.name));
}

async function bootstrapSection({ state: server }: AdminTargets, writer: Writer): Promise<Section> {
  const { BootstrapSchema } = await import("@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb");
  return {
    "@type": `${dumpTypes}BootstrapConfigDump`,
    bootstrap: writer.plain(BootstrapSchema, server.bootstrap.message),
    last_updated: time(server.startedAtMs),
  };
}

async function clustersSection({ records }: AdminTargets, writer: Writer): Promise<Section> {
  const { ClusterSchema } = await import("@tulle/xds/envoy/config/cluster/v3/cluster_pb");
  const write = (message: MessageShape<typeof ClusterSchema>): JsonObject => writer.any(ClusterSchema, message);
  const list = wanted(records.clusters, writer);
  const dynamic = list.filter((record) => !record.isStatic);
  const one = (received: ReceivedResource<MessageShape<typeof ClusterSchema>>, refused?: object): JsonObject => ({
    ...state("cluster", received, write),
    ...refused,
  });
  return compact({
    "@type": `${dumpTypes}ClustersConfigDump`,
    version_info: records.clusters.versionInfo,
    static_clusters: list.filter((record) => record.isStatic && record.active).map((record) => one(record.active!)),
    dynamic_active_clusters: dynamic
      .filter((record) => record.active ?? (record.refused && !record.warming))
      .map((record) => {
        const refused = record.refused && { error_state: errorState(record.refused, write) };
        return record.active === undefined ? { ...refused } : one(record.active, refused);
      }),
    dynamic_warming_clusters: dynamic.filter((record) => record.warming).map((record) => one(record.warming!)),
  });
}

async function listenersSection({ records }: AdminTargets, writer: Writer): Promise<Section> {
  const { ListenerSchema } = await import("@tulle/xds/envoy/config/listener/v3/listener_pb");
  const write = (message: MessageShape<typeof ListenerSchema>): JsonObject => writer.any(ListenerSchema, message);
  const list = wanted(records.listeners, writer);
  return compact({
    "@type": `${dumpTypes}ListenersConfigDump`,
    version_info: records.listeners.versionInfo,
    static_listeners: list
      .filter((record) => record.isStatic && record.active)
      .map((record) => state("listener", record.active!, write)),
    dynamic_listeners: list
      .filter((record) => !record.isStatic)
      .map((record) => ({
        name: record.name,
        ...(record.active && { active_state: state("listener", record.active, write) }),
        ...(record.warming && { warming_state: state("listener", record.warming, write) }),
        ...(record.refused && { error_state: errorState(record.refused, write) }),
      })),
  });
}

async function routesSection({ records }: AdminTargets, writer: Writer): Promise<Section> {
  const { fromBinary } = await import("@bufbuild/protobuf");
  const { RouteConfigurationSchema } = await import("@tulle/xds/envoy/config/route/v3/route_pb");
  const write = (bytes: Uint8Array): JsonObject =>
    writer.any(RouteConfigurationSchema, fromBinary(RouteConfigurationSchema, bytes));
  /** What was refused because it is no message cannot be shown. */
  const writeRefused = (bytes: Uint8Array): JsonObject | undefined => {
    try {
      return write(bytes);
    } catch {
      return undefined;
    }
  };
  const inline = await inlineRoutes(records.listeners, writer);
  return compact({
    "@type": `${dumpTypes}RoutesConfigDump`,
    static_route_configs: inline,
    dynamic_route_configs: wanted(records.routes, writer).map((record) => ({
      ...(record.active && state("route_config", record.active, write)),
      ...(record.refused && { error_state: errorState(record.refused, writeRefused) }),
    })),
  });
}

/** Route configurations that stand in their listener. */
async function inlineRoutes(listeners: AdminTargets["records"]["listeners"], writer: Writer): Promise<JsonObject[]> {
  const { fromBinary } = await import("@bufbuild/protobuf");
  const { RouteConfigurationSchema } = await import("@tulle/xds/envoy/config/route/v3/route_pb");
  const { HttpConnectionManagerSchema } =
    await import("@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb");
  const found: JsonObject[] = [];
  for (const { active } of listeners.values()) {
    if (active === undefined) continue;
    const defaultChain = active.message.defaultFilterChain;
    const chains = [...active.message.filterChains, ...(defaultChain === undefined ? [] : [defaultChain])];
    for (const { configType } of chains.flatMap((chain) => chain.filters)) {
      if (configType.case !== "typedConfig") continue;
      if (!configType.value.typeUrl.endsWith(`/${HttpConnectionManagerSchema.typeName}`)) continue;
      const routes = fromBinary(HttpConnectionManagerSchema, configType.value.value).routeSpecifier;
      if (routes.case !== "routeConfig" || !writer.isWanted(routes.value.name)) continue;
      found.push({
        route_config: writer.any(RouteConfigurationSchema, routes.value),
        last_updated: time(active.receivedAtMs),
      });
    }
  }
  return found;
}

async function endpointsSection({ records, owner }: AdminTargets, writer: Writer): Promise<Section> {
  const { ClusterLoadAssignmentSchema } = await import("@tulle/xds/envoy/config/endpoint/v3/endpoint_pb");
  const write = (message: MessageShape<typeof ClusterLoadAssignmentSchema>): JsonObject =>
    writer.any(ClusterLoadAssignmentSchema, message);
  const fixed = [...owner.clusters()].filter((cluster) => cluster.type === "static" && writer.isWanted(cluster.name));
  return compact({
    "@type": `${dumpTypes}EndpointsConfigDump`,
    static_secrets: "SecretsConfigDump.StaticSecret",
    dynamic_active_secrets: "SecretsConfigDump.DynamicSecret",
    dynamic_warming_secrets: "SecretsConfigDump.DynamicSecret",
    static_endpoint_configs: fixed
      .map((cluster) => records.clusters.get(cluster.name)?.active?.message.loadAssignment)
      .filter((assignment) => assignment !== undefined)
      .map((assignment) => ({ endpoint_config: write(assignment) })),
    dynamic_endpoint_configs: wanted(records.endpoints, writer).map((record) => ({
      ...(record.active && state("endpoint_config", record.active, write)),
      ...(record.refused && { error_state: errorState(record.refused, write) }),
    })),
  });
}

async function secretsSection({ records }: AdminTargets, writer: Writer): Promise<Section> {
  const { SecretSchema } = await import("@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb");
  const write = (message: MessageShape<typeof SecretSchema>): JsonObject => writer.any(SecretSchema, message);
  const list = wanted(records.secrets, writer);
  return compact({
    "@type": `${dumpTypes}SecretsConfigDump`,
    static_secrets: list
      .filter((record) => record.isStatic && record.active)
      .map((record) => ({ name: record.name, secret: write(record.active!.message) })),
    dynamic_active_secrets: list
      .filter((record) => !record.isStatic && record.active)
      .map((record) => ({
        name: record.name,
        ...state("secret", record.active!, write),
        ...(record.refused && { error_state: errorState(record.refused, write) }),
      })),
    dynamic_warming_secrets: list
      .filter((record) => !record.isStatic && record.active === undefined)
      .map((record) => ({
        name: record.name,
        ...(record.refused && { error_state: errorState(record.refused, write) }),
      })),
  });
}

function refusal(body: string, status: number): AdminResponse {
  return { status, contentType: "text/plain", body };
}

export const configDumpPage: AdminPage = {
  path: "/config_dump",
  help: "dump current Envoy configs",
  parameters: [
    ["resource", "The resource to dump"],
    [
      "name_regex",
      "Dump only the currently loaded configurations whose names match the specified regex. Can be used with the resource query parameter.",
    ],
    [
      "include_eds",
      "Dump currently loaded configuration including EDS. See the response definition for more information",
    ],
  ],
  handle: async (query, targets) => {
    const pattern = parameter(query, "name_regex");
    let isWanted = (_name: string): boolean => true;
    if (pattern !== undefined) {
      try {
        const regex = compileRe2(pattern);
        isWanted = (name) => regex.matches(name);
      } catch (error) {
        return refusal(`Error while parsing name_regex from ${pattern}: ${String(error)}`, 400);
      }
    }
    if (query.has("mask")) return refusal("the mask parameter is not supported\n", 400);
    const writer = await loadWriter(isWanted);
    const resource = parameter(query, "resource");
    const withEndpoints = query.has("include_eds") || resource?.endsWith("_endpoint_configs") === true;
    const sections = [
      await bootstrapSection(targets, writer),
      await clustersSection(targets, writer),
      ...(withEndpoints ? [await endpointsSection(targets, writer)] : []),
      await listenersSection(targets, writer),
      { "@type": `${dumpTypes}ScopedRoutesConfigDump` },
      await routesSection(targets, writer),
      await secretsSection(targets, writer),
    ];
    return resource === undefined ? json({ configs: sections }) : oneResource(resource, sections);
  },
};

const repeatedFields: Readonly<Record<string, string>> = {
  static_clusters: "ClustersConfigDump.StaticCluster",
  dynamic_active_clusters: "ClustersConfigDump.DynamicCluster",
  dynamic_warming_clusters: "ClustersConfigDump.DynamicCluster",
  static_listeners: "ListenersConfigDump.StaticListener",
  dynamic_listeners: "ListenersConfigDump.DynamicListener",
  static_route_configs: "RoutesConfigDump.StaticRouteConfig",
  dynamic_route_configs: "RoutesConfigDump.DynamicRouteConfig",
  static_endpoint_configs: "EndpointsConfigDump.StaticEndpointConfig",
  dynamic_endpoint_configs: "EndpointsConfigDump.DynamicEndpointConfig",
};

/** `?resource=dynamic_listeners`: the elements of that field alone, each with its type. */
function oneResource(resource: string, sections: readonly Section[]): AdminResponse {
  if (resource === "bootstrap") {
    const bootstrap = sections[0]!["bootstrap"] as object;
    const type = "type.googleapis.com/envoy.config.bootstrap.v3.Bootstrap";
    return json({ configs: [{ "@type": type, ...bootstrap }] });
  }
  const type = repeatedFields[resource];
  if (type === undefined) return refusal(`${resource} not found in config dump`, 404);
  const elements = sections.flatMap((section) => (section[resource] as readonly object[] | undefined) ?? []);
  if (elements.length === 0) return json({});
  return json({ configs: elements.map((element) => ({ "@type": dumpTypes + type, ...element })) });
}
