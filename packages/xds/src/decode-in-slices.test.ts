// Decoding in slices gives what decoding at once gives, for whatever message and wherever it is cut.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Pauses } from "@tulle/timing";
import { create, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { decodeInSlices } from "./decode-in-slices.ts";
import { ClusterSchema } from "./generated/envoy/config/cluster/v3/cluster_pb.ts";
import { RouteConfigurationSchema } from "./generated/envoy/config/route/v3/route_pb.ts";
import { VirtualHostSchema } from "./generated/envoy/config/route/v3/route_components_pb.ts";

const host = (name: string, routes: number) =>
  create(VirtualHostSchema, {
    name,
    domains: [name, `${name}:80`],
    routes: Array.from({ length: routes }, (_, index) => ({
      name: `route-${index}`,
      match: { pathSpecifier: { case: "prefix" as const, value: `/${index}` } },
      action: { case: "route" as const, value: { clusterSpecifier: { case: "cluster" as const, value: "somewhere" } } },
    })),
  });

const table = (...virtualHosts: readonly ReturnType<typeof host>[]): Uint8Array =>
  toBinary(
    RouteConfigurationSchema,
    create(RouteConfigurationSchema, { name: "80", virtualHosts: [...virtualHosts], responseHeadersToRemove: ["x-a"] }),
  );

const inputs = [
  { name: "small", input: table(host("a", 3)) },
  { name: "nothing", input: new Uint8Array() },
  { name: "many hosts", input: table(...Array.from({ length: 500 }, (_, index) => host(`host-${index}`, 3))) },
  { name: "one host with many routes", input: table(host("before", 1), host("large", 2000), host("behind", 1)) },
];

for (const { name, input } of inputs) {
  test(name, async () => {
    const decoded = await decodeInSlices(RouteConfigurationSchema, input, new Pauses());
    assert.ok(equals(RouteConfigurationSchema, decoded, fromBinary(RouteConfigurationSchema, input)));
  });
}

test("a large field that is no list of messages is merged whole", async () => {
  const input = toBinary(ClusterSchema, create(ClusterSchema, { name: "n".repeat(10_000), altStatName: "other" }));
  const decoded = await decodeInSlices(ClusterSchema, input, new Pauses());
  assert.ok(equals(ClusterSchema, decoded, fromBinary(ClusterSchema, input)));
});

test("what is cut short is refused", async () => {
  const input = table(host("large", 2000));
  await assert.rejects(decodeInSlices(RouteConfigurationSchema, input.subarray(0, input.length - 30), new Pauses()));
});
