// How often an address may try a token that is none: secrets have 256 bits, so that what is bounded is work and noise.
import { isIPv6 } from "node:net";

const maxFailures = 10;
const windowMs = 60_000;
/** The oldest makes way: whoever has very many addresses gains what he would gain by waiting. */
const maxAddresses = 4096;

export class TryLimit {
  readonly #nowMs: () => number;
  readonly #failures = new Map<string, { count: number; readonly sinceMs: number }>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  allows(address: string): boolean {
    const found = this.#failures.get(sourceOf(address));
    return found === undefined || found.count < maxFailures || this.#nowMs() >= found.sinceMs + windowMs;
  }

  failed(address: string): void {
    const source = sourceOf(address);
    const found = this.#failures.get(source);
    if (found !== undefined && this.#nowMs() < found.sinceMs + windowMs) {
      found.count += 1;
      return;
    }
    this.#failures.delete(source);
    this.#failures.set(source, { count: 1, sinceMs: this.#nowMs() });
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > maxAddresses && oldest !== undefined) this.#failures.delete(oldest);
  }
}

/** A host of IPv6 has all addresses of its network. */
function sourceOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);
  return [...groups, ...Array<string>(missing).fill("0"), ...(tail ?? "").split(":")].slice(0, 4).join(":");
}
