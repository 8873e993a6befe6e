// What no schema can see and a proxy would refuse: such a resource would take the whole route table or listener with
// it, so that it is found here, before it is merged with its neighbours.
import { RE2JS } from "re2js";
import { findingCodes, formatPath, keyOf, placeOf } from "@tulle/config";
import type {
  Finding,
  HttpRoute,
  Kind,
  MeshResource,
  Path,
  ResourceOf,
  StringMatch,
  VirtualService,
} from "@tulle/config";

/** Envoy adds the weights of a route up in 32 bits (envoy.config.route.v3.WeightedCluster). */
const maxTotalWeight = 4_294_967_295;

/**
 * Longest program of a regular expression, as the JavaScript port of RE2 counts it. Envoys take 32,768 steps of RE2 in
 * C++ (the agent sets Istio's re2.max_program_size.error_level), which makes up to eight of one: `\PL{20}` has 22 here,
 * 164 there.
 */
const maxRegexProgram = 32_768 / 8;

/** The one table of what is checked; the kinds that have something to check follow from it. */
const checks: { readonly [K in Kind]?: (resource: ResourceOf<K>) => readonly Finding[] } = {
  VirtualService: checkVirtualService,
};

export const checkedKinds = Object.keys(checks) as readonly Kind[];

/** The reasons to set `resource` aside; none for a good one. */
export function checkResource(resource: MeshResource): readonly Finding[] {
  // The row of a kind takes resources of that kind.
  const check = checks[resource.kind] as ((resource: MeshResource) => readonly Finding[]) | undefined;
  return check?.(resource) ?? [];
}

function checkVirtualService(resource: VirtualService): readonly Finding[] {
  return (resource.spec.http ?? []).flatMap((route, index) => {
    const path: Path = ["spec", "http", index];
    return [...checkWeights(resource, route, path), ...checkExpressions(resource, route, path)];
  });
}

function checkWeights(resource: MeshResource, route: HttpRoute, path: Path): readonly Finding[] {
  const total = (route.route ?? []).reduce((sum, { weight = 0 }) => sum + weight, 0);
  if (total <= maxTotalWeight) return [];
  const message = `the weights add up to ${total}, and proxies take ${maxTotalWeight} at most`;
  return [problem(resource, [...path, "route"], message, "Use smaller weights in the same proportion.")];
}

function checkExpressions(resource: MeshResource, route: HttpRoute, path: Path): readonly Finding[] {
  return (route.match ?? []).flatMap((match, index) => {
    const at: Path = [...path, "match", index];
    const values: readonly (readonly [Path, StringMatch | undefined])[] = [
      [[...at, "uri"], match.uri],
      [[...at, "method"], match.method],
      [[...at, "authority"], match.authority],
      [[...at, "scheme"], match.scheme],
      ...(["headers", "withoutHeaders", "queryParams"] as const).flatMap((field) =>
        Object.entries(match[field] ?? {}).map(([name, value]) => [[...at, field, name], value] as const),
      ),
    ];
    return values.flatMap(([where, value]) => {
      const size = value?.regex === undefined || value.regex === "*" ? 0 : programSize(value.regex);
      if (size <= maxRegexProgram) return [];
      const message = `the regular expression compiles to ${size} steps, more than proxies take`;
      return [problem(resource, [...where, "regex"], message, "Repeat less: {1,1000} makes a thousand copies.")];
    });
  });
}

/** Expressions stay while their resource is checked again and again; compiling one takes up to a tenth of a second. */
const programSizes = new Map<string, number>();
const maxRememberedSizes = 4096;

function programSize(expression: string): number {
  let size = programSizes.get(expression);
  if (size === undefined) {
    size = RE2JS.compile(expression).programSize();
    if (programSizes.size >= maxRememberedSizes) programSizes.clear();
    programSizes.set(expression, size);
  }
  return size;
}

function problem(resource: MeshResource, path: Path, message: string, suggestion: string): Finding {
  const place = placeOf(resource, path);
  return {
    code: "IST0106",
    severity: findingCodes.IST0106.severity,
    message,
    resource: keyOf(resource),
    path: formatPath(path),
    suggestion,
    ...(place === undefined ? {} : { place }),
  };
}
