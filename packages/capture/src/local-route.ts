// Asks the kernel where it would deliver a packet: rtnetlink(7), the question of `ip route get`.
import { addressBytes } from "./ip-address.ts";
import { closeDescriptor, openNetlink, receiveMessage, sendMessage } from "./kernel.ts";

/** NETLINK_ROUTE. */
const routeProtocol = 0;
const headerBytes = 16;
/** `struct rtmsg`. */
const routeBytes = 12;
const attributeHeaderBytes = 4;

const typeNewRoute = 24;
const typeGetRoute = 26;
const typeError = 2;
const flagRequest = 1;
const attributeDestination = 1;
const families = { 4: 2, 16: 10 } as const;
/** RTN_LOCAL and RTN_ANYCAST (linux/rtnetlink.h). */
const deliveredHere: ReadonlySet<number> = new Set([2, 4]);

/**
 * Whether what goes to the address comes to this machine itself, in the network that the calling thread is in: also
 * where the address is of an interface without a carrier, or of a range that is routed here as a whole. Undefined where
 * the kernel does not say.
 */
export function isDeliveredHere(ip: string): boolean | undefined {
  const address = addressBytes(ip);
  if (address === undefined) return undefined;
  const netlink = openNetlink(routeProtocol);
  if (netlink === undefined) return undefined;
  try {
    const answer = new Uint8Array(4096);
    const length = sendMessage(netlink, question(address)) ? receiveMessage(netlink, answer) : undefined;
    if (length === undefined || length < headerBytes + routeBytes) return undefined;
    const type = new DataView(answer.buffer).getUint16(4, true);
    // An error: there is no way there.
    return type === typeError ? false : type === typeNewRoute ? deliveredHere.has(answer[headerBytes + 7]!) : undefined;
  } finally {
    closeDescriptor(netlink);
  }
}

/** `struct nlmsghdr`, `struct rtmsg`, and the attribute RTA_DST. */
function question(address: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(headerBytes + routeBytes + attributeHeaderBytes + address.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, bytes.length, true);
  view.setUint16(4, typeGetRoute, true);
  view.setUint16(6, flagRequest, true);
  bytes[headerBytes] = families[address.length as 4 | 16];
  bytes[headerBytes + 1] = address.length * 8;
  view.setUint16(headerBytes + routeBytes, attributeHeaderBytes + address.length, true);
  view.setUint16(headerBytes + routeBytes + 2, attributeDestination, true);
  bytes.set(address, headerBytes + routeBytes + attributeHeaderBytes);
  return bytes;
}
