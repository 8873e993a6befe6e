// What the mesh knows of a question: the answer's bytes, or that somebody else has to be asked.
import { type DnsAnswer, type DnsQuery, type DnsRecord, noRecords, recordType, responseCode } from "./dns-message.ts";
import type { FoundName, NamedHost, NamedPort, NameTable } from "./name-table.ts";

export interface AnswerContext {
  readonly names: NameTable;
  /** Domains of which nobody else knows anything, such as `cluster.local` where no cluster is. */
  readonly ownDomains: readonly string[];
  /** Where among a host's addresses the answer begins: clients mostly take the first one. */
  readonly turn: number;
}

const noName: DnsAnswer = { code: responseCode.nameError, answers: noRecords };
const noData: DnsAnswer = { code: responseCode.noError, answers: noRecords };

/** Undefined: the name is none of the mesh's. */
export function answerQuery({ name, type }: DnsQuery, context: AnswerContext): DnsAnswer | undefined {
  const { names, ownDomains } = context;
  const reverse = reverseAddress(name);
  if (reverse !== undefined) return reverseAnswer(names.nameOf(reverse), type);
  const found = names.find(name);
  if (found !== undefined) return hostAnswer(found, type, context);
  const service = serviceName(name);
  const host = service && names.find(service.host)?.host;
  if (service !== undefined && host !== undefined) {
    const ports = host.ports.filter(
      ({ name: port, protocol }) => port === service.port && protocol === service.protocol,
    );
    if (ports.length === 0) return noName;
    return type === recordType.SRV || type === recordType.ANY ? serviceAnswer(host, ports, names) : noData;
  }
  const isApex = ownDomains.includes(name);
  if (!isApex && !ownDomains.some((domain) => name.endsWith(`.${domain}`))) return undefined;
  return isApex || names.hasBelow(name) ? noData : noName;
}

function reverseAnswer(target: string | undefined, type: number): DnsAnswer | undefined {
  if (target === undefined) return undefined;
  const isAsked = type === recordType.PTR || type === recordType.ANY;
  return isAsked ? { code: responseCode.noError, answers: [{ type: recordType.PTR, target }] } : noData;
}

/**
 * A name that is known has an answer for every type, if an empty one: a "no such name" for AAAA would hold for A, too
 * (RFC 8020).
 */
function hostAnswer({ host, alias }: FoundName, type: number, { names, turn }: AnswerContext): DnsAnswer {
  if (type === recordType.SRV) return alias === undefined ? serviceAnswer(host, host.ports, names) : noData;
  const records: DnsRecord[] = [];
  if (alias !== undefined) records.push({ type: recordType.CNAME, target: alias });
  const owner = alias === undefined ? {} : { name: alias };
  const isAny = type === recordType.ANY;
  if (type === recordType.A || isAny) records.push(...addressRecords(host.ipv4, turn, recordType.A, owner));
  if (type === recordType.AAAA || isAny) records.push(...addressRecords(host.ipv6, turn, recordType.AAAA, owner));
  return { code: responseCode.noError, answers: records };
}

function addressRecords(
  addresses: readonly Uint8Array[],
  turn: number,
  type: number,
  owner: Pick<DnsRecord, "name">,
): readonly DnsRecord[] {
  return addresses.map((_, index) => ({
    ...owner,
    type,
    data: addresses[(index + turn) % addresses.length]!,
  }));
}

/** RFC 2782; as Kubernetes does: a Service leads to itself, a headless one to each of its pods. */
function serviceAnswer(host: NamedHost, ports: readonly NamedPort[], names: NameTable): DnsAnswer {
  const targets = host.targets.length === 0 ? [host.hostname] : host.targets;
  const weight = Math.max(1, Math.floor(100 / targets.length));
  const answers = ports.flatMap(({ port }) =>
    targets.map((target) => ({ type: recordType.SRV, data: serviceData(weight, port), target })),
  );
  const additional = targets.flatMap((name) => {
    const target = names.find(name)?.host;
    if (answers.length === 0 || target === undefined) return [];
    return [
      ...addressRecords(target.ipv4, 0, recordType.A, { name }),
      ...addressRecords(target.ipv6, 0, recordType.AAAA, { name }),
    ];
  });
  return { code: responseCode.noError, answers, additional };
}

function serviceData(weight: number, port: number): Uint8Array {
  const data = Buffer.alloc(6); // the priority is 0
  data.writeUInt16BE(weight, 2);
  data.writeUInt16BE(port, 4);
  return data;
}

/** `_http._tcp.catalog.shop.svc.cluster.local` */
function serviceName(
  name: string,
): { readonly port: string; readonly protocol: "tcp" | "udp"; readonly host: string } | undefined {
  const match = /^_([^.]+)\._(tcp|udp)\.(.+)$/.exec(name);
  return match === null ? undefined : { port: match[1]!, protocol: match[2] as "tcp" | "udp", host: match[3]! };
}

/** `4.3.2.1.in-addr.arpa` (RFC 1035 §3.5), and the 32 digits of `ip6.arpa` (RFC 3596 §2.5). */
function reverseAddress(name: string): Uint8Array | undefined {
  const ipv4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.in-addr\.arpa$/.exec(name);
  if (ipv4 !== null) {
    const bytes = ipv4.slice(1).map(Number).reverse();
    return bytes.every((byte) => byte < 256) ? Uint8Array.from(bytes) : undefined;
  }
  const ipv6 = /^((?:[0-9a-f]\.){32})ip6\.arpa$/.exec(name);
  return ipv6 === null ? undefined : Buffer.from(ipv6[1]!.replaceAll(".", "").split("").reverse().join(""), "hex");
}
