/**
 * IST0167: what needs certificates, in a mesh whose workloads get none. Nothing is encrypted there, and connections
 * carry no identity: a condition on the calling workload is met by nobody, and its opposite by everybody.
 */
import type { AuthorizationRule } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";
import type { Analyzer } from "./analyzer.ts";

const positiveFields = ["principals", "namespaces", "serviceAccounts", "trustDomains"] as const;
const negativeFields = ["notPrincipals", "notNamespaces", "notServiceAccounts", "notTrustDomains"] as const;
const keys: ReadonlySet<string> = new Set([
  "source.principal",
  "source.namespace",
  "source.serviceAccount",
  "source.trustDomain",
]);

const runWithAuthority = "Run the control plane with its certificate authority (--xds-tls).";

interface Use {
  readonly path: Path;
  readonly isNegative: boolean;
}

export const missingAuthority: Analyzer = {
  name: "missing-authority",
  codes: ["IST0167"],
  *run(mesh) {
    if (mesh.options.hasAuthority !== false) return;
    for (const resource of mesh.list("PeerAuthentication")) {
      const { mtls, portLevelMtls = {} } = resource.spec;
      const isStrict = [mtls, ...Object.values(portLevelMtls)].some((each) => each?.mode === "STRICT");
      if (!isStrict) continue;
      yield {
        code: "IST0167",
        resource,
        path: ["spec"],
        message: "workloads get no certificates here, so ports that should be STRICT take plain text",
        suggestion: runWithAuthority,
      };
    }
    for (const resource of mesh.list("DestinationRule")) {
      const { trafficPolicy, subsets = [] } = resource.spec;
      const policies = [trafficPolicy, ...subsets.map((subset) => subset.trafficPolicy)];
      const settings = policies.flatMap((policy) => [
        policy?.tls,
        ...(policy?.portLevelSettings ?? []).map(({ tls }) => tls),
      ]);
      if (!settings.some((tls) => tls?.mode === "ISTIO_MUTUAL")) continue;
      yield {
        code: "IST0167",
        resource,
        path: ["spec"],
        message: "workloads get no certificates here, so ISTIO_MUTUAL sends plain text",
        suggestion: runWithAuthority,
      };
    }
    for (const resource of mesh.list("AuthorizationPolicy")) {
      for (const [index, rule] of (resource.spec.rules ?? []).entries()) {
        for (const { path, isNegative } of usesOf(rule)) {
          yield {
            code: "IST0167",
            resource,
            path: ["spec", "rules", index, ...path],
            message: `workloads get no certificates here, so connections tell nothing of who calls and ${isNegative ? "every" : "no"} request meets this condition`,
            suggestion: `${runWithAuthority.slice(0, -1)}, or tell callers apart by their tokens (requestPrincipals).`,
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
