/**
 * IST0127, IST0167: a security policy is for workloads that exist, and a proxy is there to enforce it. A policy that
 * reaches nothing looks like protection and is none.
 */
import { policyHolds, policyScope, rootNamespaces } from "../rules/policy-scope.ts";
import type { AuthorizationPolicy, PeerAuthentication, RequestAuthentication } from "../kinds/resource.ts";
import { type AnalyzedMesh, type Analyzer, type Discovery, injectionOf } from "./analyzer.ts";

export const policyWorkloads: Analyzer = {
  name: "policy-workloads",
  codes: ["IST0127", "IST0167"],
  *run(mesh) {
    for (const kind of ["AuthorizationPolicy", "RequestAuthentication", "PeerAuthentication"] as const) {
      for (const resource of mesh.list(kind)) yield* checkPolicy(mesh, resource);
    }
  },
};

type Policy = AuthorizationPolicy | RequestAuthentication | PeerAuthentication;

function* checkPolicy(mesh: AnalyzedMesh, resource: Policy): Generator<Discovery> {
  const scope = policyScope(resource);
  const held = mesh.workloads.filter((workload) => policyHolds(scope, workload));
  const path = resource.spec.selector === undefined ? ["spec"] : ["spec", "selector"];
  if (held.length === 0) {
    const labels = Object.entries(scope.matchLabels).map(([name, value]) => `${name}=${value}`);
    const where = rootNamespaces.includes(scope.namespace) ? "the mesh" : `the namespace "${scope.namespace}"`;
    const what = labels.length === 0 ? "no workload" : `no workload with the labels ${labels.join(", ")}`;
    yield {
      code: "IST0127",
      resource,
      path,
      message: `there is ${what} in ${where}, so the policy holds for nothing`,
      suggestion: "Compare the selector with the labels of the pods.",
    };
  } else if (!held.some((workload) => injectionOf(mesh, workload) !== "none")) {
    yield {
      code: "IST0167",
      resource,
      path,
      message: "no workload that the policy holds for has a proxy, so nothing enforces it",
      suggestion: "Label the namespace with tulle-injection=enabled and restart the pods.",
    };
  }
}
