/**
 * IST0149: routes by claims of a token work where the gateway checks tokens: a RequestAuthentication has to hold for
 * each of its workloads, or no request would ever have claims. A VirtualService for the mesh may have no such route.
 */
import { policyHolds, policyScope } from "../rules/policy-scope.ts";
import { resolveGateway } from "../rules/resolve-host.ts";
import type { VirtualService } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";
import type { AnalyzedMesh, Analyzer } from "./analyzer.ts";

export const claimRouting: Analyzer = {
  name: "claim-routing",
  codes: ["IST0149"],
  *run(mesh) {
    for (const resource of mesh.list("VirtualService")) {
      const uses = claimUses(resource);
      if (uses.length === 0) continue;
      for (const name of resource.spec.gateways ?? []) {
        const gateway = resolveGateway(name, resource.metadata.namespace);
        if (isAuthenticated(mesh, gateway)) continue;
        for (const path of uses) {
          yield {
            code: "IST0149",
            resource,
            path,
            message: `the route looks at claims, and no RequestAuthentication holds for the workloads of the gateway "${gateway}"`,
            suggestion: "Add one in the namespace of the gateway's pods, with their labels as selector.",
          };
        }
      }
    }
  },
};

function claimUses({ spec }: VirtualService): readonly Path[] {
  return (spec.http ?? []).flatMap(({ match = [] }, route) =>
    match.flatMap((conditions, index) =>
      (["headers", "withoutHeaders"] as const).flatMap((field) =>
        Object.keys(conditions[field] ?? {})
          .filter((name) => name.startsWith("@"))
          .map((name): Path => ["spec", "http", route, "match", index, field, name]),
      ),
    ),
  );
}

/** A gateway that is not there has a finding of its own. */
function isAuthenticated(mesh: AnalyzedMesh, name: string): boolean {
  const gateway = mesh.gateways.get(name);
  if (gateway === undefined) return true;
  const scopes = mesh.list("RequestAuthentication").map((policy) => policyScope(policy));
  return mesh.workloadsOf(gateway).every((workload) => scopes.some((scope) => policyHolds(scope, workload)));
}
