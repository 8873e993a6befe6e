// Which route a request takes, as it came or as filters have left it, and what logs know of that.
import { asked } from "../http/asked-facts.ts";
import type { RequestHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { RouteMatch, RouteTable } from "../route/route-table.ts";
import type { DataPath } from "../worker/data-path.ts";

export function findRoute(
  table: RouteTable | undefined,
  request: RequestHead,
  info: StreamInfo,
  { clock, random }: DataPath,
): RouteMatch | undefined {
  // To read the clock twice would cost each request.
  const beganMs = asked.routeTimes ? clock.monotonicMs() : 0;
  const match = table?.match(request, random, info.dynamicMetadata);
  if (asked.routeTimes) info.routeResolutionMs += clock.monotonicMs() - beganMs;
  info.routeResolutions += 1;
  info.route = match?.route;
  if (match === undefined) info.routelessHost = table?.virtualHostMetadata(request.authority);
  return match;
}
