/**
 * IST0167: conditions on who the calling workload is, in a mesh whose workloads get no certificates. Connections carry no identity
 * there, so that such a condition is met by nobody and its opposite by everybody.
 */
import type { AuthorizationRule } from "../resource.ts";
import type { Path } from "../schema/schema.ts";
import type { Analyzer } from "./analyzer.ts";

const positiveFields = ["principals", "namespaces", "serviceAccounts"] as const;
const negativeFields = ["notPrincipals", "notNamespaces", "notServiceAccounts"] as const;
const keys: ReadonlySet<string> = new Set(["source.principal", "source.namespace", "source.serviceAccount"]);

interface Use {
  readonly path: Path;
  readonly isNegative: boolean;
}

export const peerIdentities: Analyzer = {
  name: "peer-identities",
  codes: ["IST0167"],
  *run(mesh) {
    if (mesh.options.hasAuthority !== false) return;
    for (const resource of mesh.list("AuthorizationPolicy")) {
      for (const [index, rule] of (resource.spec.rules ?? []).entries()) {
        for (const { path, isNegative } of usesOf(rule)) {
          yield {
            code: "IST0167",
            resource,
            path: ["spec", "rules", index, ...path],
            message: `workloads get no certificates here, so connections tell nothing of who calls and ${isNegative ? "every" : "no"} request meets this condition`,
            suggestion:
              "Run the control plane with its certificate authority (--xds-tls), or tell callers apart by their tokens (requestPrincipals).",
          };
        }
      }
    }
  },
};

function usesOf({ from = [], when = [] }: AuthorizationRule): readonly Use[] {
  const inSources = from.flatMap(({ source }, index) => {
    const use = (name: string, isNegative: boolean): Use => ({ path: ["from", index, "source", name], isNegative });
    return [
      ...positiveFields.filter((name) => (source[name] ?? []).length > 0).map((name) => use(name, false)),
      ...negativeFields.filter((name) => (source[name] ?? []).length > 0).map((name) => use(name, true)),
    ];
  });
  const inConditions = when.flatMap(({ key, values = [], notValues = [] }, index): readonly Use[] => {
    if (!keys.has(key)) return [];
    return [
      ...(values.length === 0 ? [] : [{ path: ["when", index, "values"], isNegative: false }]),
      ...(notValues.length === 0 ? [] : [{ path: ["when", index, "notValues"], isNegative: true }]),
    ];
  });
  return [...inSources, ...inConditions];
}
