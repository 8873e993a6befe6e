// What a route configuration, a virtual host, a route or a weighted cluster changes of headers: each is a level, and a
// route's own come first.
import type { Route as RouteMessage } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { compileHeaderChanges, type HeaderChange } from "../fields/compile-header-changes.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Place, Problems } from "../fields/problems.ts";
import type { ResponseHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";

/** Changes of one level: route configuration, virtual host, route or weighted cluster. */
export interface HeaderLevel {
  readonly request: HeaderChange | undefined;
  readonly response: HeaderChange | undefined;
}

interface HeaderLists {
  readonly requestHeadersToAdd: RouteMessage["requestHeadersToAdd"];
  readonly requestHeadersToRemove: readonly string[];
  readonly responseHeadersToAdd: RouteMessage["responseHeadersToAdd"];
  readonly responseHeadersToRemove: readonly string[];
}

export function compileHeaderLevel(
  message: HeaderLists,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): HeaderLevel {
  const request = { add: message.requestHeadersToAdd, remove: message.requestHeadersToRemove };
  const response = { add: message.responseHeadersToAdd, remove: message.responseHeadersToRemove };
  return {
    request: compileHeaderChanges(request, "request_headers", scope, place, problems),
    response: compileHeaderChanges(response, "response_headers", scope, place, problems),
  };
}

const noChanges: readonly HeaderChange[] = [];

/** Envoy applies the most specific level first, so that the least specific has the last word, unless told otherwise. */
export function orderedChanges(
  levels: readonly HeaderLevel[],
  kind: keyof HeaderLevel,
  mostSpecificWins: boolean,
): readonly HeaderChange[] {
  let changes: HeaderChange[] | undefined;
  for (const level of levels) {
    const change = level[kind];
    if (change === undefined) continue;
    if (changes === undefined) changes = [change];
    else changes.push(change);
  }
  if (changes === undefined) return noChanges;
  return mostSpecificWins ? changes.reverse() : changes;
}

type FinalizeResponse = (response: ResponseHead, info: StreamInfo) => void;

const leaveAsIs: FinalizeResponse = () => {};

export function responseFinalizer(changes: readonly HeaderChange[]): FinalizeResponse {
  if (changes === noChanges) return leaveAsIs;
  return (response, info) => {
    for (const change of changes) change(response.headers, info, info.request, response);
  };
}
