/**
 * ServiceEntries that do not lead where they say. TUL0016: the host is a Service's, or another entry's of the same
 * namespace. IST0134: nothing leads connections to an entry without addresses. TUL0001: a port that a host which is
 * looked up by its name in a request has not.
 */
import { entryProtocol, isHttp, passesConnections, type PortProtocol } from "../rules/port-protocol.ts";
import { oldestFirst } from "../rules/oldest-first.ts";
import type { ServiceEntry } from "../kinds/resource.ts";
import { allocatesAddresses, entryHosts, entryResolution } from "../rules/service-entries.ts";
import type { Path } from "../findings/places.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";

export const serviceEntries: Analyzer = {
  name: "service-entries",
  codes: ["TUL0016", "IST0134", "TUL0001"],
  *run(mesh) {
    const owners = new Map<string, ServiceEntry>();
    for (const resource of oldestFirst(mesh.list("ServiceEntry"))) {
      yield* takenHosts(mesh, resource, owners);
      yield* unaddressed(resource);
      yield* unnamed(resource);
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

/** With DYNAMIC_DNS the host is known by what is sent alone, and the port is the one that clients name. */
function* unnamed(resource: ServiceEntry): Generator<Discovery> {
  if (entryResolution(resource) !== "DYNAMIC_DNS") return;
  for (const [index, { number, targetPort = number, protocol = "" }] of (resource.spec.ports ?? []).entries()) {
    const spoken = entryProtocol(protocol) ?? "tcp";
    const path: Path = ["spec", "ports", index];
    if (!isHttp(spoken) && !isTls(spoken)) {
      const message = `with DYNAMIC_DNS nobody can tell which host a connection to port ${number} is meant for: captured workloads do not reach it`;
      yield { code: "TUL0001", resource, path, message, suggestion: "Write the protocol HTTP or TLS." };
    }
    // Requests of clients say no port where it is their protocol's own; TLS that a DestinationRule begins is at 443.
    const isKept = targetPort === number || isTls(spoken) || (isHttp(spoken) && number === 80 && targetPort === 443);
    if (!isKept) {
      const message = `with DYNAMIC_DNS requests go to the port that they name: targetPort ${targetPort} has no effect`;
      yield { code: "TUL0001", resource, path: [...path, "targetPort"], message, suggestion: "Leave it out." };
    }
  }
}

function isTls(protocol: PortProtocol): boolean {
  return protocol === "tls" || protocol === "https";
}

function* unaddressed(resource: ServiceEntry): Generator<Discovery> {
  const { ports = [], addresses = [] } = resource.spec;
  if (entryResolution(resource) === "DYNAMIC_DNS") return;
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
