// Whether a listener that changes can keep its sockets.
import type { ListenAddress, Listener } from "../listener/listener.ts";

export function sameAddress(a: ListenAddress, b: ListenAddress): boolean {
  return a.ip === b.ip && a.port === b.port && a.takesIpv4 === b.takesIpv4 && a.isTransparent === b.isTransparent;
}

/** Whether sockets of the one can serve the other. */
export function sameAddresses(a: Listener, b: Listener): boolean {
  return (
    a.bindToPort === b.bindToPort &&
    a.addresses.length === b.addresses.length &&
    a.addresses.every((address, index) => sameAddress(address, b.addresses[index]!))
  );
}
