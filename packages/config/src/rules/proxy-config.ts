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
  /** What of it has no effect, one sentence each. */
  readonly problems: readonly string[];
}

const durations = new Map([
  ["terminationDrainDuration", "terminationDrainMs"],
  ["drainDuration", "drainMs"],
] as const);

export function readProxyConfig(annotations: Readonly<Record<string, string>>): ProxyConfig {
  const name = proxyConfigAnnotations.find((each) => annotations[each] !== undefined);
  if (name === undefined) return { problems: [] };
  const { documents, findings } = parseDocuments(annotations[name]!, name);
  const value = documents[0]?.value ?? {};
  if (findings.length > 0 || documents.length > 1 || !isMapping(value))
    return { problems: [`the annotation ${name} is not YAML of fields and values`] };
  const config: { terminationDrainMs?: number; drainMs?: number; gatewayTopology?: GatewayTopology } = {};
  const problems: string[] = [];
  for (const [field, content] of Object.entries(value)) {
    if (field === "gatewayTopology") {
      const checked = check(gatewayTopology.node, content, { unknownField: "warning" });
      problems.push(
        ...checked.problems.map(
          ({ path, message }) => `${[field, ...path].join(".")} of the annotation ${name}: ${message}`,
        ),
      );
      if (!checked.failed) config.gatewayTopology = checked.value as GatewayTopology;
      continue;
    }
    const target = durations.get(field as "drainDuration");
    const durationMs = typeof content === "string" ? parseDuration(content) : undefined;
    if (target === undefined) problems.push(`${field} of the annotation ${name} has no effect yet`);
    else if (durationMs === undefined) problems.push(`${field} of the annotation ${name} is no duration such as 10s`);
    else config[target] = durationMs;
  }
  return { ...config, problems };
}
