// The name of a series without the values of its tags, dots and all (Envoy: `Stats::Metric::tagExtractedName`).
import type { Series } from "@tulle/telemetry";

/** `cluster.a.upstream_rq_200` with the labels of cluster and code: `cluster.upstream_rq`. */
export function tagExtractedName({ name, statName, labels }: Pick<Series, "name" | "statName" | "labels">): string {
  // Istio's have one name alone.
  if (statName === undefined) return name;
  let rest = statName;
  for (const [label, value] of Object.entries(labels)) rest = without(rest, label, value);
  // Prometheus's name is what is left, with underscores: if it is not, a tag was not where it was sought.
  return `envoy_${rest.replaceAll(/[^A-Za-z0-9_]/g, "_")}` === name ? rest : name;
}

function without(statName: string, label: string, value: string): string {
  if (label === "envoy_response_code_class") return statName.replace(`_${value}xx`, "_xx");
  if (label === "envoy_response_code") return statName.replace(`_rq_${value}`, "_rq");
  const tag = `.${value.replaceAll(":", "_")}`;
  const start = statName.indexOf(`${tag}.`);
  if (start >= 0) return statName.slice(0, start) + statName.slice(start + tag.length);
  return statName.endsWith(tag) ? statName.slice(0, -tag.length) : statName;
}
