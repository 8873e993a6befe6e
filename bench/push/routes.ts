// A route configuration as large as a mesh of a thousand services has at its gateway: ten routes each, every one of
// them another one than in the push before.
import { route } from "../one-proxy/bootstrap.ts";
import { type EncodedResource, encodeResource } from "@tulle/xds";
import { messageFromJson } from "@tulle/xds/json";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";

export const routeName = "http.80";
const hostCount = 1000;
const routesPerHost = 10;

/** 10,000 routes and the one that the load takes. */
export function routes(version: number): ReadonlyMap<string, EncodedResource> {
  const hosts = Array.from({ length: hostCount }, (_, index) => ({
    name: `service-${index}.shop.svc.cluster.local:80`,
    domains: [`service-${index}.shop.example.com`, `service-${index}.shop.example.com:*`],
    routes: Array.from({ length: routesPerHost }, (_unused, number) =>
      changed(`/api/v${number}/things-${index}`, version),
    ),
    metadata: {
      filter_metadata: { tulle: { revision: (index * 1_000_003 + version).toString(16).padStart(12, "0") } },
    },
  }));
  const own = { name: "*:80", domains: ["*"], routes: [changed("/api/catalog", version)] };
  const read = messageFromJson(RouteConfigurationSchema, { name: routeName, virtual_hosts: [...hosts, own] });
  if (!read.ok) throw new Error(read.problems[0]?.message);
  return new Map([[routeName, encodeResource(RouteConfigurationSchema, read.message)]]);
}

function changed(prefix: string, version: number) {
  return {
    name: prefix,
    ...route({ prefix }),
    decorator: { operation: `catalog.shop.svc.cluster.local:80${prefix}` },
    request_headers_to_add: [{ header: { key: "x-push", value: String(version) } }],
  };
}
