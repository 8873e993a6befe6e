// What kube-proxy's nftables mode does on one node: connections to Services' addresses and to node ports are led to
// pods by the first packet of each, the kernel treats all others like it. Verdict maps find the Service, so that a
// connection costs the same among ten Services and among thousands.
import { holds, parseIpRange, rangeText, withoutOverlaps, type IpRange } from "../rules/ip-range.ts";
import { chooseEndpoints, type ServiceEndpoint } from "./choose-endpoints.ts";
import type { ServiceNode } from "./cluster-objects.ts";
import type { RuleChain, RuleSet, RuleTable } from "./rule-table.ts";
import type { ServicePort } from "./service-ports.ts";

export const serviceTable = "tulle_services";

/** kube-proxy's: a packet that is to leave with the node's address. It is taken off again before the packet leaves. */
const masqueradeMark = "0x4000";
const markForMasquerade = `meta mark set meta mark or ${masqueradeMark}`;

/** What each family is called in a rule. */
const words = {
  4: { ip: "ip", type: "ipv4_addr", suffix: "4" },
  6: { ip: "ip6", type: "ipv6_addr", suffix: "6" },
} as const;
const families = [4, 6] as const;

export interface ServiceRulesInput {
  readonly node: ServiceNode;
  /** From where Services have their addresses (`10.96.0.0/16`). */
  readonly clusterRanges: readonly string[];
  readonly ports: readonly ServicePort[];
}

export function serviceRules({ node, clusterRanges, ports }: ServiceRulesInput): RuleTable {
  const draft = new Draft();
  const podRanges = readRanges(node.podRanges);
  for (const family of families) {
    declareFamily(draft, family, {
      node: readRanges(node.addresses),
      pods: podRanges,
      clusters: readRanges(clusterRanges),
    });
  }
  for (const port of ports) addPort(draft, port, node.name, podRanges);
  for (const [name, chain] of fixedChains(podRanges)) draft.chains.set(name, chain);
  return { name: serviceTable, chains: draft.chains, sets: draft.sets };
}

class Draft {
  readonly chains = new Map<string, RuleChain>();
  readonly sets = new Map<string, RuleSet>();
  readonly #elements = new Map<string, Map<string, string>>();

  declare(kind: RuleSet["kind"], name: string, properties: string, keys: readonly string[] = []): void {
    const elements = new Map(keys.map((key) => [key, ""]));
    this.#elements.set(name, elements);
    this.sets.set(name, { kind, properties, elements });
  }

  put(set: string, key: string, value = ""): void {
    this.#elements.get(set)!.set(key, value);
  }
}

function readRanges(texts: readonly string[]): readonly IpRange[] {
  return withoutOverlaps(texts.flatMap((text) => parseIpRange(text) ?? []));
}

interface Ranges {
  readonly node: readonly IpRange[];
  readonly pods: readonly IpRange[];
  readonly clusters: readonly IpRange[];
}

function declareFamily(draft: Draft, family: 4 | 6, { node, pods, clusters }: Ranges): void {
  const { type, suffix } = words[family];
  const texts = (ranges: readonly IpRange[]): readonly string[] =>
    ranges.filter((range) => range.family === family).map(rangeText);
  draft.declare("set", `node_addresses${suffix}`, `type ${type};`, texts(node));
  draft.declare("set", `pod_ranges${suffix}`, `type ${type}; flags interval;`, texts(pods));
  draft.declare("set", `cluster_ranges${suffix}`, `type ${type}; flags interval;`, texts(clusters));
  draft.declare("set", `cluster_addresses${suffix}`, `type ${type};`);
  draft.declare("set", `own_pods${suffix}`, `type ${type} . ${type};`);
  for (const name of ["services", "refused_services"]) {
    draft.declare("map", `${name}${suffix}`, `type ${type} . inet_proto . inet_service : verdict;`);
  }
  for (const name of ["node_ports", "refused_node_ports"]) {
    draft.declare("map", `${name}${suffix}`, "type inet_proto . inet_service : verdict;");
  }
}

/** The chains that are the same for all Services, with the kernel's ways through them. */
function fixedChains(podRanges: readonly IpRange[]): readonly (readonly [string, RuleChain])[] {
  const each = (rule: (family: (typeof words)[4 | 6]) => string): readonly string[] =>
    families.map((family) => rule(words[family]));
  const whose = "meta l4proto . th dport vmap";
  return [
    ["nat_prerouting", { hook: "nat hook prerouting priority dstnat", rules: ["jump find_service"] }],
    // The number is dstnat, a name that older nft takes in prerouting alone.
    ["nat_output", { hook: "nat hook output priority -100", rules: ["jump find_service"] }],
    [
      "find_service",
      {
        rules: [
          // Who comes from elsewhere may be sent on to another node, whose answers would not come back by this one.
          ...families
            .filter((family) => podRanges.some((range) => range.family === family))
            .map((family) => {
              const { ip, suffix } = words[family];
              const isForeign = `${ip} saddr != @pod_ranges${suffix}`;
              return `${isForeign} ${ip} daddr @cluster_addresses${suffix} ${markForMasquerade}`;
            }),
          ...each(({ ip, suffix }) => `${ip} daddr . meta l4proto . th dport vmap @services${suffix}`),
          ...each(({ ip, suffix }) => `${ip} daddr @node_addresses${suffix} ${whose} @node_ports${suffix}`),
        ],
      },
    ],
    [
      "nat_postrouting",
      {
        hook: "nat hook postrouting priority srcnat",
        rules: [
          // A pod that its own call came back to would answer itself, past the node.
          ...each(({ ip, suffix }) => {
            const isItself = `${ip} saddr . ${ip} daddr @own_pods${suffix}`;
            return `ct status dnat ${isItself} masquerade fully-random`;
          }),
          `meta mark and ${masqueradeMark} == ${masqueradeMark} goto masquerade_marked`,
        ],
      },
    ],
    ["masquerade_marked", { rules: [`meta mark set meta mark xor ${masqueradeMark}`, "masquerade fully-random"] }],
    // Behind what changes addresses: a Service's address that is still there leads to no pod. A node port is an address
    // of the node, and comes to `input`.
    ["filter_input", { hook: "filter hook input priority -90", rules: ["ct state new jump refuse_without_pods"] }],
    ["filter_forward", { hook: "filter hook forward priority -90", rules: ["ct state new jump refuse_all_left"] }],
    ["filter_output", { hook: "filter hook output priority -90", rules: ["ct state new jump refuse_all_left"] }],
    ["refuse_all_left", { rules: ["jump refuse_without_pods", "jump refuse_others"] }],
    [
      "refuse_without_pods",
      {
        rules: [
          ...each(({ ip, suffix }) => `${ip} daddr . meta l4proto . th dport vmap @refused_services${suffix}`),
          ...each(({ ip, suffix }) => `${ip} daddr @node_addresses${suffix} ${whose} @refused_node_ports${suffix}`),
        ],
      },
    ],
    [
      "refuse_others",
      {
        rules: [
          ...each(({ ip, suffix }) => `${ip} daddr @cluster_addresses${suffix} goto refuse`),
          // Nobody has it now; who gets it may be known in a moment, so that nothing is said.
          ...each(({ ip, suffix }) => `${ip} daddr @cluster_ranges${suffix} counter drop`),
        ],
      },
    ],
    // The kernel bounds how often it says by ICMP that a port is closed; a reset comes for each connection.
    ["refuse", { rules: ["meta l4proto tcp reject with tcp reset", "reject"] }],
    ["no_pod_on_node", { rules: ["counter drop"] }],
  ];
}

/** kube-proxy answers for a Service without any pod, and says nothing where another node has one. */
const refuse = "goto refuse";
const dropSilently = "goto no_pod_on_node";

function addPort(draft: Draft, port: ServicePort, nodeName: string, podRanges: readonly IpRange[]): void {
  const { id, family, protocol, internalPolicy, externalPolicy, nodePort, externalAddresses, clusterAddress } = port;
  const { cluster, local } = chooseEndpoints(port.endpoints, nodeName);
  const isExternal = nodePort !== undefined || externalAddresses.length > 0;
  const hasPods = cluster.length > 0 || local.length > 0;
  const toCluster = `cluster${family}/${id}`;
  const toLocal = `local${family}/${id}`;
  const toExternal = `external${family}/${id}`;
  const usesCluster = cluster.length > 0 && (internalPolicy === "Cluster" || isExternal);
  const usesLocal = local.length > 0 && (internalPolicy === "Local" || (isExternal && externalPolicy === "Local"));
  if (usesCluster) addEndpoints(draft, port, toCluster, cluster);
  if (usesLocal) addEndpoints(draft, port, toLocal, local);
  if (isExternal && hasPods) {
    draft.chains.set(toExternal, {
      rules: externalRules(family, externalPolicy, {
        toCluster,
        toLocal,
        hasCluster: usesCluster,
        hasLocal: usesLocal,
      }),
    });
  }

  const { suffix } = words[family];
  const key = (address: string): string => `${address} . ${protocol} . ${port.port}`;
  const otherwise = hasPods ? dropSilently : refuse;
  draft.put(`cluster_addresses${suffix}`, clusterAddress);
  const isReached = (policy: ServicePort["internalPolicy"]): boolean => (policy === "Cluster" ? hasPods : usesLocal);
  if (isReached(internalPolicy)) {
    const chain = internalPolicy === "Cluster" ? toCluster : toLocal;
    draft.put(`services${suffix}`, key(clusterAddress), `goto ${chain}`);
  } else {
    draft.put(`refused_services${suffix}`, key(clusterAddress), otherwise);
  }
  const externals = [
    ...externalAddresses.map((address) => ["services", key(address)] as const),
    ...(nodePort === undefined ? [] : [["node_ports", `${protocol} . ${nodePort}`] as const]),
  ];
  for (const [map, element] of externals) {
    // The node's own calls and its pods' are led on even where those from outside are not.
    if (hasPods) draft.put(`${map}${suffix}`, element, `goto ${toExternal}`);
    if (!isReached(externalPolicy)) draft.put(`refused_${map}${suffix}`, element, otherwise);
  }
  for (const { address } of cluster) {
    const range = parseIpRange(address)!;
    if (podRanges.some((each) => holds(each, range))) draft.put(`own_pods${suffix}`, `${address} . ${address}`);
  }
}

/**
 * From outside by the Service's policy. The node's own programs and its pods are not outside: for them it is as if they
 * had gone out to a load balancer, which knows all nodes.
 */
function externalRules(
  family: 4 | 6,
  policy: ServicePort["externalPolicy"],
  way: {
    readonly toCluster: string;
    readonly toLocal: string;
    readonly hasCluster: boolean;
    readonly hasLocal: boolean;
  },
): readonly string[] {
  const { ip, suffix } = words[family];
  if (policy === "Cluster") return [markForMasquerade, `goto ${way.toCluster}`];
  const inside = way.hasCluster
    ? [
        `${ip} saddr @pod_ranges${suffix} goto ${way.toCluster}`,
        `fib saddr type local ${markForMasquerade} goto ${way.toCluster}`,
      ]
    : [];
  return [...inside, ...(way.hasLocal ? [`goto ${way.toLocal}`] : [])];
}

function addEndpoints(draft: Draft, port: ServicePort, chain: string, endpoints: readonly ServiceEndpoint[]): void {
  const { family, protocol, affinitySeconds } = port;
  const { ip } = words[family];
  if (affinitySeconds !== undefined) {
    draft.chains.set(chain, { rules: stickyRules(draft, port, endpoints, affinitySeconds) });
    return;
  }
  const [first] = endpoints;
  const destination = (endpoint: ServiceEndpoint): string => `${endpoint.address} . ${endpoint.port}`;
  const choice = endpoints.map((endpoint, index) => `${index} : ${destination(endpoint)}`).join(", ");
  const target =
    endpoints.length === 1 ? socketText(first!) : `numgen random mod ${endpoints.length} map { ${choice} }`;
  draft.chains.set(chain, { rules: [`meta l4proto ${protocol} dnat ${ip} to ${target}`] });
}

/**
 * That a pod is known to have had. The kernel takes memory for all of them at once (65,536 are a megabyte for each
 * pod); who comes when they are full is led to any pod each time.
 */
export const maxClients = 4096;

/** A client goes where it has been, as long as that is one of them: each pod has a set of those who have been there. */
function stickyRules(
  draft: Draft,
  { id, family, protocol }: ServicePort,
  endpoints: readonly ServiceEndpoint[],
  affinitySeconds: number,
): readonly string[] {
  const { ip, type } = words[family];
  const names = endpoints.map((endpoint) => {
    const { address, port } = endpoint;
    const name = `${id}/${address.replaceAll(":", "-")}/${port}`;
    // Its time is a part of its name: the kernel does not change it.
    const clients = `clients${family}/${name}/${affinitySeconds}`;
    draft.declare(
      "set",
      clients,
      `type ${type}; size ${maxClients}; flags dynamic,timeout; timeout ${affinitySeconds}s;`,
    );
    const pod = `pod${family}/${name}`;
    draft.chains.set(pod, {
      rules: [`update @${clients} { ${ip} saddr }`, `meta l4proto ${protocol} dnat ${ip} to ${socketText(endpoint)}`],
    });
    return { clients, pod };
  });
  const choice = names.map(({ pod }, index) => `${index} : goto ${pod}`).join(", ");
  return [
    ...names.map(({ clients, pod }) => `${ip} saddr @${clients} goto ${pod}`),
    `numgen random mod ${names.length} vmap { ${choice} }`,
  ];
}

function socketText({ address, port }: ServiceEndpoint): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
