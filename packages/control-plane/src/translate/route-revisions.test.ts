// The configuration revision of virtual hosts: what it depends on, and that a table with revisions is encoded as an
// encoder would.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import { type VirtualHost, VirtualHostSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { encodeRoutes, withRevision } from "./route-revisions.ts";

function host(prefix: string, more: { readonly name?: string; readonly domains?: string[] } = {}): VirtualHost {
  const { name = "a:80", domains = ["a"] } = more;
  const routes = [
    {
      match: { pathSpecifier: { case: "prefix", value: prefix } } as const,
      action: { case: "route", value: { clusterSpecifier: { case: "cluster", value: "a" } } } as const,
    },
  ];
  return create(VirtualHostSchema, { name, domains, routes, includeRequestAttemptCount: true });
}

const revision = ({ metadata }: VirtualHost): unknown => metadata?.filterMetadata["tulle"]?.["revision"];

test("equal routes have equal revisions, whatever the hosts are called", () => {
  const plain = withRevision(host("/"));
  assert.match(String(revision(plain)), /^[0-9a-f]{12}$/);
  assert.equal(revision(withRevision(host("/", { name: "b:80", domains: ["b", "b.other"] }))), revision(plain));
  assert.notEqual(revision(withRevision(host("/b"))), revision(plain));
});

test("a table is encoded as an encoder writes it", () => {
  // The last one's length needs three bytes.
  const hosts = [host("/"), host("/b"), host(`/${"c".repeat(20_000)}`), create(VirtualHostSchema, { name: "none" })];
  const table = create(RouteConfigurationSchema, { name: "t", virtualHosts: hosts, ignorePortInHostMatching: true });
  const { name, any } = encodeRoutes(table);
  const expected = { ...table, virtualHosts: hosts.map(withRevision) };
  assert.equal(name, "t");
  assert.deepEqual(fromBinary(RouteConfigurationSchema, any.value), expected);
  assert.equal(Buffer.compare(any.value, toBinary(RouteConfigurationSchema, expected)), 0);
});
