/**
 * IST0101, TUL0014, TUL0015: the Service, the subsets and the VirtualService of a Rollout are there, some route leads
 * to the Service, what is measured can be measured, and no other Rollout is of the same host. One that cannot be laid
 * over anything does not start.
 */
import { meshConfigOf } from "../mesh-config/mesh-config.ts";
import { nearestName } from "../findings/nearest-name.ts";
import { isHttp, portProtocol } from "../rules/port-protocol.ts";
import type { HttpRoute, Rollout, VirtualService } from "../kinds/resource.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";
import { suggestHost } from "./destinations.ts";

export const rollouts: Analyzer = {
  name: "rollouts",
  codes: ["IST0101", "TUL0014", "TUL0015"],
  *run(mesh) {
    const first = new Map<string, Rollout>();
    for (const rollout of mesh.list("Rollout")) {
      const host = hostOf(mesh, rollout);
      const other = first.get(host);
      if (other === undefined) first.set(host, rollout);
      else yield overlap(rollout, other, host);
      if (!mesh.servicesByHost.has(host)) yield unknownHost(mesh, rollout);
      else yield* checkSubsets(mesh, rollout, host);
      yield* checkVirtualService(mesh, rollout, host);
      yield* checkPrometheus(mesh, rollout);
      yield* checkCounted(mesh, rollout, host);
    }
  },
};

function hostOf(mesh: AnalyzedMesh, { metadata, spec }: Rollout): string {
  return mesh.resolve(spec.host, metadata.namespace);
}

function overlap(rollout: Rollout, { metadata }: Rollout, host: string): Discovery {
  return {
    code: "TUL0014",
    resource: rollout,
    path: ["spec", "host"],
    message: `the Rollout "${metadata.namespace}/${metadata.name}" is of the host "${host}", too; this one does not start`,
    suggestion: "Delete one of them.",
  };
}

function unknownHost(mesh: AnalyzedMesh, rollout: Rollout): Discovery {
  return {
    code: "IST0101",
    resource: rollout,
    path: ["spec", "host"],
    message: `host "${rollout.spec.host}" not found`,
    suggestion: suggestHost(mesh, rollout.spec.host, rollout.metadata.namespace),
  };
}

function* checkSubsets(mesh: AnalyzedMesh, rollout: Rollout, host: string): Generator<Discovery> {
  const rules = mesh.destinationRulesByHost.get(host) ?? [];
  const names = rules.flatMap(({ spec }) => spec.subsets ?? []).map(({ name }) => name);
  if (rules.some((rule) => mesh.isDraft(rule))) return;
  for (const version of ["stable", "canary"] as const) {
    const { subset } = rollout.spec[version];
    if (subset === undefined || names.includes(subset)) continue;
    const near = nearestName(subset, names);
    yield {
      code: "IST0101",
      resource: rollout,
      path: ["spec", version, "subset"],
      message: `subset "${subset}" of host "${host}" not found`,
      suggestion:
        near === undefined
          ? "Add a DestinationRule for the host that names the subset, or write labels."
          : `Did you mean "${near}"?`,
    };
  }
}

function* checkVirtualService(mesh: AnalyzedMesh, rollout: Rollout, host: string): Generator<Discovery> {
  const named = rollout.spec.virtualService;
  if (named === undefined) return;
  const { namespace } = rollout.metadata;
  const inNamespace = mesh.list("VirtualService").filter(({ metadata }) => metadata.namespace === namespace);
  const found = inNamespace.find(({ metadata }) => metadata.name === named.name);
  if (found === undefined) {
    const near = nearestName(
      named.name,
      inNamespace.map(({ metadata }) => metadata.name),
    );
    yield {
      code: "IST0101",
      resource: rollout,
      path: ["spec", "virtualService", "name"],
      message: `virtual service "${namespace}/${named.name}" not found`,
      suggestion:
        near === undefined
          ? "Add it, or leave virtualService out: then the weights are laid over whatever leads to the host."
          : `Did you mean "${near}"?`,
    };
    return;
  }
  if (mesh.isDraft(found)) return;
  const { http: routes = [], tls = [], tcp = [] } = found.spec;
  const leads = (route: Pick<HttpRoute, "route">): boolean =>
    (route.route ?? []).some(({ destination }) => mesh.resolve(destination.host, namespace) === host);
  for (const [index, name] of (named.routes ?? []).entries()) {
    const route = routes.find((each) => each.name === name);
    if (route !== undefined && leads(route)) continue;
    yield withoutRoute(rollout, ["spec", "virtualService", "routes", index], found, `route "${name}"`, route, host);
  }
  if (named.routes === undefined && ![...routes, ...tls, ...tcp].some(leads))
    yield withoutRoute(rollout, ["spec", "virtualService", "name"], found, "route", undefined, host);
}

function withoutRoute(
  rollout: Rollout,
  path: Discovery["path"] & object,
  { metadata }: VirtualService,
  what: string,
  route: HttpRoute | undefined,
  host: string,
): Discovery {
  const problem = route === undefined ? `has no ${what}` : `has a ${what} that does not lead`;
  return {
    code: "TUL0015",
    resource: rollout,
    path,
    message: `the VirtualService "${metadata.namespace}/${metadata.name}" ${problem} to the host "${host}", so that no weight can be laid over it`,
    suggestion: "Name one that leads to the host, or leave virtualService out.",
  };
}

/** An author of a Rollout does not choose whom the control plane asks. */
function* checkPrometheus(mesh: AnalyzedMesh, rollout: Rollout): Generator<Discovery> {
  const allowed = meshConfigOf(mesh.list("ConfigMap")).rolloutPrometheusUrls ?? [];
  for (const { metric, path } of metricsOf(rollout)) {
    const address = metric.prometheus?.address;
    if (address === undefined || allowed.includes(address)) continue;
    yield {
      code: "TUL0015",
      resource: rollout,
      path: [...path, "prometheus", "address"],
      message: `the mesh's configuration does not list "${address}" in rolloutPrometheusUrls, so that the roll-out pauses there`,
      suggestion: allowed.length === 0 ? "It lists none; the operator adds it." : `It lists ${allowed.join(", ")}.`,
    };
  }
}

/** What proxies count are requests. */
function* checkCounted(mesh: AnalyzedMesh, rollout: Rollout, host: string): Generator<Discovery> {
  const service = mesh.servicesByHost.get(host);
  if (service === undefined || service.spec.ports.some((port) => isHttp(portProtocol(port)))) return;
  for (const { metric, path } of metricsOf(rollout)) {
    if (metric.prometheus !== undefined) continue;
    yield {
      code: "TUL0015",
      resource: rollout,
      path,
      message: `no port of the host "${host}" speaks HTTP, so that "${metric.name}" counts no requests and the roll-out waits there`,
      suggestion: "Measure connections by a query of Prometheus, or name the port's protocol.",
    };
  }
}

function metricsOf({ spec }: Rollout) {
  const { canary, blueGreen } = spec.strategy;
  const at = ["spec", "strategy"] as const;
  const analyses = [
    ...(canary?.steps ?? []).map(({ analysis }, index) => ({ analysis, path: [...at, "canary", "steps", index] })),
    { analysis: canary?.analysis, path: [...at, "canary"] },
  ].map(({ analysis, path }) => ({ analysis, path: [...path, "analysis"] }));
  const switched = (["prePromotionAnalysis", "postPromotionAnalysis"] as const).map((name) => ({
    analysis: blueGreen?.[name],
    path: [...at, "blueGreen", name],
  }));
  return [...analyses, ...switched].flatMap(({ analysis, path }) =>
    (analysis?.metrics ?? []).map((metric, index) => ({ metric, path: [...path, "metrics", index] })),
  );
}
