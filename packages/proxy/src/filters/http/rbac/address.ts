// IP addresses and ports out of the `ip:port` texts of a stream's addresses.

/** `10.0.0.1` of `10.0.0.1:80`, `::1` of `[::1]:80`. */
export function ipOf(address: string): string {
  const colon = address.lastIndexOf(":");
  return address.startsWith("[") ? address.slice(1, colon - 1) : address.slice(0, colon);
}

/** -1 when the address has none, such as a Unix socket's. */
export function portOf(address: string): number {
  const port = Number(address.slice(address.lastIndexOf(":") + 1));
  return Number.isInteger(port) ? port : -1;
}

/** An IPv4 address, with or without a port, as a number below 2^32; -1 when it is none. */
export function ipv4Of(address: string): number {
  let value = 0;
  let part = 0;
  let parts = 0;
  for (let index = 0; index < address.length; index += 1) {
    const code = address.charCodeAt(index);
    if (code >= 0x30 && code <= 0x39) {
      part = part * 10 + (code - 0x30);
    } else if (code === 0x2e) {
      value = value * 256 + part;
      part = 0;
      parts += 1;
    } else if (code === 0x3a && parts === 3) {
      break;
    } else {
      return -1;
    }
  }
  return parts === 3 ? value * 256 + part : -1;
}

/** The address with everything behind its first `prefixLength` bits set to 0. */
export function maskedIpv4(ip: number, prefixLength: number): number {
  return prefixLength === 0 ? 0 : (ip & (0xff_ff_ff_ff << (32 - prefixLength))) >>> 0;
}
