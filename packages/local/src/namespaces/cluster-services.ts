// Services of namespaces mode, as on Kubernetes: the nodes lead their addresses and node ports to pods, and a name
// server behind kube-dns's address knows them. Pods without a sidecar, and gateways, reach Services by it.
import { readFileSync } from "node:fs";
import { ClusterDns, forwardingOf, readResolverSettings } from "@tulle/capture/dns";
import { clusterDnsObjects, serviceNames, ServiceNetwork } from "@tulle/capture/services";
import type { EndpointSlice, Service } from "@tulle/config";
import { MetricRegistry } from "@tulle/telemetry";
import { clusterDns, serviceRanges, supervisorAddress } from "./addresses.ts";
import type { Node } from "./fabric.ts";
import type { MachineNetwork } from "./machine-network.ts";
import type { SystemPrograms } from "./system-programs.ts";

export interface ClusterServicesOptions {
  readonly nodes: readonly Node[];
  /** Where names that are not the cluster's are asked for. */
  readonly machine: MachineNetwork;
  readonly programs: SystemPrograms;
  /** Whole sentences, for people. */
  readonly onTrouble: (message: string) => void;
}

const dnsServer = { address: supervisorAddress.ipv4, port: 53 };
const dns = clusterDnsObjects({ addresses: [clusterDns], servers: [dnsServer] });

export class ClusterServices {
  readonly #network: ServiceNetwork;
  readonly #names: ClusterDns;

  private constructor(network: ServiceNetwork, names: ClusterDns) {
    this.#network = network;
    this.#names = names;
  }

  /** Rejects where the name server cannot listen. */
  static async start({ nodes, machine, programs, onTrouble }: ClusterServicesOptions): Promise<ClusterServices> {
    const names = new ClusterDns({
      forwarding: () => forwardingOf(readResolverSettings(machineResolver()), []),
      openSocket: machine.openSocket,
      metrics: new MetricRegistry(),
    });
    await names.start([dnsServer]);
    const network = new ServiceNetwork({
      nodes: nodes.map(({ addresses: { name, address, podRange }, network: of }) => ({
        name,
        addresses: [address.ipv4, address.ipv6],
        podRanges: [podRange.ipv4, podRange.ipv6],
        prefix: [programs.nsenter, `--net=${of.path}`, "--"],
      })),
      clusterRanges: [serviceRanges.ipv4, serviceRanges.ipv6],
      onProblems: (problems) => {
        for (const { service, path, message } of problems)
          onTrouble(`Service ${service.namespace}/${service.name}: ${path} ${message}`);
      },
      onFailure: (node, message) => onTrouble(`${node} does not lead to Services: ${message}`),
    });
    return new ClusterServices(network, names);
  }

  /** All that there are, with the addresses that the store has given them. */
  update(services: readonly Service[], endpointSlices: readonly EndpointSlice[]): void {
    const all = { services: [...services, dns.service], endpointSlices: [...endpointSlices, ...dns.endpointSlices] };
    this.#network.update(all);
    this.#names.setNames(serviceNames({ ...all, serviceDomain: "svc.cluster.local" }));
  }

  async close(): Promise<void> {
    await this.#names[Symbol.asyncDispose]();
    await this.#network.close();
  }
}

/** The machine may have other servers by now. */
function machineResolver(): string {
  try {
    return readFileSync("/etc/resolv.conf", "utf8");
  } catch {
    return "";
  }
}
