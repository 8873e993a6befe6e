// What no schema can see and a proxy would refuse: such a resource would take the whole route table or listener with it, so
// that it is found here, before it is merged with its neighbours.
import { findingCodes, formatPath, keyOf, placeOf } from "@tulle/config";
import type { Finding, HttpRoute, Kind, MeshResource, Path } from "@tulle/config";

/** Envoy adds the weights of a route up in 32 bits (envoy.config.route.v3.WeightedCluster). */
const maxTotalWeight = 4_294_967_295;

/** Kinds that have something to check. */
export const checkedKinds: readonly Kind[] = ["VirtualService"];

/** The reasons to set `resource` aside; none for a good one. */
export function checkResource(resource: MeshResource): readonly Finding[] {
  if (resource.kind !== "VirtualService") return [];
  return (resource.spec.http ?? []).flatMap((route, index) => checkRoute(resource, route, ["spec", "http", index]));
}

function checkRoute(resource: MeshResource, route: HttpRoute, path: Path): readonly Finding[] {
  const total = (route.route ?? []).reduce((sum, { weight = 0 }) => sum + weight, 0);
  if (total <= maxTotalWeight) return [];
  const message = `the weights add up to ${total}, and proxies take ${maxTotalWeight} at most; the resource is set aside`;
  return [problem(resource, [...path, "route"], message, "Use smaller weights in the same proportion.")];
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
