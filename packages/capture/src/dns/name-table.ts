// Names of the mesh, as the control plane sends them (Istio: NameTable), in the forms in which programs ask for them.
// What a name means is looked up; nothing is made for a form that nobody asks for: a table may have 100,000 hosts, and
// comes anew with every change.
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
  /** A Service or one of its pods: it has short forms (`catalog.shop`). */
  readonly isKubernetes?: boolean;
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
  readonly searchDomains: () => readonly string[];
}

/** `alias`: the name is one of a search path, and the host is known by this one. */
export interface FoundName {
  readonly host: NamedHost;
  readonly alias?: string;
}

const none: readonly never[] = [];

export class NamedHost {
  readonly hostname: string;
  readonly isKubernetes: boolean;
  readonly ports: readonly NamedPort[];
  readonly targets: readonly string[];
  /** As they came. */
  readonly texts: readonly string[];
  #addresses: Readonly<Record<"ipv4" | "ipv6", readonly Uint8Array[]>> | undefined;

  constructor(hostname: string, { addresses, isKubernetes = false, ports = none, targets = none }: NameEntry) {
    this.hostname = hostname;
    this.isKubernetes = isKubernetes;
    this.ports = ports;
    this.targets = targets;
    this.texts = addresses;
  }

  get ipv4(): readonly Uint8Array[] {
    return this.#read().ipv4;
  }

  get ipv6(): readonly Uint8Array[] {
    return this.#read().ipv6;
  }

  /** Once, by the first who asks. */
  #read(): Readonly<Record<"ipv4" | "ipv6", readonly Uint8Array[]>> {
    if (this.#addresses !== undefined) return this.#addresses;
    const all = this.texts.flatMap((text) => addressBytes(text) ?? none);
    return (this.#addresses = {
      ipv4: all.filter(({ length }) => length === 4),
      ipv6: all.filter(({ length }) => length === 16),
    });
  }
}

export class NameTable {
  readonly #options: NameTableOptions;
  readonly #hosts = new Map<string, NamedHost>();
  #parents: ReadonlySet<string> | undefined;
  #byAddress: ReadonlyMap<string, string> | undefined;

  constructor(entries: Iterable<NameEntry>, options: NameTableOptions) {
    this.#options = options;
    for (const entry of entries) {
      const name = normal(entry.hostname);
      this.#hosts.set(name, new NamedHost(name, entry));
    }
  }

  get size(): number {
    return this.#hosts.size;
  }

  /** `name`: in lower case, without the dot at its end. */
  find(name: string): FoundName | undefined {
    const host = this.#hosts.get(name) ?? this.#findShort(name);
    if (host !== undefined) return { host };
    for (const domain of this.#options.searchDomains()) {
      const end = `.${normal(domain)}`;
      if (!name.endsWith(end)) continue;
      const alias = name.slice(0, -end.length);
      const outside = this.#hosts.get(alias);
      // A Service's short forms are known already, and its own name has no search domain behind it.
      if (outside?.isKubernetes === false) return { host: outside, alias };
    }
    for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
      const wildcard = this.#hosts.get(`*${name.slice(dot)}`);
      if (wildcard !== undefined) return { host: wildcard };
    }
    return undefined;
  }

  /** Whether there are names below this one: it is no host, but there is such a name (RFC 8020). */
  hasBelow(name: string): boolean {
    this.#parents ??= parentsOf(this.#hosts.keys());
    return this.#parents.has(name);
  }

  /** The host that has the address to itself. */
  nameOf(address: Uint8Array): string | undefined {
    this.#byAddress ??= byAddress(this.#hosts.values());
    return this.#byAddress.get(addressKey(address));
  }

  /** As a resolver without a search path asks for a Service: `catalog`, `catalog.shop`, `catalog.shop.svc`. */
  #findShort(name: string): NamedHost | undefined {
    const { namespace, serviceDomain } = this.#options;
    const dot = serviceDomain.indexOf(".");
    const isService = name.endsWith(`.${serviceDomain.slice(0, dot)}`);
    const ends = [`${namespace}.${serviceDomain}`, serviceDomain, ...(isService ? [serviceDomain.slice(dot + 1)] : [])];
    for (const end of ends) {
      const host = this.#hosts.get(`${name}.${end}`);
      if (host?.isKubernetes === true) return host;
    }
    return undefined;
  }
}

function parentsOf(names: Iterable<string>): ReadonlySet<string> {
  const parents = new Set<string>();
  for (const name of names) {
    for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
      const parent = name.slice(dot + 1);
      if (parents.has(parent)) break;
      parents.add(parent);
    }
  }
  return parents;
}

function byAddress(hosts: Iterable<NamedHost>): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const { hostname, texts, targets } of hosts) {
    if (targets.length > 0 || hostname.startsWith("*")) continue;
    for (const text of texts) {
      // Of IPv4 there is one spelling.
      const bytes = text.includes(":") ? addressBytes(text) : undefined;
      names.set(bytes === undefined ? text : addressKey(bytes), hostname);
    }
  }
  return names;
}

function normal(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

function addressKey(address: Uint8Array): string {
  return address.length === 4 ? address.join(".") : Buffer.from(address).toString("latin1");
}
