/**
 * PeerAuthentications that do less than they say. IST0167: one with a selector in a root namespace, one for gateways
 * alone, a mode for a port that no chosen workload has. TUL0008: of two for the same workloads, the older one counts.
 */
import { rootNamespaces } from "../rules/policy-scope.ts";
import { peerAuthenticationScope } from "../rules/mutual-tls-mode.ts";
import type { PeerAuthentication } from "../kinds/resource.ts";
import { isBehind, selects } from "../rules/label-selector.ts";
import { type AnalyzedMesh, type Analyzer, type Discovery, injectionOf, type Workload } from "./analyzer.ts";

export const peerAuthentications: Analyzer = {
  name: "peer-authentications",
  codes: ["IST0167", "TUL0008"],
  *run(mesh) {
    const older: PeerAuthentication[] = [];
    for (const resource of mesh.list("PeerAuthentication")) {
      const conflict = older.find((each) => isForSame(mesh, each, resource));
      older.push(resource);
      const ineffective = reasonToHaveNoEffect(mesh, resource);
      if (ineffective !== undefined) yield { code: "IST0167", resource, ...ineffective };
      else if (conflict !== undefined) yield conflictOf(resource, conflict);
      else yield* unknownPorts(mesh, resource);
    }
  },
};

/** Selectors are compared by whom they choose: two different ones may meet in a workload. */
function isForSame(mesh: AnalyzedMesh, one: PeerAuthentication, other: PeerAuthentication): boolean {
  const [a, b] = [peerAuthenticationScope(one), peerAuthenticationScope(other)];
  const isRoot = ({ namespace }: { readonly namespace: string }): boolean => rootNamespaces.includes(namespace);
  if (a.namespace !== b.namespace && !(isRoot(a) && isRoot(b))) return false;
  const isForAll = Object.keys(a.matchLabels).length === 0;
  if (isForAll !== (Object.keys(b.matchLabels).length === 0)) return false;
  return isForAll || chosen(mesh, one).some((workload) => selects(b.matchLabels, workload.labels));
}

function chosen(mesh: AnalyzedMesh, resource: PeerAuthentication): readonly Workload[] {
  const { namespace, matchLabels } = peerAuthenticationScope(resource);
  return mesh.workloads.filter((each) => each.namespace === namespace && selects(matchLabels, each.labels));
}

function reasonToHaveNoEffect(
  mesh: AnalyzedMesh,
  resource: PeerAuthentication,
): Pick<Discovery, "path" | "message" | "suggestion"> | undefined {
  const { namespace, matchLabels } = peerAuthenticationScope(resource);
  if (Object.keys(matchLabels).length === 0) return undefined;
  const path = ["spec", "selector"];
  if (rootNamespaces.includes(namespace)) {
    const message = `a PeerAuthentication in "${namespace}" is for the whole mesh: one with a selector holds for nothing`;
    return { path, message, suggestion: "Leave the selector out, or move the policy to the workloads' namespace." };
  }
  const workloads = chosen(mesh, resource);
  if (workloads.length === 0 || !workloads.every((each) => injectionOf(mesh, each) === "gateway")) return undefined;
  const message = "the chosen workloads are gateways, whose TLS is that of their Gateway resources";
  return { path, message, suggestion: "Set servers.tls in the Gateway." };
}

function conflictOf(resource: PeerAuthentication, older: PeerAuthentication): Discovery {
  const { namespace, name } = older.metadata;
  const isForAll = Object.keys(peerAuthenticationScope(resource).matchLabels).length === 0;
  return {
    code: "TUL0008",
    resource,
    path: isForAll ? ["spec"] : ["spec", "selector"],
    message: `the PeerAuthentication ${namespace}/${name} is for the same workloads and older, so this one has no effect on them`,
    suggestion: "Keep one of the two.",
  };
}

/** Ports that a chosen workload declares, or that a Service leads to. */
function* unknownPorts(mesh: AnalyzedMesh, resource: PeerAuthentication): Generator<Discovery> {
  const workloads = chosen(mesh, resource);
  if (workloads.length === 0) return;
  const known = new Set(workloads.flatMap((workload) => portsOf(mesh, workload)));
  for (const port of Object.keys(resource.spec.portLevelMtls ?? {})) {
    if (known.has(Number(port))) continue;
    yield {
      code: "IST0167",
      resource,
      path: ["spec", "portLevelMtls", port],
      message: `no chosen workload listens on port ${port}`,
      suggestion: `Write the port of the pods, not of their Service; known are ${[...known].sort((a, b) => a - b).join(", ") || "none"}.`,
    };
  }
}

function portsOf(mesh: AnalyzedMesh, workload: Workload): readonly number[] {
  const { resource } = workload;
  const { containers } = resource.kind === "Pod" ? resource.spec : resource.spec.template.spec;
  const declared = containers.flatMap(({ ports = [] }) => ports);
  const served = mesh
    .list("Service")
    .filter((service) => isBehind(service, workload))
    .flatMap(({ spec }) => spec.ports)
    .flatMap(({ port, targetPort = port }) => {
      if (typeof targetPort === "number") return [targetPort];
      return declared.filter(({ name }) => name === targetPort).map(({ containerPort }) => containerPort);
    });
  return [...declared.map(({ containerPort }) => containerPort), ...served];
}
