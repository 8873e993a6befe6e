// The endpoints of @tulle/config's api.ts with a handler each: TypeScript refuses a missing one, and one with another
// answer.
import type { IncomingMessage } from "node:http";
import { type Endpoint, type Events, fixedPart, type Json, type Text } from "@tulle/config/api";
import type { EventStream } from "./event-stream.ts";

/** By which a request came. On `socket` and `tls` only the owner gets as far as a route that is not public. */
export type Transport = "socket" | "tls" | "plain";

export interface ApiRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly transport: Transport;
  readonly request: IncomingMessage;
}

export type JsonReply<Value = unknown> = { readonly status: number; readonly json: Value };
/** Told where to write events: what it throws before it does becomes an answer like any other failure. */
type EventsReply<Event = unknown> = { readonly follow: (stream: EventStream<Event>) => void };
/** `contentType`: of one that the request has chosen, in place of the endpoint's. */
type TextReply = { readonly text: string; readonly contentType?: string };
type AssetReply = { readonly bytes: Uint8Array; readonly contentType: string };
export type ApiReply = JsonReply | TextReply | EventsReply | AssetReply;

type ReplyTo<Answer extends Endpoint["answer"]> =
  Answer extends Json<infer Value>
    ? JsonReply<Value>
    : Answer extends Events<infer Event>
      ? EventsReply<Event>
      : Answer extends Text
        ? TextReply
        : AssetReply;

type Handler<Reply> = (request: ApiRequest) => Reply | Promise<Reply>;

/** One for each endpoint of a group. */
export type Handlers<Group extends Readonly<Record<string, Endpoint>>> = {
  readonly [Name in keyof Group]: Handler<ReplyTo<Group[Name]["answer"]>>;
};

export interface ApiRoute {
  readonly endpoint: Endpoint;
  readonly handle: Handler<ApiReply>;
}

export function routesOf<Group extends Readonly<Record<string, Endpoint>>>(
  group: Group,
  handlers: Handlers<Group>,
): readonly ApiRoute[] {
  return Object.entries(group).map(([name, endpoint]) => ({ endpoint, handle: handlers[name]! as Handler<ApiReply> }));
}

/**
 * All that share the fixed part of their paths with `pathname`: what does not fit behind it, their handlers refuse with
 * words.
 */
export function routesOn(routes: readonly ApiRoute[], pathname: string): readonly ApiRoute[] {
  return routes.filter(({ endpoint: { path } }) => {
    const fixed = fixedPart(path);
    return fixed === path ? pathname === path : pathname.startsWith(fixed);
  });
}

/** The one of as many segments, of those on a path; else the last. */
export function routeOf(onPath: readonly ApiRoute[], method: string, pathname: string): ApiRoute | undefined {
  const possible = onPath.filter(({ endpoint }) => endpoint.method === method);
  const depthOf = (path: string): number => path.split("/").length;
  return possible.find(({ endpoint }) => depthOf(endpoint.path) === depthOf(pathname)) ?? possible.at(-1);
}
