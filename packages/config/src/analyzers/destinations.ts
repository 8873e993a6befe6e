/**
 * IST0101, IST0112: where the routes of a VirtualService lead. The host is a service of the mesh, the subset is named
 * by a DestinationRule of that host, and the port is one of the service's.
 */
import { exportedTo, exportsOverlap } from "../rules/export-to.ts";
import { meshConfigOf } from "../mesh-config/mesh-config.ts";
import { nearestName } from "../findings/nearest-name.ts";
import { serviceHost } from "../rules/resolve-host.ts";
import type { Destination, DestinationRule, Service, ServiceEntry, VirtualService } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";

export const destinations: Analyzer = {
  name: "destinations",
  codes: ["IST0101", "IST0112"],
  *run(mesh) {
    for (const resource of mesh.list("VirtualService")) {
      for (const { destination, path } of destinationsOf(resource)) {
        const host = mesh.resolve(destination.host, resource.metadata.namespace);
        const target = mesh.servicesByHost.get(host) ?? mesh.entriesByHost.get(host);
        if (target === undefined) yield hostNotFound(mesh, resource, destination, path);
        else if (!mesh.isDraft(target)) yield* checkPort(resource, target, destination, path);
        if (destination.subset !== undefined && target !== undefined) {
          yield* checkSubset(mesh, resource, host, destination.subset, path);
        }
      }
    }
  },
};

function* destinationsOf(
  resource: VirtualService,
): Generator<{ readonly destination: Destination; readonly path: Path }> {
  for (const name of ["http", "tls", "tcp"] as const) {
    for (const [index, route] of (resource.spec[name] ?? []).entries()) {
      for (const [position, { destination }] of (route.route ?? []).entries()) {
        yield { destination, path: ["spec", name, index, "route", position, "destination"] };
      }
    }
  }
}

function hostNotFound(mesh: AnalyzedMesh, resource: VirtualService, destination: Destination, path: Path): Discovery {
  const { namespace } = resource.metadata;
  return {
    code: "IST0101",
    resource,
    path: [...path, "host"],
    message: `host "${destination.host}" not found`,
    suggestion: suggestHost(mesh, destination.host, namespace),
  };
}

/** A service whose name is near, or one of that name elsewhere. */
export function suggestHost(mesh: AnalyzedMesh, host: string, namespace: string): string | undefined {
  const name = host.split(".")[0] ?? host;
  const services = mesh.list("Service");
  const elsewhere = services.find(({ metadata }) => metadata.name === name && metadata.namespace !== namespace);
  if (elsewhere !== undefined) {
    const { metadata } = elsewhere;
    return `There is a Service "${name}" in the namespace "${metadata.namespace}": write "${serviceHost(name, metadata.namespace)}".`;
  }
  const near = nearestName(
    name,
    services.filter(({ metadata }) => metadata.namespace === namespace).map(({ metadata }) => metadata.name),
  );
  if (near !== undefined) return `Did you mean "${near}"?`;
  return host.includes(".")
    ? "Add a Service of that name."
    : `Add a Service "${host}" to the namespace "${namespace}", or write the full name of a service elsewhere.`;
}

function portsOf(target: Service | ServiceEntry): readonly number[] {
  return target.kind === "Service"
    ? target.spec.ports.map(({ port }) => port)
    : (target.spec.ports ?? []).map(({ number }) => number);
}

function* checkPort(
  resource: VirtualService,
  target: Service | ServiceEntry,
  destination: Destination,
  path: Path,
): Generator<Discovery> {
  const ports = portsOf(target);
  const wanted = destination.port?.number;
  const list = ports.join(", ");
  if (wanted === undefined) {
    if (ports.length < 2) return;
    yield {
      code: "IST0112",
      resource,
      path: [...path, "host"],
      message: `the ${target.kind} "${target.metadata.name}" has several ports (${list}), and the destination names none`,
      suggestion: "Add port.number to the destination.",
    };
  } else if (!ports.includes(wanted)) {
    yield {
      code: "IST0101",
      resource,
      path: [...path, "port", "number"],
      message: `port ${wanted} of host "${destination.host}" not found`,
      suggestion: ports.length === 0 ? `The ${target.kind} has no ports.` : `Ports of the ${target.kind}: ${list}.`,
    };
  }
}

function* checkSubset(
  mesh: AnalyzedMesh,
  resource: VirtualService,
  host: string,
  subset: string,
  path: Path,
): Generator<Discovery> {
  const all = mesh.destinationRulesByHost.get(host) ?? [];
  const meshConfig = meshConfigOf(mesh.list("ConfigMap"));
  const seenFrom = exportedTo(
    resource.spec.exportTo,
    resource.metadata.namespace,
    meshConfig.defaultVirtualServiceExportTo,
  );
  const isSeen = ({ metadata, spec }: DestinationRule): boolean =>
    exportsOverlap(exportedTo(spec.exportTo, metadata.namespace, meshConfig.defaultDestinationRuleExportTo), seenFrom);
  const rules = all.filter(isSeen);
  const unseen = all.find((rule) => !isSeen(rule) && rule.spec.subsets?.some(({ name }) => name === subset) === true);
  const names = rules.flatMap((rule) => rule.spec.subsets ?? []).map(({ name }) => name);
  if (names.includes(subset) || rules.some((rule) => mesh.isDraft(rule))) return;
  const near = nearestName(subset, names);
  yield {
    code: "IST0101",
    resource,
    path: [...path, "subset"],
    message: `subset "${subset}" of host "${host}" not found`,
    suggestion:
      unseen !== undefined
        ? `The DestinationRule "${unseen.metadata.namespace}/${unseen.metadata.name}" names it, and no namespace that follows these routes sees that one: change its exportTo.`
        : near !== undefined
          ? `Did you mean "${near}"?`
          : names.length > 0
            ? `Subsets of the host: ${names.join(", ")}.`
            : "Add a DestinationRule for the host that names the subset.",
  };
}
