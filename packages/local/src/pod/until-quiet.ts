// Waits until a sidecar has answered all that it took. Its admin page is read by the same event loop as its
// connections: an answer without a request in it means that what had come before the question is answered too.
import { getText } from "../get-text.ts";
import { waitUntil } from "../process/wait-until.ts";

const adminPort = 15_000;
/** Of Envoy, and by its names of ours. */
const requestsPath = "/stats?filter=^http\\.inbound_.*\\.downstream_rq_active$";

/** Resolves when no request to the programs behind the sidecar at `address` is on its way, or after `limitMs`. */
export async function untilQuiet(address: string, limitMs: number): Promise<void> {
  const what = (): string => "requests to end";
  const url = `http://${address}:${adminPort}${requestsPath}`;
  // A proxy that does not answer is waited for no longer than requests that do not end.
  await waitUntil(async () => requestsIn(await getText(url, 1000)) === 0, { timeoutMs: limitMs, what }).catch(
    () => undefined,
  );
}

function requestsIn(stats: string): number {
  return stats
    .split("\n")
    .map((line) => Number(line.split(": ")[1] ?? 0))
    .reduce((sum, value) => sum + value, 0);
}
