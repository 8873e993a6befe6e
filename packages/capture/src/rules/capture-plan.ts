// Which connections of a pod or machine are led through its proxy: read from texts, as annotations and options have
// them, into a plan of checked values. What is wrong is told of each text by its name, all at once.
import { parseIpRange, type IpRange } from "./ip-range.ts";
import { parseInterfaces, parsePort, parsePorts, parseRanges, parseUserIds, WrongValue } from "./value-lists.ts";

/** Every port but those, or those alone. */
export interface PortSelection {
  readonly kind: "all-but" | "only";
  readonly ports: readonly number[];
}

/**
 * How what comes in reaches the proxy. REDIRECT: the kernel changes the destination, and tells the proxy what it was.
 * TPROXY: it does not, and the proxy may speak to the application from the client's own address. What programs send is
 * redirected in both.
 */
export type CaptureMode = "REDIRECT" | "TPROXY";

export interface CapturePlan {
  readonly mode: CaptureMode;
  /** The proxy's own, which capture leaves alone: by user, by group. */
  readonly proxyUids: readonly number[];
  readonly proxyGids: readonly number[];
  /** Ports where the proxy takes what was captured. */
  readonly outboundPort: number;
  readonly inboundPort: number;
  /** A port of the proxy's own, whose callers are not led to another one (Istio: HBONE). */
  readonly tunnelPort: number;
  readonly inboundPorts: PortSelection;
  readonly includedOutboundRanges: readonly IpRange[] | "all";
  readonly excludedOutboundRanges: readonly IpRange[];
  /** Captured whatever the address, unless that is excluded. */
  readonly includedOutboundPorts: readonly number[];
  readonly excludedOutboundPorts: readonly number[];
  /** Neither what comes in nor what leaves there is captured. */
  readonly excludedInterfaces: readonly string[];
  /** What comes in there was sent by a machine within the pod: it is treated as outbound. */
  readonly virtualInterfaces: readonly string[];
  /** Questions to port 53 of these servers go to the port; undefined: they go where they were sent. */
  readonly dns: { readonly port: number; readonly servers: readonly IpRange[] | "all" } | undefined;
}

const defaults = {
  proxyUid: "1337",
  outboundPort: "15001",
  inboundPort: "15006",
  tunnelPort: "15008",
  dnsPort: "15053",
  includeInboundPorts: "*",
  /** Merged metrics and probes, health, Prometheus: the platform asks there, without a certificate (Istio). */
  excludeInboundPorts: "15020,15021,15090",
  includeOutboundIpRanges: "*",
  excludeOutboundIpRanges: "",
  includeOutboundPorts: "",
  excludeOutboundPorts: "",
  excludeInterfaces: "",
  virtualInterfaces: "",
} as const;

/** Texts by name; one that is missing has istio-iptables' value, with "*" for what an injector would ask for. */
export type CaptureSettings = { readonly [Name in keyof typeof defaults | "proxyGid"]?: string | undefined } & {
  /** "resolvers": the servers that `nameservers` lists; "all": whoever is asked at port 53. */
  readonly dns?: "resolvers" | "all" | undefined;
  readonly mode?: CaptureMode | undefined;
  /** One with a zone (`fe80::1%eth0`) is left out: no rule can name it. */
  readonly nameservers?: readonly string[] | undefined;
};

export type CaptureSettingName = keyof CaptureSettings;

/** One thing that is wrong with a setting: `message` continues a sentence that begins with its name. */
export interface CaptureProblem {
  readonly setting: CaptureSettingName;
  readonly message: string;
}

export type PlanResult =
  | { readonly plan: CapturePlan; readonly problems: readonly [] }
  | { readonly plan: undefined; readonly problems: readonly CaptureProblem[] };

/** Names and meaning: Istio's annotations `traffic.sidecar.istio.io/…` and the options of istio-iptables. */
export function planCapture(settings: CaptureSettings): PlanResult {
  const problems: CaptureProblem[] = [];
  const read = <T>(name: keyof typeof defaults | "proxyGid", parse: (text: string) => T): T | undefined => {
    const text = settings[name] ?? (name === "proxyGid" ? (settings.proxyUid ?? defaults.proxyUid) : defaults[name]);
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
      problems.push({ setting: name, message: error.message });
      return undefined;
    }
  };
  const excludedInboundPorts = read("excludeInboundPorts", parsePorts);
  const includedInboundPorts = read("includeInboundPorts", allOr(parsePorts));
  const plan = {
    mode: settings.mode ?? "REDIRECT",
    proxyUids: read("proxyUid", parseUserIds),
    proxyGids: read("proxyGid", parseUserIds),
    outboundPort: read("outboundPort", parsePort),
    inboundPort: read("inboundPort", parsePort),
    tunnelPort: read("tunnelPort", parsePort),
    // Istio: which ports are excluded matters only where every other one is included.
    inboundPorts:
      includedInboundPorts === "all"
        ? ({ kind: "all-but", ports: excludedInboundPorts! } as const)
        : ({ kind: "only", ports: includedInboundPorts! } as const),
    includedOutboundRanges: read("includeOutboundIpRanges", allOr(parseRanges)),
    excludedOutboundRanges: read("excludeOutboundIpRanges", parseRanges),
    includedOutboundPorts: read("includeOutboundPorts", parsePorts),
    excludedOutboundPorts: read("excludeOutboundPorts", parsePorts),
    excludedInterfaces: read("excludeInterfaces", parseInterfaces),
    virtualInterfaces: read("virtualInterfaces", parseInterfaces),
    dns: undefined as CapturePlan["dns"],
  };
  const dnsPort = read("dnsPort", parsePort);
  problems.push(...disagreements(plan));
  if (settings.dns !== undefined && dnsPort !== undefined) {
    const { dns, nameservers = [] } = settings;
    const servers = dns === "all" ? dns : nameservers.flatMap((address) => parseIpRange(address) ?? []);
    if (servers.length === 0) {
      problems.push({ setting: "dns", message: "finds no name server: no line `nameserver ADDRESS` in resolv.conf" });
    }
    plan.dns = { port: dnsPort, servers };
  }
  return problems.length > 0 ? { plan: undefined, problems } : { plan: plan as CapturePlan, problems: [] };
}

function allOr<T>(parse: (text: string) => readonly T[]): (text: string) => readonly T[] | "all" {
  return (text) => (text.trim() === "*" ? "all" : parse(text));
}

/** Values that are right one by one. */
function disagreements(plan: {
  readonly [Name in keyof CapturePlan]: CapturePlan[Name] | undefined;
}): CaptureProblem[] {
  const found: CaptureProblem[] = [];
  const { proxyUids, proxyGids, outboundPort, inboundPort, excludedInterfaces, virtualInterfaces } = plan;
  if (outboundPort !== undefined && outboundPort === inboundPort) {
    found.push({
      setting: "inboundPort",
      message: `is ${inboundPort}, as the outbound port is: the proxy could not tell them apart`,
    });
  }
  // Without one, what the proxy sends would come back to it for ever.
  if (proxyUids?.length === 0 && proxyGids?.length === 0) {
    found.push({
      setting: "proxyUid",
      message: "is empty, as is proxyGid: what the proxy sends would come back to it",
    });
  }
  const both = virtualInterfaces?.find((name) => excludedInterfaces?.includes(name));
  if (both !== undefined) {
    found.push({ setting: "virtualInterfaces", message: `has ${both}, which excludeInterfaces has, too` });
  }
  return found;
}
