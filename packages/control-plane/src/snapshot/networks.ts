// Labels, Services and the mesh's configuration → which networks there are, how proxies of others come into each, and
// which endpoints are in which (Istio: pilot/pkg/model/network.go).
import { BlockList, isIP } from "node:net";
import {
  labelledNetwork,
  leadsIntoNetwork,
  type MeshNetworksConfig,
  meshNetworksOf,
  type Service,
  serviceHost,
  splitIpBlock,
} from "@tulle/config";
import type { ResourceReader } from "./resource-reader.ts";

export interface NetworkGateway {
  readonly address: string;
  readonly port: number;
}

/** Gateways by the name of their network, each list sorted and without repetition; no network without any. */
export type NetworkGateways = Readonly<Record<string, readonly NetworkGateway[]>>;

/** Undefined where no network has a gateway: then all endpoints are reached at their own addresses. */
export function networkGateways(store: ResourceReader): NetworkGateways | undefined {
  const found: (NetworkGateway & { readonly network: string })[] = [];
  const services = store.list("Service");
  for (const service of services) {
    const way = leadsIntoNetwork(service);
    if (way !== undefined) found.push(...externalAddresses(service).map((address) => ({ ...way, address })));
  }
  for (const [network, { gateways = [] }] of Object.entries(meshNetworksOf(store.list("ConfigMap")).networks ?? {})) {
    for (const { address, registryServiceName: host, port } of gateways) {
      const named = services.find(({ metadata }) => serviceHost(metadata.name, metadata.namespace) === host);
      const addresses = address === undefined ? named && externalAddresses(named) : [address];
      found.push(...(addresses ?? []).map((each) => ({ network, address: each, port })));
    }
  }
  // Names of gateways are not looked up.
  const usable = found.filter(({ address }) => isIP(address) > 0);
  if (usable.length === 0) return undefined;
  const byNetwork = [...Map.groupBy(usable, ({ network }) => network)].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(byNetwork.map(([network, gateways]) => [network, distinct(gateways)]));
}

function externalAddresses({ spec, status }: Service): readonly string[] {
  const ingress = status?.loadBalancer?.ingress ?? [];
  return [...ingress.flatMap(({ ip }) => ip ?? []), ...(spec.externalIPs ?? [])];
}

function distinct(gateways: readonly NetworkGateway[]): readonly NetworkGateway[] {
  const byText = new Map(gateways.map(({ address, port }) => [`${address} ${port}`, { address, port }]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, gateway]) => gateway);
}

/** Where an endpoint is that says nothing but its labels and its address; undefined where nobody knows. */
export type NetworkOf = (labels: Readonly<Record<string, string>>, address: string) => string | undefined;

export function networksOfEndpoints(store: ResourceReader): NetworkOf {
  const ranges = rangesOf(meshNetworksOf(store.list("ConfigMap")));
  return (labels, address) => labelledNetwork(labels) ?? ranges.find(({ holds }) => holds(address))?.network;
}

function rangesOf({ networks = {} }: MeshNetworksConfig) {
  return Object.entries(networks).map(([network, { endpoints = [] }]) => {
    const list = new BlockList();
    for (const { fromCidr } of endpoints) {
      const block = fromCidr === undefined ? undefined : splitIpBlock(fromCidr);
      if (block !== undefined) list.addSubnet(block.address, block.prefixLength, familyOf(block.address));
    }
    return { network, holds: (address: string) => isIP(address) > 0 && list.check(address, familyOf(address)) };
  });
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}
