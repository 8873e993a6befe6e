// Names of the mesh, as the control plane sends them (Istio: NameTable), in the forms in which programs ask for them.
// What a name means is looked up; nothing is made for a form that nobody asks for.
import { addressBytes } from "../ip-address.ts";

export interface NamedPort {
  readonly name: string;
  readonly protocol: "tcp" | "udp";
  readonly port: number;
}

/** One host of the mesh. */
export interface NameEntry {
  /** `catalog.shop.svc.cluster.local`, `api.example.com`, `*.example.com` */
  readonly hostname: string;
  /** IPv4 and IPv6, as text; what is no address is passed over. */
  readonly addresses: readonly string[];
  /** Of a Service or one of its pods: `catalog` of `shop`. They have short forms. */
  readonly kubernetes?: { readonly shortName: string; readonly namespace: string };
  /** SRV records. */
  readonly ports?: readonly NamedPort[];
  /** Hosts behind a headless Service: its SRV records lead to them. */
  readonly targets?: readonly string[];
}

export interface NameTableOptions {
  /** Of the workload: its short names are those of this namespace. */
  readonly namespace: string;
  /** `svc.cluster.local` */
  readonly serviceDomain: string;
  /** Of resolv.conf: what the workload's resolver puts behind a name that it is given. */
  readonly searchDomains: readonly string[];
}

export interface NamedHost {
  readonly hostname: string;
  readonly ipv4: readonly Uint8Array[];
  readonly ipv6: readonly Uint8Array[];
  readonly ports: readonly NamedPort[];
  readonly targets: readonly string[];
}

/** `alias`: the name is one of a search path, and the host is known by this one. */
export interface FoundName {
  readonly host: NamedHost;
  readonly alias?: string;
}

export class NameTable {
  readonly #hosts = new Map<string, NamedHost>();
  /** Hosts that are no Services: their names may come with a search domain behind them. */
  readonly #outside = new Set<string>();
  readonly #byAddress = new Map<string, string>();
  readonly #searchEnds: readonly string[];

  constructor(entries: Iterable<NameEntry>, options: NameTableOptions) {
    this.#searchEnds = options.searchDomains.map((domain) => `.${normal(domain)}`);
    for (const entry of entries) this.#add(entry, options);
  }

  get size(): number {
    return this.#hosts.size;
  }

  /** `name`: in lower case, without the dot at its end. */
  find(name: string): FoundName | undefined {
    const host = this.#hosts.get(name);
    if (host !== undefined) return { host };
    for (const end of this.#searchEnds) {
      if (!name.endsWith(end)) continue;
      const alias = name.slice(0, -end.length);
      if (this.#outside.has(alias)) return { host: this.#hosts.get(alias)!, alias };
    }
    for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
      const wildcard = this.#hosts.get(`*${name.slice(dot)}`);
      if (wildcard !== undefined) return { host: wildcard };
    }
    return undefined;
  }

  /** The host that has the address to itself. */
  nameOf(address: Uint8Array): string | undefined {
    return this.#byAddress.get(addressKey(address));
  }

  #add({ hostname, addresses, kubernetes, ports = [], targets = [] }: NameEntry, options: NameTableOptions): void {
    const name = normal(hostname);
    const all = addresses.flatMap((address) => addressBytes(address) ?? []);
    const host: NamedHost = {
      hostname: name,
      ipv4: all.filter(({ length }) => length === 4),
      ipv6: all.filter(({ length }) => length === 16),
      ports,
      targets,
    };
    this.#hosts.set(name, host);
    if (targets.length === 0 && !name.startsWith("*"))
      for (const address of all) this.#byAddress.set(addressKey(address), name);
    if (kubernetes === undefined) {
      this.#outside.add(name);
      return;
    }
    for (const short of shortForms(kubernetes, options)) if (!this.#hosts.has(short)) this.#hosts.set(short, host);
  }
}

/** As a resolver without a search path asks for a Service. */
function* shortForms(
  { shortName, namespace }: { readonly shortName: string; readonly namespace: string },
  { namespace: own, serviceDomain }: NameTableOptions,
): Generator<string> {
  const base = normal(shortName);
  if (namespace === own) yield base;
  yield `${base}.${namespace}`;
  const [service] = serviceDomain.split(".", 1);
  yield `${base}.${namespace}.${service}`;
}

function normal(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

function addressKey(address: Uint8Array): string {
  return address.join(".");
}
