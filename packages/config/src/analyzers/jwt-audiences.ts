/**
 * TUL0006: without `audiences` a workload takes every token of the issuer, those meant for another service and ID
 * tokens included: proxies do not look at a token's type (`typ`, RFC 9068 §2.1).
 */
import type { Analyzer } from "./analyzer.ts";

export const jwtAudiences: Analyzer = {
  name: "jwt-audiences",
  codes: ["TUL0006"],
  *run(mesh) {
    for (const resource of mesh.list("RequestAuthentication")) {
      for (const [index, rule] of (resource.spec.jwtRules ?? []).entries()) {
        if ((rule.audiences ?? []).length > 0) continue;
        yield {
          code: "TUL0006",
          resource,
          path: ["spec", "jwtRules", index],
          message: `the rule for ${rule.issuer} names no audiences: tokens of that issuer for any other service pass too`,
          suggestion: 'Add "audiences" with the name of this service.',
        };
      }
    }
  },
};
