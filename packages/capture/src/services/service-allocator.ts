// Gives Services their addresses and node ports, as Kubernetes' API server does: those that are asked for, and free
// ones to all others. Where it looks first is a matter of the Service's name: after a restart most have what they had.
import { createHash } from "node:crypto";
import { addressBytes, plainAddressText } from "../ip-address.ts";
import { holds, parseIpRange, type IpRange } from "../rules/ip-range.ts";
import {
  clusterAddresses,
  inOrderOfAge,
  isHeadless,
  serviceKey,
  type ClusterService,
  type ServiceProblem,
} from "./cluster-objects.ts";
import { isOnNodes } from "./service-ports.ts";

export interface AllocatorOptions {
  /** One of each family at the most; the first is that of Services that ask for none. */
  readonly clusterRanges: readonly string[];
  /** Both ends are in it. Default 30000 to 32767. */
  readonly nodePorts?: readonly [number, number];
}

export interface Allocation<T extends ClusterService> {
  /** With their addresses and node ports; one that could have no address has none. */
  readonly services: readonly T[];
  readonly problems: readonly ServiceProblem[];
}

const defaultNodePorts = [30_000, 32_767] as const;
/** Kubernetes keeps the beginning of each range for those that ask for a place, as long as there is another one. */
const keptAddresses = { share: 16, most: 256 } as const;
const keptNodePorts = { share: 32, most: 128 } as const;
const fewestKept = 16;
/** Of a range, as in Kubernetes. */
const mostHostBits = 20;
const fewestHostBits = 4;

/** As kube-apiserver's `--service-cluster-ip-range` takes them: one of each family at the most, none larger than it. */
export function parseClusterRanges(text: string): readonly string[] | undefined {
  const texts = text.split(",");
  const ranges = texts.flatMap((each) => parseIpRange(each) ?? []);
  const hostBits = ranges.map(({ address, prefixBits }) => address.length * 8 - prefixBits);
  const families = new Set(ranges.map(({ family }) => family));
  const isGood =
    families.size === texts.length && hostBits.every((bits) => bits >= fewestHostBits && bits <= mostHostBits);
  return isGood ? texts : undefined;
}

type Report = (path: string, message: string) => void;

export class ServiceAllocator {
  readonly #ranges: readonly AddressRange[];
  readonly #nodePorts: readonly [number, number];
  /** Who has what: `10.96.0.7`, `tcp 30080`. */
  #owners: Map<string, string> = new Map();
  /** What was found for whom: for `shop/catalog 4` an address, for `shop/catalog tcp 80` a node port. */
  #found: Map<string, string> = new Map();

  /** @throws for a range that is none */
  constructor({ clusterRanges, nodePorts = defaultNodePorts }: AllocatorOptions) {
    this.#ranges = clusterRanges.map((text) => new AddressRange(text));
    this.#nodePorts = nodePorts;
  }

  /** For all Services that there are: what others had is free again. */
  allocate<T extends ClusterService>(services: readonly T[]): Allocation<T> {
    const known = new Set(services.map(serviceKey));
    this.#owners = new Map([...this.#owners].filter(([, owner]) => known.has(owner)));
    const problems: ServiceProblem[] = [];
    const wanted = inOrderOfAge(services).filter(({ spec }) => spec.type !== "ExternalName");
    const reportFor =
      (service: T): Report =>
      (path, message) =>
        void problems.push({ service: service.metadata, path, message });
    const previous = this.#found;
    this.#found = new Map();
    // What is asked for comes before what may be anything.
    const written = new Map(wanted.map((service) => [service, this.#takeWritten(service, reportFor(service))]));
    const done = new Map<T, T>();
    for (const [service, taken] of written) {
      const report = reportFor(service);
      const families = this.#familiesOf(service, report);
      const addresses = this.#addresses(service, families.ranges, taken.addresses, previous, report);
      const ports = this.#ports(service, taken.ports, previous, report);
      done.set(service, withPlaces(service, families, addresses, ports));
    }
    // What somebody had before, and has given up, is free from now on.
    this.#owners = new Map([...done.values()].flatMap((service) => placesOf(service)));
    return { services: services.map((service) => done.get(service) ?? service), problems };
  }

  #takeWritten(service: ClusterService, report: Report): TakenPlaces {
    const owner = serviceKey(service);
    const addresses = clusterAddresses(service).flatMap((text, index) => {
      const path = service.spec.clusterIPs === undefined ? "spec.clusterIP" : `spec.clusterIPs[${index}]`;
      const range = this.#ranges.find((each) => each.holds(text));
      if (range === undefined) {
        report(path, `${text} is in none of the ranges of Services (${this.#ranges.join(", ")})`);
        return [];
      }
      const address = plainAddressText(addressBytes(text)!);
      return this.#take(address, owner, (other) => report(path, `${text} is the Service ${other}'s already`))
        ? [address]
        : [];
    });
    const [first, last] = this.#nodePorts;
    const ports = service.spec.ports.map(({ nodePort = 0, protocol }, index) => {
      if (nodePort === 0 || !isOnNodes(service)) return 0;
      const path = `spec.ports[${index}].nodePort`;
      if (nodePort < first || nodePort > last) {
        report(path, `${nodePort} is no node port: they go from ${first} to ${last}`);
        return 0;
      }
      const isTaken = this.#take(portKey(protocol, nodePort), owner, (other) =>
        report(path, `the node port ${nodePort} is the Service ${other}'s already`),
      );
      return isTaken ? nodePort : 0;
    });
    return { addresses, ports };
  }

  #take(what: string, owner: string, isTaken: (other: string) => void): boolean {
    const other = this.#owners.get(what);
    if (other !== undefined && other !== owner) {
      isTaken(other);
      return false;
    }
    this.#owners.set(what, owner);
    return true;
  }

  #addresses(
    service: ClusterService,
    ranges: readonly AddressRange[],
    written: readonly string[],
    previous: ReadonlyMap<string, string>,
    report: Report,
  ): readonly string[] {
    if (isHeadless(service)) return [];
    // Who asked for an address that it cannot have gets no other one.
    if (written.length === 0 && clusterAddresses(service).length > 0) return [];
    const owner = serviceKey(service);
    const all = [...written];
    for (const range of ranges) {
      const key = `${owner} ${range.family}`;
      const own = all.find((address) => range.holds(address));
      if (own !== undefined) {
        // It stays when it is no longer asked for.
        this.#found.set(key, own);
        continue;
      }
      const address = this.#find(owner, previous.get(key), range.candidates(owner));
      if (address === undefined) report("spec.clusterIP", `no address of ${range.text} is free`);
      else {
        this.#found.set(key, address);
        all.push(address);
      }
    }
    return all;
  }

  /** The one that it had, or the first that is free. */
  #find(owner: string, had: string | undefined, candidates: Iterable<string>): string | undefined {
    if (had !== undefined && (this.#owners.get(had) ?? owner) === owner) {
      this.#owners.set(had, owner);
      return had;
    }
    for (const candidate of candidates) {
      if (this.#owners.has(candidate)) continue;
      this.#owners.set(candidate, owner);
      return candidate;
    }
    return undefined;
  }

  /** Those that are asked for: by name, else by the addresses that are written. */
  #familiesOf(service: ClusterService, report: Report): Families {
    const { ipFamilies = familiesOfAddresses(service) } = service.spec;
    const { ipFamilyPolicy: policy = ipFamilies.length > 1 ? "RequireDualStack" : "SingleStack" } = service.spec;
    return { policy, ranges: this.#rangesOf(ipFamilies, policy, report) };
  }

  #rangesOf(ipFamilies: readonly string[], ipFamilyPolicy: string, report: Report): readonly AddressRange[] {
    const asked = ipFamilies.flatMap((name) => this.#ranges.find(({ family }) => name === `IPv${family}`) ?? []);
    if (asked.length < ipFamilies.length && ipFamilyPolicy !== "PreferDualStack") {
      report("spec.ipFamilies", `there is no range of Services for ${ipFamilies.join(" and ")}`);
    }
    const ranges = [...new Set([...asked, ...(ipFamilies.length > 0 && asked.length === 0 ? [] : this.#ranges)])];
    if (ipFamilyPolicy === "SingleStack") return ranges.slice(0, 1);
    if (ipFamilyPolicy === "RequireDualStack" && ranges.length < 2) {
      report("spec.ipFamilyPolicy", "RequireDualStack takes a range of Services of each family");
      return [];
    }
    return ranges;
  }

  #ports(
    service: ClusterService,
    written: readonly number[],
    previous: ReadonlyMap<string, string>,
    report: Report,
  ): readonly number[] {
    if (!isOnNodes(service)) return written;
    const owner = serviceKey(service);
    return service.spec.ports.map(({ nodePort = 0, port, protocol }, index) => {
      const key = `${owner} ${protocol} ${port}`;
      if (nodePort !== 0) {
        const own = written[index] ?? 0;
        if (own !== 0) this.#found.set(key, portKey(protocol, own));
        return own;
      }
      const found = this.#find(owner, previous.get(key), nodePortCandidates(key, protocol, this.#nodePorts));
      if (found === undefined) {
        report(`spec.ports[${index}].nodePort`, "no node port is free");
        return 0;
      }
      this.#found.set(key, found);
      return Number(found.split(" ")[1]);
    });
  }
}

interface Families {
  readonly policy: string;
  /** In the Service's order; none where it cannot have those that it asks for. */
  readonly ranges: readonly AddressRange[];
}

interface TakenPlaces {
  readonly addresses: readonly string[];
  /** As many as the Service has; 0: none. */
  readonly ports: readonly number[];
}

function withPlaces<T extends ClusterService>(
  service: T,
  { ranges, policy }: Families,
  addresses: readonly string[],
  ports: readonly number[],
): T {
  const families =
    ranges.length === 0 ? {} : { ipFamilies: ranges.map(({ family }) => `IPv${family}`), ipFamilyPolicy: policy };
  if (isHeadless(service)) return { ...service, spec: { ...service.spec, ...families } };
  const { clusterIP: _one, clusterIPs: _all, ...spec } = service.spec;
  return {
    ...service,
    spec: {
      ...spec,
      ...families,
      ...(addresses.length > 0 ? { clusterIP: addresses[0], clusterIPs: addresses } : {}),
      ports: service.spec.ports.map((port, index) => {
        const { nodePort: _written, ...rest } = port;
        return (ports[index] ?? 0) > 0 ? { ...rest, nodePort: ports[index] } : rest;
      }),
    },
  };
}

/** Of a Service that has its own: what, and whose it is. */
function placesOf(service: ClusterService): readonly (readonly [place: string, owner: string])[] {
  const owner = serviceKey(service);
  const ports = service.spec.ports.flatMap(({ nodePort = 0, protocol }) =>
    nodePort === 0 || !isOnNodes(service) ? [] : [portKey(protocol, nodePort)],
  );
  return [...clusterAddresses(service), ...ports].map((place) => [place, owner]);
}

function familiesOfAddresses(service: ClusterService): readonly string[] {
  return clusterAddresses(service).map((address) => (address.includes(":") ? "IPv6" : "IPv4"));
}

function portKey(protocol: string | undefined, port: number): string {
  return `${(protocol ?? "TCP").toLowerCase()} ${port}`;
}

function* nodePortCandidates(
  key: string,
  protocol: string | undefined,
  [first, last]: readonly [number, number],
): Iterable<string> {
  for (const place of places(key, last - first + 1, keptNodePorts)) yield portKey(protocol, first + place);
}

/** All places of a range: from one by the name to the range's end and on behind what is kept, that at last. */
function* places(key: string, size: number, kept: typeof keptAddresses | typeof keptNodePorts): Iterable<number> {
  const begin = size <= fewestKept ? 0 : Math.min(Math.max(fewestKept, Math.floor(size / kept.share)), kept.most);
  const others = size - begin;
  const start = createHash("sha256").update(key).digest().readUInt32BE(0) % others;
  for (let step = 0; step < others; step += 1) yield begin + ((start + step) % others);
  for (let place = 0; place < begin; place += 1) yield place;
}

class AddressRange {
  readonly text: string;
  readonly #range: IpRange;

  constructor(text: string) {
    const range = parseIpRange(text);
    if (range === undefined) throw new Error(`${JSON.stringify(text)} is no range of addresses`);
    this.text = text;
    this.#range = range;
  }

  get family(): 4 | 6 {
    return this.#range.family;
  }

  holds(address: string): boolean {
    const range = address.includes("/") ? undefined : parseIpRange(address);
    return range !== undefined && holds(this.#range, range);
  }

  toString(): string {
    return this.text;
  }

  /** Neither the range's own address nor, of IPv4, its last one. */
  *candidates(owner: string): Iterable<string> {
    const { address, prefixBits, family } = this.#range;
    const hostBits = Math.min(address.length * 8 - prefixBits, mostHostBits);
    const size = 2 ** hostBits - (family === 4 ? 2 : 1);
    if (size < 1) return;
    for (const place of places(owner, size, keptAddresses)) yield plainAddressText(plus(address, place + 1));
  }
}

/** The bits behind the prefix are zero, and hold the number. */
function plus(address: Uint8Array, number: number): Uint8Array {
  const result = Buffer.from(address);
  const at = result.length - 4;
  result.writeUInt32BE((result.readUInt32BE(at) | number) >>> 0, at);
  return result;
}
