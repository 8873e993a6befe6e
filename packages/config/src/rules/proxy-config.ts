// What a pod's annotation `proxy.istio.io/config` says of its own proxy (Istio: ProxyConfig, in YAML). Whoever starts
// the proxy asks here.
import { parseDocuments } from "../documents/parse-documents.ts";
import { type GatewayTopology, gatewayTopology } from "./gateway-topology.ts";
import { check, isMapping } from "../schema/check.ts";
import { parseDuration } from "../schema/duration.ts";

export const proxyConfigAnnotations = ["proxy.tulle.io/config", "proxy.istio.io/config"] as const;

export interface ProxyConfig {
  /** How long requests may go on after the proxy was told to end (Istio: `terminationDrainDuration`). */
  readonly terminationDrainMs?: number;
  /** How long connections of a listener that was removed or changed may go on (Istio: `drainDuration`). */
  readonly drainMs?: number;
  /** What stands between clients and the proxy of a gateway. */
  readonly gatewayTopology?: GatewayTopology;
  /** Threads for requests. Read on a cluster alone, as what follows is. */
  readonly concurrency?: number;
  readonly holdApplicationUntilProxyStarts?: boolean;
  readonly interceptionMode?: "REDIRECT" | "TPROXY";
  /** Environment of the proxy. */
  readonly proxyMetadata?: Readonly<Record<string, string>>;
  /** What of it has no effect, one sentence each. */
  readonly problems: readonly string[];
  /** Those of them that are wrong, and not only unknown here. */
  readonly wrong?: readonly string[];
}

const durations = new Map([
  ["terminationDrainDuration", "terminationDrainMs"],
  ["drainDuration", "drainMs"],
] as const);

const containerFields = {
  concurrency: {
    fits: (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 256,
    expected: "a whole number from 0 to 256",
  },
  holdApplicationUntilProxyStarts: { fits: (value: unknown) => typeof value === "boolean", expected: "true or false" },
  interceptionMode: {
    fits: (value: unknown) => value === "REDIRECT" || value === "TPROXY",
    expected: "REDIRECT or TPROXY",
  },
  proxyMetadata: {
    fits: (value: unknown) => isMapping(value) && Object.values(value).every((each) => typeof each === "string"),
    expected: "names with a text each",
  },
} as const;

/** On a cluster the proxy is a container, and more of it can be chosen. */
export type ProxyPlatform = "laptop" | "kubernetes";

export function readProxyConfig(
  annotations: Readonly<Record<string, string>>,
  platform: ProxyPlatform = "laptop",
): ProxyConfig {
  const name = proxyConfigAnnotations.find((each) => annotations[each] !== undefined);
  if (name === undefined) return { problems: [] };
  if (annotations[name]!.length > maxCharacters)
    return nothingOf(`the annotation ${name} has more than ${maxCharacters} characters`);
  const { documents, findings } = parseDocuments(annotations[name]!, name);
  const value = documents[0]?.value ?? {};
  if (findings.length > 0 || documents.length > 1 || !isMapping(value))
    return nothingOf(`the annotation ${name} is not YAML of fields and values`);
  const config: { -readonly [Field in keyof ProxyConfig]: ProxyConfig[Field] } = { problems: [] };
  const problems: string[] = [];
  const wrong: string[] = [];
  for (const [field, content] of Object.entries(value)) {
    if (field === "gatewayTopology") {
      const checked = check(gatewayTopology.node, content, { unknownField: "warning" });
      (checked.failed ? wrong : problems).push(
        ...checked.problems.map(
          ({ path, message }) => `${[field, ...path].join(".")} of the annotation ${name}: ${message}`,
        ),
      );
      if (!checked.failed) config.gatewayTopology = checked.value as GatewayTopology;
      continue;
    }
    if (platform === "kubernetes" && Object.hasOwn(containerFields, field)) {
      const read = containerFields[field as keyof typeof containerFields];
      if (read.fits(content)) Object.assign(config, { [field]: content });
      else wrong.push(`${field} of the annotation ${name} is not ${read.expected}`);
      continue;
    }
    const target = durations.get(field as "drainDuration");
    const durationMs = typeof content === "string" ? parseDuration(content) : undefined;
    if (target === undefined) problems.push(`${field} of the annotation ${name} has no effect yet`);
    else if (durationMs === undefined) wrong.push(`${field} of the annotation ${name} is no duration such as 10s`);
    else config[target] = durationMs;
  }
  return { ...config, problems: [...problems, ...wrong], ...(wrong.length === 0 ? {} : { wrong }) };
}

/** Far more than all that can be said, and no work to read. */
const maxCharacters = 16_384;

function nothingOf(problem: string): ProxyConfig {
  return { problems: [problem], wrong: [problem] };
}
