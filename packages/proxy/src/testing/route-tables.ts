// Route tables out of JSON as RDS would bring them, and what they do with a request, in a word.
import assert from "node:assert/strict";
import { toBinary } from "@bufbuild/protobuf";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import { type RequestProperties, accepted, fromConfiguration, requestHead } from "./from-configuration.ts";
import type { RouteTable } from "../route/route-table.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { buildRouteTable, compileRouteConfiguration } from "../compile/compile-route-configuration.ts";
import { runAtOnce } from "@tulle/timing";
import { Place, Problems, compiled as asCompiled } from "../fields/problems.ts";
import { encodedSource } from "../compile/route-source.ts";

export const scope = detachedScope({ environment: { REGION: "north" } });

export function encoded(json: object): Uint8Array {
  return toBinary(RouteConfigurationSchema, fromConfiguration(RouteConfigurationSchema, json));
}

/** As RDS brings it: compiled when it comes, and again for the first request. */
export function table(json: object): RouteTable {
  const source = encodedSource(encoded(json));
  const problems = new Problems();
  const built = runAtOnce(buildRouteTable(source, scope, {}, Place.root, problems));
  const inline = accepted(compileRouteConfiguration(fromConfiguration(RouteConfigurationSchema, json), scope));
  assert.deepEqual(built.clusterNames, inline.clusterNames);
  return accepted(asCompiled(built, problems));
}

/** One virtual host for all hosts. */
export function routes(list: readonly object[], host: object = {}, configuration: object = {}): object {
  return { name: "r", virtual_hosts: [{ name: "all", domains: ["*"], routes: list, ...host }], ...configuration };
}

/** `cluster`, `status location` of a redirect, `status body` of a direct response, or `none`. */
export function outcome(compiled: RouteTable, properties: RequestProperties, random = 0): string {
  const request = requestHead(properties);
  const match = compiled.match(request, () => random);
  if (match === undefined) return "none";
  const { action } = match;
  switch (action.type) {
    case "forward":
      return action.clusterSlot.name;
    case "redirect":
      return `${action.status} ${action.location(request)}`;
    case "direct":
      return `${action.status} ${Buffer.from(action.body).toString()}`;
  }
}

/** A route to that cluster. */
export const to = (cluster: string, match: object, extra: object = {}): object => ({
  match,
  route: { cluster, ...extra },
});

/** A header that a route adds. */
export const added = (key: string, value: string, append_action?: string): object => ({
  header: { key, value },
  ...(append_action && { append_action }),
});
