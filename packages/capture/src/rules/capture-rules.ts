// A plan as one transaction of nft(8): it makes the table, in the place of an older one, or nothing. Who reads it with
// `nft list table inet tulle_capture` finds the chains as they are named here.
import type { CapturePlan, PortSelection } from "./capture-plan.ts";
import { holds, parseIpRange, rangeText, withoutOverlaps, type IpRange } from "./ip-range.ts";

export const captureTable = "tulle_capture";

/** On what the proxy sends to its application from a client's address, and on the answers (istio-iptables: -t). */
export const tproxyMark = 1337;

/** From where the proxy sends to its own application what no rule of the mesh is about (Istio: InboundPassthrough). */
const passthroughSource = { 4: "127.0.0.6", 6: "::6" } as const;
const loopback = { 4: parseIpRange("127.0.0.0/8")!, 6: parseIpRange("::1")! } as const;
const dnsPort = 53;

/** Removes the table, if there is one. Adding it first is what makes that no error. */
export const removalRules = `add table inet ${captureTable}\ndelete table inet ${captureTable}\n`;

/** One rule, or a comment, a line. */
interface Chain {
  readonly name: string;
  /** Where the kernel enters it; undefined: other chains lead here. */
  readonly hook?: string;
  readonly lines: readonly string[];
}

/**
 * The rules see the first packet of each connection; the kernel treats all others like it. `accept` leaves a connection
 * as it is.
 */
export function captureRules(plan: CapturePlan): string {
  const chains = [
    prerouting(plan),
    output(plan),
    ofProxy(plan),
    inbound(plan),
    outbound(plan),
    input(plan),
    ...transparent(plan),
    ...dnsZones(plan),
  ];
  return `${removalRules}table inet ${captureTable} {\n${chains.map(chainText).join("\n")}}\n`;
}

function chainText({ name, hook, lines }: Chain): string {
  const all = hook === undefined ? lines : [`type ${hook}; policy accept;`, ...lines];
  return `  chain ${name} {\n${all.map((line) => `    ${line}\n`).join("")}  }\n`;
}

/**
 * Connections that were there before the kernel followed any show it a packet in their middle first: to turn that aside
 * would break them.
 */
const beganBefore = [
  "# A connection that began before this table goes on as it is.",
  "tcp flags & (syn | ack) != syn accept",
];

/** What comes from outside the pod. */
function prerouting({ mode, excludedInterfaces, virtualInterfaces }: CapturePlan): Chain {
  return {
    name: "prerouting",
    hook: "nat hook prerouting priority dstnat",
    lines: [
      ...interfaceRule("iifname", excludedInterfaces, "accept"),
      ...beganBefore,
      ...interfaceRule("iifname", virtualInterfaces, "goto outbound"),
      ...(mode === "REDIRECT" ? ["meta l4proto tcp goto inbound"] : []),
    ],
  };
}

/**
 * TPROXY: the proxy's socket takes what comes in though it is for another port, and each side keeps its addresses. The
 * application answers the client's address; its answers turn back to the proxy by a routing rule for their mark.
 */
function transparent(plan: CapturePlan): readonly Chain[] {
  const { mode, inboundPort, excludedInterfaces, virtualInterfaces } = plan;
  if (mode === "REDIRECT") return [];
  const { kind, ports } = capturedInbound(plan);
  return [
    {
      name: "transparent_inbound",
      hook: "filter hook prerouting priority mangle",
      lines: [
        ...interfaceRule("iifname", [...excludedInterfaces, ...virtualInterfaces], "accept"),
        'iifname "lo" accept',
        "meta l4proto != tcp accept",
        ...beganBefore,
        ...(kind === "all-but" ? portRule("tcp dport", ports, "accept") : portRule("tcp dport !=", ports, "accept")),
        ...(kind === "only" && ports.length === 0
          ? []
          : [
              `meta nfproto ipv4 meta l4proto tcp tproxy ip to :${inboundPort} accept`,
              `meta nfproto ipv6 meta l4proto tcp tproxy ip6 to :${inboundPort} accept`,
              "# Nobody listens there: without a proxy nothing goes round it.",
              "meta l4proto tcp reject with tcp reset",
            ]),
      ],
    },
    {
      name: "transparent_answers",
      hook: "route hook output priority mangle",
      lines: [
        `meta mark ${tproxyMark} ct mark set ${tproxyMark} accept`,
        "# The application's answers to what the proxy sent in a client's name.",
        `ct mark ${tproxyMark} meta mark set ${tproxyMark}`,
      ],
    },
  ];
}

/** What the pod's programs send. The number is `dstnat`, a name that older nft takes in prerouting alone. */
function output(plan: CapturePlan): Chain {
  const { proxyUids, proxyGids, excludedInterfaces, excludedOutboundPorts, includedOutboundRanges } = plan;
  const localRanges =
    includedOutboundRanges === "all" ? [] : includedOutboundRanges.filter((range) => isLoopback(range));
  return {
    name: "output",
    hook: "nat hook output priority -100",
    lines: [
      ...interfaceRule("oifname", excludedInterfaces, "accept"),
      ...beganBefore,
      ...portRule("tcp dport", excludedOutboundPorts, "accept"),
      ...portRule("udp dport", excludedOutboundPorts, "accept"),
      ...(proxyUids.length > 0 ? [`meta skuid ${set(proxyUids)} goto of_proxy`] : []),
      ...(proxyGids.length > 0 ? [`meta skgid ${set(proxyGids)} goto of_proxy`] : []),
      ...dnsRules(plan),
      ...rangeRules("daddr", localRanges, "meta l4proto tcp", `redirect to :${plan.outboundPort}`),
      "# Programs of the pod speak to each other directly.",
      'oifname "lo" accept',
      "goto outbound",
    ],
  };
}

/** What the proxy sends goes where it sends it, so that nothing goes round in a circle. */
function ofProxy({ dns, mode }: CapturePlan): Chain {
  const toItself = `meta l4proto tcp${dns === undefined ? "" : ` tcp dport != ${dnsPort}`} goto inbound`;
  return {
    name: "of_proxy",
    lines: [
      ...(mode === "TPROXY" ? [`oifname "lo" meta mark ${tproxyMark} accept`] : []),
      "# From there it calls the pod's application.",
      `oifname "lo" ip saddr ${passthroughSource[4]} accept`,
      `oifname "lo" ip6 saddr ${passthroughSource[6]} accept`,
      "# A program called its own Service, and the proxy chose this very pod: it comes in like any other call.",
      `oifname "lo" ip daddr != ${rangeText(loopback[4])} ${toItself}`,
      `oifname "lo" ip6 daddr != ${rangeText(loopback[6])} ${toItself}`,
    ],
  };
}

/** The ports of capture themselves are nobody's destination: `input` refuses them. */
function capturedInbound({ inboundPorts, inboundPort, outboundPort, tunnelPort }: CapturePlan): PortSelection {
  const { kind, ports } = inboundPorts;
  const own = [outboundPort, inboundPort, tunnelPort];
  return kind === "only"
    ? { kind, ports: ports.filter((port) => !own.includes(port)) }
    : { kind, ports: [...new Set([...own, ...ports])] };
}

function inbound(plan: CapturePlan): Chain {
  const { kind, ports } = capturedInbound(plan);
  const redirect = `redirect to :${plan.inboundPort}`;
  return {
    name: "inbound",
    lines:
      kind === "only"
        ? portRule("tcp dport", ports, redirect)
        : [...portRule("tcp dport", ports, "accept"), `meta l4proto tcp ${redirect}`],
  };
}

function outbound(plan: CapturePlan): Chain {
  const redirect = `redirect to :${plan.outboundPort}`;
  const ranges = plan.includedOutboundRanges;
  return {
    name: "outbound",
    lines: [
      ...rangeRules("daddr", plan.excludedOutboundRanges, "", "accept"),
      ...portRule("tcp dport", plan.includedOutboundPorts, redirect),
      ...(ranges === "all"
        ? [`meta l4proto tcp ${redirect}`]
        : rangeRules("daddr", ranges, "meta l4proto tcp", redirect)),
    ],
  };
}

/** Whoever dials a port of capture himself has named no destination: the proxy would dial itself. */
function input({ outboundPort, inboundPort }: CapturePlan): Chain {
  const ports = set([outboundPort, inboundPort]);
  return {
    name: "input",
    hook: "filter hook input priority filter",
    lines: [
      `tcp dport ${ports} ct status dnat accept`,
      "# Nothing was redirected here: the proxy would be told its own address, and would dial itself.",
      `tcp dport ${ports} ct state new reject with tcp reset`,
    ],
  };
}

function dnsRules({ dns }: CapturePlan): readonly string[] {
  if (dns === undefined) return [];
  const redirect = `redirect to :${dns.port}`;
  return ["udp", "tcp"].flatMap((protocol) => {
    const question = `${protocol} dport ${dnsPort}`;
    return dns.servers === "all" ? [`${question} ${redirect}`] : rangeRules("daddr", dns.servers, question, redirect);
  });
}

/**
 * A program's question that was redirected is known to the kernel by its addresses and ports for half a minute. The
 * proxy's own question may have the same ones, and must not be taken for it.
 */
function dnsZones({ dns, proxyUids, proxyGids }: CapturePlan): readonly Chain[] {
  if (dns === undefined) return [];
  const zone = "ct zone set 1";
  const answers =
    dns.servers === "all"
      ? [`udp sport ${dnsPort} ${zone}`]
      : rangeRules("saddr", dns.servers, `udp sport ${dnsPort}`, zone);
  return [
    {
      name: "dns_questions",
      hook: "filter hook output priority raw",
      lines: [
        "# The proxy's own questions are followed apart from those that were redirected to it.",
        ...(proxyUids.length > 0 ? [`udp dport ${dnsPort} meta skuid ${set(proxyUids)} ${zone}`] : []),
        ...(proxyGids.length > 0 ? [`udp dport ${dnsPort} meta skgid ${set(proxyGids)} ${zone}`] : []),
      ],
    },
    { name: "dns_answers", hook: "filter hook prerouting priority raw", lines: answers },
  ];
}

function isLoopback(range: IpRange): boolean {
  return holds(loopback[range.family], range);
}

function interfaceRule(field: string, names: readonly string[], verdict: string): readonly string[] {
  return names.length === 0 ? [] : [`${field} ${set(names.map((name) => `"${name}"`))} ${verdict}`];
}

function portRule(field: string, ports: readonly number[], verdict: string): readonly string[] {
  return ports.length === 0 ? [] : [`${field} ${set(ports)} ${verdict}`];
}

/** One rule a family. `match` comes first, so that a rule reads as "protocol, address, verdict". */
function rangeRules(
  field: "saddr" | "daddr",
  ranges: readonly IpRange[],
  match: string,
  verdict: string,
): readonly string[] {
  return ([4, 6] as const).flatMap((family) => {
    const own = withoutOverlaps(ranges.filter((range) => range.family === family)).map(rangeText);
    if (own.length === 0) return [];
    return [[match, family === 4 ? "ip" : "ip6", field, set(own), verdict].filter((part) => part !== "").join(" ")];
  });
}

function set(values: readonly (string | number)[]): string {
  return values.length === 1 ? String(values[0]) : `{ ${values.join(", ")} }`;
}
