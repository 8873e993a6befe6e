// What the connection manager looks at before it routes a request: whether its head makes sense, and its path, which
// routes and policies are to see in its normal form (Envoy: `ActiveStream::decodeHeaders`).
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";
import type { LocalReply } from "../http/filter.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { RouteMatch } from "../route/route-table.ts";
import { normalizeRequestPath } from "./path-normalization.ts";

/** The answer to a request that goes no further. */
export interface Refusal extends LocalReply {
  /** What may follow of the request is not waited for: where it ends cannot be trusted. */
  readonly endsStream: boolean;
}

/** Nothing is spent on such a request but its answer. */
export const overloaded: Refusal = {
  status: 503,
  body: "envoy overloaded",
  flag: "OM",
  details: "overload",
  endsStream: false,
};
const missingHost: Refusal = { status: 400, body: "", details: "missing_host_header", endsStream: true };
// As Envoy: OPTIONS * is for a server to answer and not for what lies behind a proxy's routes.
const noPath: Refusal = { status: 404, body: "", details: "absolute_path_rejected", endsStream: false };
const badPath: Refusal = { status: 400, body: "", details: "path_normalization_failed", endsStream: true };

/** Undefined: the request may go on, and its path is normal. */
export function admitRequest(head: RequestHead, config: HttpConnectionManagerConfig): Refusal | undefined {
  if (head.hasHost === false) return missingHost;
  if (head.method === "CONNECT") return undefined;
  if (head.path === "*") return noPath;
  const outcome = normalizeRequestPath(head.path, config);
  if (outcome.type === "reject") return badPath;
  if (outcome.type === "redirect") {
    const headers = new HeaderMap(["location", outcome.path]);
    return { status: 307, body: "", details: "path_normalization_failed", headers, endsStream: false };
  }
  head.path = outcome.path;
  return undefined;
}

/** Whether the connection may go on with that protocol; the route's word goes before the connection manager's. */
export function admitUpgrade(
  protocol: string,
  match: RouteMatch | undefined,
  info: StreamInfo,
  { upgradeTypes, stats }: HttpConnectionManagerConfig,
): boolean {
  // Without a route, or where the route itself answers, there is nothing to upgrade.
  const action = match?.action;
  if (action?.type !== "forward") return true;
  info.isUpgrade = action.upgrades?.get(protocol)?.enabled ?? upgradeTypes.has(protocol);
  if (!info.isUpgrade) return false;
  stats.downstreamUpgrades.increment();
  stats.downstreamUpgradesActive.add(1);
  return true;
}
