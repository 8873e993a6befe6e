// The compiled configuration of a proxy: listeners with their filter chains, route tables, clusters. Immutable; the
// next one replaces it in one synchronous step (`RuntimeOwner.swap`), and requests in flight finish on what they
// resolved.
import type { Cluster } from "../cluster/cluster.ts";
import type { Listener } from "../listener/listener.ts";
import type { RouteTable } from "../route/route-table.ts";
import type { Slot } from "./slot.ts";

export interface ProxyRuntime {
  readonly listeners: ReadonlyMap<string, Listener>;
  readonly clusters: ReadonlyMap<string, Slot<Cluster>>;
  readonly routeTables: ReadonlyMap<string, Slot<RouteTable>>;
}
