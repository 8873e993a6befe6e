// The number that a query of Prometheus gives. Whom the control plane asks is the operator's to say: the mesh's
// configuration lists the addresses, and redirects are not followed.
export type FetchDocument = (
  url: string,
  timeoutMs: number,
) => Promise<{ readonly text: string } | { readonly problem: string }>;

export type QueryResult =
  | { readonly value: number }
  /** It answers, and has no such number. */
  | { readonly empty: string }
  | { readonly problem: string };

const timeoutMs = 5000;

export async function queryPrometheus(
  { address, query }: { readonly address: string; readonly query: string },
  allowed: readonly string[],
  fetch: FetchDocument,
): Promise<QueryResult> {
  if (!allowed.includes(address)) {
    return { problem: `the mesh's configuration does not list ${address} in rolloutPrometheusUrls` };
  }
  const answer = await fetch(
    `${address.replace(/\/+$/, "")}/api/v1/query?query=${encodeURIComponent(query)}`,
    timeoutMs,
  );
  if ("problem" in answer) return { problem: `${address} does not answer: ${answer.problem}` };
  return readAnswer(answer.text, address);
}

/** Prometheus' HTTP API, "Instant queries". */
function readAnswer(text: string, address: string): QueryResult {
  const strange = { problem: `${address} answers something that is no result of a query` };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return strange;
  }
  const data = field(json, "data");
  const type = field(data, "resultType");
  const result = field(data, "result");
  if (field(json, "status") !== "success" || !Array.isArray(result)) return strange;
  if (type === "vector" && result.length !== 1) {
    return { empty: `the query gives ${result.length} numbers, and one is needed` };
  }
  const sample: unknown = type === "vector" ? field(result[0], "value") : type === "scalar" ? result : undefined;
  if (!Array.isArray(sample) || typeof sample[1] !== "string" || sample[1] === "") return strange;
  const value = Number(sample[1]);
  return Number.isFinite(value) ? { value } : { empty: `the query gives ${sample[1].slice(0, 20)}` };
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}
