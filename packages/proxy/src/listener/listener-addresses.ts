// Which listener has an address: where a connection that was redirected is handed to (Envoy:
// ConnectionHandlerImpl::getBalancedHandlerByAddress).
import { isIPv6 } from "node:net";
import { canonicalIp } from "../http/canonical-ip.ts";
import type { ListenAddress } from "./listener.ts";

export class ListenerAddresses<T> {
  readonly #byAddress = new Map<string, T>();

  /** Of two with the same address the one that comes first has it. */
  add(address: ListenAddress, listener: T): void {
    const { ip, port, takesIpv4 = false } = address;
    for (const key of takesIpv4 ? [keyOf(ip, port), keyOf("0.0.0.0", port)] : [keyOf(ip, port)]) {
      if (!this.#byAddress.has(key)) this.#byAddress.set(key, listener);
    }
  }

  /** The listener with exactly that address, else the one of all addresses of its family with that port. */
  find(ip: string, port: number): T | undefined {
    return this.#byAddress.get(keyOf(ip, port)) ?? this.#byAddress.get(keyOf(isIPv6(ip) ? "::" : "0.0.0.0", port));
  }
}

/** Configuration may write an address of IPv6 in many ways, the kernel's answer has one. */
function keyOf(ip: string, port: number): string {
  return `${canonicalIp(ip)} ${port}`;
}
