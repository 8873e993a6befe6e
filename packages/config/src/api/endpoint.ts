/**
 * The language in which api.ts says what the HTTP API has: an endpoint is a method, a path, what may be asked, and what
 * is answered. Plain data and types, so that a server, a program of Node's and a web page read the same.
 */

/** One JSON value. */
export interface Json<Value = unknown> {
  readonly kind: "json";
  /** Never there: it carries the type. */
  readonly value?: Value;
}

/** Text as it stands. */
export interface Text {
  readonly kind: "text";
  readonly contentType: string;
}

/** JSON values, one a line, until one of both ends it. */
export interface Events<Event = unknown> {
  readonly kind: "events";
  readonly contentType: string;
  /** Never there: it carries the type. */
  readonly event?: Event;
}

/** A file whose type goes with its name, such as a web page is made of. None is served yet. */
export interface Asset {
  readonly kind: "asset";
}

export interface Endpoint {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** Parameters stand in braces, each a whole segment, behind all that is fixed. */
  readonly path: string;
  readonly query?: readonly string[];
  readonly takes?: Json;
  /** What is wrong is answered with an `ErrorResponse`, whatever the kind. */
  readonly answer: Json | Text | Events | Asset;
  /** Answered to everybody who reaches the port; everything else to the owner alone. */
  readonly isPublic?: true;
  readonly summary: string;
}

export function json<Value>(): Json<Value> {
  return { kind: "json" };
}

export function text(contentType = "text/plain; charset=utf-8"): Text {
  return { kind: "text", contentType };
}

export function events<Event>(contentType: string): Events<Event> {
  return { kind: "events", contentType };
}

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;
type QueryOf<E extends Endpoint> = E extends { readonly query: readonly (infer Name extends string)[] } ? Name : never;

/** What a caller says: all of the path, and of the query what it likes. */
export type ParametersOf<E extends Endpoint> = { readonly [Name in NamesIn<E["path"]>]: string } & {
  readonly [Name in QueryOf<E>]?: string | number | boolean | undefined;
};

export type JsonEndpoint = Endpoint & { readonly answer: Json };
export type AnswerOf<E extends JsonEndpoint> = E["answer"] extends Json<infer Value> ? Value : never;
export type BodyOf<E extends Endpoint> = E extends { readonly takes: Json<infer Body> } ? Body : never;

/** Stands for an empty parameter, such as the namespace of kinds without one, since a path segment cannot be empty. */
export const emptySegment = "-";

/** Path and query as they are sent. */
export function pathOf<E extends Endpoint>(endpoint: E, parameters: ParametersOf<E>): string {
  const given: Readonly<Record<string, string | number | boolean | undefined>> = parameters;
  const path = endpoint.path.replaceAll(
    /\{(\w+)\}/g,
    (_all, name: string) => encodeURIComponent(given[name]!) || emptySegment,
  );
  const query = (endpoint.query ?? []).flatMap((name) => {
    const value = given[name];
    // Commas of a list stay as they are.
    return value === undefined ? [] : [`${name}=${encodeURIComponent(value).replaceAll("%2C", ",")}`];
  });
  return query.length === 0 ? path : `${path}?${query.join("&")}`;
}
