// Waits until a sidecar has answered all that it took. Its admin page is read by the same event loop as its
// connections: an answer without a request in it means that what had come before the question is answered too.
import { getText } from "../get-text.ts";
import type { PodNetwork } from "../network/pod-network.ts";
import { waitUntil } from "../process/wait-until.ts";

const adminPort = 15_000;
/** Of Envoy, and by its names of ours. */
const requestsPath = "/stats?filter=^http\\.inbound_.*\\.downstream_rq_active$";

/** Where a proxy is asked. */
export type AskedProxy = Pick<PodNetwork, "proxyAt" | "connect">;

/** Resolves when no request to the programs behind the sidecar is on its way, or after `limitMs`. */
export async function untilQuiet({ proxyAt, connect }: AskedProxy, limitMs: number): Promise<void> {
  const what = (): string => "requests to end";
  const url = `http://${proxyAt}:${adminPort}${requestsPath}`;
  // A proxy that does not answer is waited for no longer than requests that do not end.
  await waitUntil(async () => requestsIn(await getText(url, connect, 1000)) === 0, { timeoutMs: limitMs, what }).catch(
    () => undefined,
  );
}

function requestsIn(stats: string): number {
  return stats
    .split("\n")
    .map((line) => Number(line.split(": ")[1] ?? 0))
    .reduce((sum, value) => sum + value, 0);
}
