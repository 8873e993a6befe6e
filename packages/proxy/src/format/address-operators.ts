// Operators of addresses: each whole, without its port (cut to a network by a prefix length), and the port alone.
import { isIP } from "node:net";
import { number, ofOptional, text } from "./operator-makers.ts";
import type { FormatValue, OperatorCompiler } from "./operator.ts";

export function withoutPort(address: string | undefined): string | undefined {
  if (address === undefined || address.charCodeAt(0) === 0x2f /* / */) return address;
  // A port is short: to look for its colon by `lastIndexOf` took a call of V8's runtime for each span.
  let colon = address.length - 1;
  while (colon >= 0 && address.charCodeAt(colon) !== 0x3a /* : */) colon -= 1;
  if (colon < 0) return address;
  return address.charCodeAt(0) === 0x5b /* [ */ ? address.slice(1, colon - 1) : address.slice(0, colon);
}

function portOf(address: string | undefined): string | undefined {
  if (address === undefined || address.startsWith("/")) return undefined;
  const colon = address.lastIndexOf(":");
  return colon < 0 ? undefined : address.slice(colon + 1);
}

/** `10.1.0.0/16`; more bits than there are mean all of them. */
function networkOf(ip: string, prefixLength: number): string {
  const bits = isIP(ip) === 6 ? 128 : 32;
  const length = Math.min(prefixLength, bits);
  const hostBits = BigInt(bits - length);
  const network = (addressNumber(ip) >> hostBits) << hostBits;
  const groups = Array.from({ length: bits === 32 ? 4 : 8 }, (_, index, size = bits === 32 ? 8n : 16n) =>
    BigInt.asUintN(Number(size), network >> (BigInt(bits) - size * BigInt(index + 1))),
  );
  if (bits === 32) return `${groups.join(".")}/${length}`;
  // A URL writes it in its short form (RFC 5952).
  const { hostname } = new URL(`http://[${groups.map((group) => group.toString(16)).join(":")}]`);
  return `${hostname.slice(1, -1)}/${length}`;
}

function addressNumber(ip: string): bigint {
  if (isIP(ip) === 4) return ip.split(".").reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const [head = "", tail] = new URL(`http://[${ip}]`).hostname.slice(1, -1).split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const groups = [...left, ...Array<string>(8 - left.length - right.length).fill("0"), ...right];
  return groups.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
}

const maskPattern = /^\d{1,3}$/;

function withoutPortOperator(read: FormatValue): OperatorCompiler {
  const plain: FormatValue = (info, request, response) => withoutPort(read(info, request, response));
  return (argument) => {
    // What is no number is not looked at, as by Envoy.
    if (argument === undefined || !maskPattern.test(argument)) return { value: plain, isNumber: false };
    const prefixLength = Number(argument);
    const value: FormatValue = (info, request, response) => {
      const ip = plain(info, request, response);
      return ip === undefined || isIP(ip) === 0 ? ip : networkOf(ip, prefixLength);
    };
    return { value, isNumber: false };
  };
}

function addressOperators(prefix: string, read: FormatValue): Record<string, OperatorCompiler> {
  return {
    [`${prefix}_ADDRESS`]: text(read),
    [`${prefix}_ADDRESS_WITHOUT_PORT`]: withoutPortOperator(read),
    [`${prefix}_PORT`]: number((info, request, response) => portOf(read(info, request, response))),
  };
}

const list = (read: (info: Parameters<FormatValue>[0]) => readonly (string | undefined)[]): OperatorCompiler =>
  text((info) => ofOptional(read(info).join(",")));

/** Empty, where there is an address at all. */
const noEndpointId = (read: (info: Parameters<FormatValue>[0]) => string | undefined): OperatorCompiler =>
  text((info) => (read(info) === undefined ? undefined : ""));

const triedHosts = ({ triedHosts: tried, upstreamHost }: Parameters<FormatValue>[0]) =>
  tried ?? (upstreamHost === undefined ? [] : [upstreamHost]);

const upstreamHostName: FormatValue = ({ upstreamHost }) =>
  ofOptional(upstreamHost?.hostname) ?? upstreamHost?.addressText;

export const allAddressOperators: Readonly<Record<string, OperatorCompiler>> = {
  UPSTREAM_HOST: text((info) => info.upstreamHost?.addressText),
  UPSTREAM_HOST_NAME: text(upstreamHostName),
  UPSTREAM_HOST_NAME_WITHOUT_PORT: text((info, request, response) =>
    withoutPort(upstreamHostName(info, request, response)),
  ),
  UPSTREAM_HOSTS_ATTEMPTED: list((info) => triedHosts(info).map(({ addressText }) => addressText)),
  UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT: list((info) => triedHosts(info).map((host) => withoutPort(host.addressText))),
  UPSTREAM_HOST_NAMES_ATTEMPTED: list((info) =>
    triedHosts(info).map(({ hostname, addressText }) => ofOptional(hostname) ?? addressText),
  ),
  UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT: list((info) =>
    triedHosts(info).map(({ hostname, addressText }) => withoutPort(ofOptional(hostname) ?? addressText)),
  ),
  ...addressOperators("UPSTREAM_REMOTE", (info) =>
    // The peer of a connection, which a host that could not be reached is not.
    info.upstreamLocalAddress === undefined ? undefined : info.upstreamHost?.addressText,
  ),
  // Addresses of internal listeners have one, and there are none.
  UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID: noEndpointId((info) => info.upstreamLocalAddress),
  DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID: noEndpointId((info) => info.downstreamLocalAddress),
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID: noEndpointId((info) => info.downstreamDirectLocalAddress),
  ...addressOperators("UPSTREAM_LOCAL", (info) => info.upstreamLocalAddress),
  ...addressOperators("DOWNSTREAM_LOCAL", (info) => info.downstreamLocalAddress),
  ...addressOperators("DOWNSTREAM_DIRECT_LOCAL", (info) => info.downstreamDirectLocalAddress),
  ...addressOperators("DOWNSTREAM_REMOTE", (info) => info.downstreamRemoteAddress),
  ...addressOperators("DOWNSTREAM_DIRECT_REMOTE", (info) => info.downstreamDirectRemoteAddress),
};
