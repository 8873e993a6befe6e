/**
 * IST0167: conditions on the request's token where nothing checks tokens. Proxies know the claims of checked tokens
 * alone, so that such a condition is met by nobody and its opposite by everybody.
 */
import { policyHolds, policyScope } from "../rules/policy-scope.ts";
import type { AuthorizationPolicy } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";
import type { AnalyzedMesh, Analyzer } from "./analyzer.ts";

export const tokenConditions: Analyzer = {
  name: "token-conditions",
  codes: ["IST0167"],
  *run(mesh) {
    for (const resource of mesh.list("AuthorizationPolicy")) {
      const [path] = tokenUses(resource);
      if (path === undefined || !reachesWorkloadsWithoutTokens(mesh, resource)) continue;
      yield {
        code: "IST0167",
        resource,
        path,
        message:
          "the policy looks at tokens, and no RequestAuthentication checks them at the workloads that it holds for",
        suggestion: "Add a RequestAuthentication with the same selector.",
      };
    }
  },
};

function tokenUses({ spec }: AuthorizationPolicy): readonly Path[] {
  return (spec.rules ?? []).flatMap(({ from = [], when = [] }, rule) => {
    const at = ["spec", "rules", rule];
    const sources = from.flatMap(({ source }, index) =>
      (["requestPrincipals", "notRequestPrincipals"] as const)
        .filter((name) => (source[name] ?? []).length > 0)
        .map((name): Path => [...at, "from", index, "source", name]),
    );
    const conditions = when.flatMap(({ key }, index): readonly Path[] =>
      key.startsWith("request.auth.") ? [[...at, "when", index, "key"]] : [],
    );
    return [...sources, ...conditions];
  });
}

/** A policy for the mesh may rightly look at tokens where only some workloads have them. */
function reachesWorkloadsWithoutTokens(mesh: AnalyzedMesh, policy: AuthorizationPolicy): boolean {
  const scope = policyScope(policy);
  const held = mesh.workloads.filter((workload) => policyHolds(scope, workload));
  const checks = mesh.list("RequestAuthentication").map((each) => policyScope(each));
  return held.length > 0 && !held.some((workload) => checks.some((check) => policyHolds(check, workload)));
}
