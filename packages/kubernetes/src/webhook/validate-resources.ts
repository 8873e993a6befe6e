// What the API server is told of a resource of the mesh: refused is what it shows by itself, and what depends on other
// objects, which may come later, is a warning.
import { isDeepStrictEqual } from "node:util";
import {
  type Finding,
  isKind,
  keyOf,
  keyText,
  kindDefinitions,
  type MeshResource,
  parseResource,
  type Store,
} from "@tulle/config";
import type { MetricRegistry } from "@tulle/telemetry";
import type { AdmissionAnswer, AdmissionRequest } from "./admission-review.ts";

export interface ValidateResourcesOptions {
  readonly store: Pick<Store, "all">;
  /** What no schema can see, and would spoil more than the resource itself. */
  readonly check: (resource: MeshResource) => readonly Finding[];
  /** Of all resources as a whole. */
  readonly analyze: (resources: readonly MeshResource[]) => readonly Finding[];
  readonly metrics: MetricRegistry;
  /** Milliseconds; `performance.now` unless told. */
  readonly elapsedMs?: () => number;
}

/** A mesh that is larger is analyzed when somebody asks for it, not for each change. */
const mostAnalyzed = 20_000;
/**
 * What analyzing may take: any pod may ask, and while one question is answered nobody else is, no proxy and no API
 * server. Beyond it there are no warnings about others.
 */
const analysisBudget = { burstMs: 2000, share: 0.1 } as const;

export function validateResources(options: ValidateResourcesOptions): (request: AdmissionRequest) => AdmissionAnswer {
  const { elapsedMs = () => performance.now() } = options;
  const budget = new TimeBudget(elapsedMs);
  const count = validationMetrics(options.metrics);
  return ({ object, oldObject, operation }) => {
    const { resource, findings } = parseResource(object);
    const own = [...findings, ...(resource === undefined ? [] : options.check(resource))];
    const errors = own.filter(({ severity }) => severity === "error");
    const others = own.filter(({ severity }) => severity !== "error");
    // Labels, finalizers and the like: whoever cleans up is not stopped by what was there before.
    const isSpecSame = operation === "UPDATE" && isDeepStrictEqual(object["spec"], oldObject?.["spec"]);
    const isRefused = errors.length > 0 && !isSpecSame;
    count(object["kind"], isRefused);
    if (isRefused) return { refusal: errors.map(lineOf).join("\n"), warnings: others.map(lineOf) };
    const among = resource === undefined || isSpecSame ? [] : budget.spend(() => findingsAmong(options, resource));
    return { warnings: [...errors, ...others, ...among].map(lineOf) };
  };
}

/** By Istio's names (pkg/webhooks/validation/server/monitoring.go), as of those that come by the API of our own. */
function validationMetrics(metrics: MetricRegistry): (kind: unknown, isRefused: boolean) => void {
  return (kind, isRefused) => {
    // Labels are the mesh's own words, and never those of who asks.
    if (typeof kind !== "string" || !isKind(kind)) return;
    const { apiVersions, plural: resource } = kindDefinitions[kind];
    const [version = "", group = ""] = apiVersions[0]!.split("/").toReversed();
    const labels = { group, version, resource };
    const refused = {
      name: "galley_validation_failed",
      help: "Resources that were refused.",
      labels: { ...labels, reason: "invalid_resource" },
    };
    const passed = { name: "galley_validation_passed", help: "Resources that passed their check.", labels };
    metrics.counter(isRefused ? refused : passed).increment();
  };
}

class TimeBudget {
  readonly #elapsedMs: () => number;
  #leftMs: number = analysisBudget.burstMs;
  #sinceMs: number;

  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
    this.#sinceMs = elapsedMs();
  }

  /** Nothing where it is used up. One that takes longer than what is left is paid for later. */
  spend<T>(work: () => readonly T[]): readonly T[] {
    const beginMs = this.#elapsedMs();
    const gainedMs = (beginMs - this.#sinceMs) * analysisBudget.share;
    this.#leftMs = Math.min(analysisBudget.burstMs, this.#leftMs + gainedMs);
    this.#sinceMs = beginMs;
    if (this.#leftMs <= 0) return [];
    try {
      return work();
    } finally {
      this.#sinceMs = this.#elapsedMs();
      this.#leftMs -= this.#sinceMs - beginMs;
    }
  }
}

function findingsAmong({ store, analyze }: ValidateResourcesOptions, resource: MeshResource): readonly Finding[] {
  const all = store.all();
  if (all.length > mostAnalyzed) return [];
  const key = keyText(keyOf(resource));
  const others = all.filter((each) => keyText(keyOf(each)) !== key);
  const ofIt = (finding: Finding): boolean => finding.resource !== undefined && keyText(finding.resource) === key;
  return analyze([...others, resource]).filter((finding) => ofIt(finding) && finding.severity !== "info");
}

function lineOf({ code, path, message, suggestion }: Finding): string {
  const where = path === undefined ? "" : `${path}: `;
  return `[${code}] ${where}${message}${suggestion === undefined ? "" : `. ${suggestion}`}`;
}
