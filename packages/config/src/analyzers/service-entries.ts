/**
 * ServiceEntries that do not lead where they say. TUL0016: the host is a Service's, or another entry's of the same
 * namespace. IST0134: nothing leads connections to an entry without addresses.
 */
import { entryProtocol, passesConnections } from "../rules/port-protocol.ts";
import { oldestFirst } from "../rules/oldest-first.ts";
import type { ServiceEntry } from "../kinds/resource.ts";
import { allocatesAddresses, entryHosts, entryResolution } from "../rules/service-entries.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";

export const serviceEntries: Analyzer = {
  name: "service-entries",
  codes: ["TUL0016", "IST0134"],
  *run(mesh) {
    const owners = new Map<string, ServiceEntry>();
    for (const resource of oldestFirst(mesh.list("ServiceEntry"))) {
      if (entryResolution(resource) === undefined) continue;
      yield* takenHosts(mesh, resource, owners);
      yield* unaddressed(resource);
    }
  },
};

function* takenHosts(
  mesh: AnalyzedMesh,
  resource: ServiceEntry,
  owners: Map<string, ServiceEntry>,
): Generator<Discovery> {
  const { namespace } = resource.metadata;
  for (const [index, host] of entryHosts(resource).entries()) {
    const key = `${namespace}/${host}`;
    const owner = mesh.servicesByHost.get(host) ?? owners.get(key);
    if (owner === undefined || owner === resource) {
      owners.set(key, resource);
      continue;
    }
    yield {
      code: "TUL0016",
      resource,
      path: ["spec", "hosts", index],
      message: `the host "${resource.spec.hosts[index]}" is that of the ${owner.kind} "${owner.metadata.namespace}/${owner.metadata.name}": this entry has no effect for it`,
      suggestion: owner.kind === "Service" ? "Choose another host." : "Put the endpoints into one entry.",
    };
  }
}

function* unaddressed(resource: ServiceEntry): Generator<Discovery> {
  const { ports = [], addresses = [] } = resource.spec;
  if (addresses.length > 0 || allocatesAddresses(resource) || entryResolution(resource) === "NONE") return;
  for (const [index, { number, protocol = "" }] of ports.entries()) {
    if (!passesConnections(entryProtocol(protocol) ?? "tcp")) continue;
    yield {
      code: "IST0134",
      resource,
      path: ["spec", "ports", index],
      message: `without an address captured workloads do not find port ${number}, whose connections no host tells apart`,
      suggestion: "Write addresses.",
    };
  }
}
