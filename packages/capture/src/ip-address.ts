// An address as the kernel takes it: 4 or 16 bytes in network order.
import net from "node:net";

/**
 * An IPv4 address that is written as one of IPv6 gives its four bytes. Undefined for what is no address, or has a zone.
 */
export function addressBytes(ip: string): Uint8Array | undefined {
  if (net.isIPv4(ip)) return Uint8Array.from(ip.split("."), Number);
  return net.isIPv6(ip) && !ip.includes("%") ? shortForm(longAddressBytes(ip)) : undefined;
}

/** `::ffff:127.0.0.1`, an IPv4 address as a socket of IPv6 shows it (RFC 4291 §2.5.5.2). */
const mappedPrefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** The four bytes of an IPv4 address that is given as one of IPv6; every other address as it is. */
function shortForm(address: Uint8Array): Uint8Array {
  const isMapped = address.length === 16 && mappedPrefix.every((byte, index) => address[index] === byte);
  return isMapped ? address.subarray(12) : address;
}

/** As people write it, an address of IPv6 in brackets. */
export function addressText(address: Uint8Array): string {
  const text = plainAddressText(address);
  return text.includes(":") ? `[${text}]` : text;
}

/** As Node writes it: the short form of RFC 5952, without brackets. */
export function plainAddressText(address: Uint8Array): string {
  const short = shortForm(address);
  if (short.length === 4) return `${short[0]}.${short[1]}.${short[2]}.${short[3]}`;
  const groups = Array.from({ length: 8 }, (_, group) =>
    ((short[group * 2]! << 8) | short[group * 2 + 1]!).toString(16),
  );
  // The URL standard's parser writes the short form (RFC 5952).
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}

export function isSameAddress(a: Uint8Array, b: Uint8Array): boolean {
  const [first, second] = [shortForm(a), shortForm(b)];
  return first.length === second.length && first.every((byte, index) => byte === second[index]);
}

function longAddressBytes(ip: string): Uint8Array {
  const [before = "", after = ""] = ip.split("::");
  const head = groupBytes(before);
  const tail = groupBytes(after);
  return Uint8Array.from([...head, ...Array<number>(16 - head.length - tail.length).fill(0), ...tail]);
}

function groupBytes(groups: string): readonly number[] {
  if (groups === "") return [];
  return groups.split(":").flatMap((group) => {
    if (group.includes(".")) return group.split(".").map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
