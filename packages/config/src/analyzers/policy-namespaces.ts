/**
 * IST0101: the namespaces of callers that an AuthorizationPolicy names are there. Only a warning: the policy holds
 * without them, and matches nobody by that name.
 */
import { nearestName } from "../findings/nearest-name.ts";
import type { AuthorizationPolicy } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";
import type { Analyzer } from "./analyzer.ts";

export const policyNamespaces: Analyzer = {
  name: "policy-namespaces",
  codes: ["IST0101"],
  *run(mesh) {
    const known = new Set([
      ...mesh.list("Namespace").map(({ metadata }) => metadata.name),
      // A namespace need not be written down to have pods.
      ...mesh.workloads.map(({ namespace }) => namespace),
    ]);
    for (const resource of mesh.list("AuthorizationPolicy")) {
      for (const { name, path } of callersOf(resource)) {
        if (known.has(name) || (name.includes("*") && [...known].some((each) => fits(name, each)))) continue;
        const near = nearestName(name, known);
        yield {
          code: "IST0101",
          severity: "warning",
          resource,
          path,
          message: name.includes("*") ? `no namespace is called "${name}"` : `namespace "${name}" not found`,
          suggestion: near === undefined ? "Add that Namespace." : `Did you mean "${near}"?`,
        };
      }
    }
  },
};

/** Without an expression: one with many stars could take for ever. */
function fits(pattern: string, name: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop() ?? "";
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - at >= last.length && name.endsWith(last);
}

function callersOf({ spec }: AuthorizationPolicy): readonly { readonly name: string; readonly path: Path }[] {
  return (spec.rules ?? []).flatMap(({ from = [] }, rule) =>
    from.flatMap(({ source }, index) =>
      (["namespaces", "notNamespaces"] as const).flatMap((field) =>
        (source[field] ?? []).map((name, position) => ({
          name,
          path: ["spec", "rules", rule, "from", index, "source", field, position],
        })),
      ),
    ),
  );
}
