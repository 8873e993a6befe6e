// Operators that read metadata: what control planes and filters leave beside clusters, hosts, routes and requests.
import { grpcMessagesKey, grpcMessagesText } from "../http/grpc-messages.ts";
import { withoutControlCharacters } from "../http/header-value.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { OperatorCompiler } from "./operator.ts";

type ReadMetadata = (info: StreamInfo) => unknown;

function metadataValue(root: unknown, keys: readonly string[]): unknown {
  let value = root;
  for (const key of keys) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value ?? undefined;
}

function metadataText(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === "string" ? withoutControlCharacters(value) : jsonOf(value);
}

/** Keys are sorted, as Envoy writes them. */
function jsonOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${jsonOf(each)}`).join(",")}}`;
}

/** `(namespace:key:key…)` into JSON metadata. */
function metadataOperator(read: ReadMetadata): OperatorCompiler {
  return (argument) => {
    const keys = (argument ?? "").split(":");
    if (keys[0] === "") return { error: "needs (NAMESPACE:KEY)" };
    return {
      value: (info) => metadataText(metadataValue(read(info), keys)),
      json: (info) => {
        const value = metadataValue(read(info), keys);
        return value === undefined ? undefined : jsonOf(value);
      },
      isNumber: false,
    };
  };
}

/** `(KEY)` or `(KEY:PLAIN)`: messages of a gRPC call are all that filters here leave there, and have no FIELD. */
const compileFilterState: OperatorCompiler = (argument) => {
  const [key, form = "TYPED"] = (argument ?? "").split(":");
  if (key === undefined || key === "") return { error: "needs (KEY)" };
  if (!["TYPED", "PLAIN", "FIELD"].includes(form)) return { error: "knows TYPED, PLAIN and FIELD" };
  if (key !== grpcMessagesKey || form === "FIELD") return { value: () => undefined, isNumber: false };
  return { value: ({ grpcMessages }) => grpcMessages && grpcMessagesText(grpcMessages, form), isNumber: false };
};

/** Nothing of this proxy leaves objects at an upstream connection. */
const compileUpstreamFilterState: OperatorCompiler = (argument, environment) => {
  const checked = compileFilterState(argument, environment);
  return "error" in checked ? checked : { value: () => undefined, isNumber: false };
};

const metadataSources: Readonly<Record<string, ReadMetadata>> = {
  DYNAMIC: (info) => info.dynamicMetadata,
  ROUTE: (info) => info.route?.metadata,
  VIRTUAL_HOST: ({ route, routelessHost }) => (route === undefined ? routelessHost : route.virtualHostMetadata),
  CLUSTER: (info) => info.cluster?.metadata,
  UPSTREAM_HOST: (info) => info.upstreamHost?.metadata,
  LISTENER: (info) => info.listener?.metadata,
  LISTENER_FILTER_CHAIN: (info) => info.listener?.chainMetadata,
};

/** Without keys Envoy takes the argument and says nothing. */
const compileMetadata: OperatorCompiler = (argument, environment) => {
  const [source = "", ...keys] = (argument ?? "").split(":");
  const read = metadataSources[source];
  if (read === undefined) return { error: `knows ${Object.keys(metadataSources).join(", ")}, not '${source}'` };
  return metadataOperator(read)(keys.join(":"), environment);
};

export const metadataOperators: Readonly<Record<string, OperatorCompiler>> = {
  METADATA: compileMetadata,
  DYNAMIC_METADATA: metadataOperator((info) => info.dynamicMetadata),
  CLUSTER_METADATA: metadataOperator((info) => info.cluster?.metadata),
  UPSTREAM_METADATA: metadataOperator((info) => info.upstreamHost?.metadata),
  FILTER_STATE: compileFilterState,
  UPSTREAM_FILTER_STATE: compileUpstreamFilterState,
};
