/**
 * IST0167: rules about requests at ports that have none. There a rule of ALLOW that asks about requests is left out,
 * and one of the other actions is judged without what it asks, so that it denies or marks more than it says (as in
 * Istio).
 */
import { headerOfKey } from "../kinds/authorization-keys.ts";
import { policyHolds, policyScope } from "../rules/policy-scope.ts";
import { isHttp, portProtocol } from "../rules/port-protocol.ts";
import type { AuthorizationPolicy, AuthorizationRule } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";
import { isBehind } from "../rules/label-selector.ts";
import type { AnalyzedMesh, Analyzer } from "./analyzer.ts";

export const connectionPolicies: Analyzer = {
  name: "connection-policies",
  codes: ["IST0167"],
  *run(mesh) {
    for (const resource of mesh.list("AuthorizationPolicy")) {
      const ports = connectionPorts(mesh, resource);
      if (ports.length === 0) continue;
      const { action = "ALLOW", rules = [] } = resource.spec;
      const outcome =
        action === "ALLOW"
          ? "the rule is left out there and allows nothing"
          : "there the rule is judged without this, and matches more than it says";
      for (const [index, rule] of rules.entries()) {
        const [path] = requestUses(rule);
        const port = ports.find(({ targetPort }) => !isElsewhere(rule, targetPort));
        if (path === undefined || port === undefined) continue;
        yield {
          code: "IST0167",
          resource,
          path: ["spec", "rules", index, ...path],
          message: `this is about requests, and port ${port.number} of the Service "${port.service}" speaks ${port.protocol}: ${outcome}`,
          suggestion:
            "Give the rule the ports that it is for (to: operation: ports), and the others rules of their own.",
        };
      }
    }
  },
};

interface ConnectionPort {
  readonly service: string;
  readonly number: number;
  readonly targetPort: number | string;
  readonly protocol: string;
}

/** Ports without requests of the workloads that the policy holds for. */
function connectionPorts(mesh: AnalyzedMesh, policy: AuthorizationPolicy): readonly ConnectionPort[] {
  const scope = policyScope(policy);
  const held = mesh.workloads.filter((workload) => policyHolds(scope, workload));
  return mesh.list("Service").flatMap((service) => {
    if (!held.some((workload) => isBehind(service, workload))) return [];
    return service.spec.ports.flatMap((port): readonly ConnectionPort[] => {
      const protocol = portProtocol(port);
      if (isHttp(protocol) || protocol === "udp") return [];
      return [
        { service: service.metadata.name, number: port.port, targetPort: port.targetPort ?? port.port, protocol },
      ];
    });
  });
}

/** Whether the rule names ports, and not this one; which number a named port has is the workload's to say. */
function isElsewhere({ to = [] }: AuthorizationRule, targetPort: number | string): boolean {
  if (to.length === 0 || typeof targetPort !== "number") return false;
  return to.every(({ operation: { ports = [], notPorts = [] } }) => {
    const own = String(targetPort);
    return (ports.length > 0 && !ports.includes(own)) || notPorts.includes(own);
  });
}

const sourceFields = ["requestPrincipals", "notRequestPrincipals"] as const;
const operationFields = ["hosts", "notHosts", "methods", "notMethods", "paths", "notPaths"] as const;

function requestUses({ from = [], to = [], when = [] }: AuthorizationRule): readonly Path[] {
  const sources = from.flatMap(({ source }, index) =>
    sourceFields.filter((name) => (source[name] ?? []).length > 0).map((name): Path => ["from", index, "source", name]),
  );
  const operations = to.flatMap(({ operation }, index) =>
    operationFields
      .filter((name) => (operation[name] ?? []).length > 0)
      .map((name): Path => ["to", index, "operation", name]),
  );
  const conditions = when.flatMap(({ key }, index): readonly Path[] =>
    key.startsWith("request.auth.") || headerOfKey(key) !== undefined ? [["when", index, "key"]] : [],
  );
  return [...sources, ...operations, ...conditions];
}
