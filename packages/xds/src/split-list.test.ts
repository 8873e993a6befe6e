// A message taken apart and put together again is the message.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { RouteConfigurationSchema } from "./generated/envoy/config/route/v3/route_pb.ts";
import { VirtualHostSchema } from "./generated/envoy/config/route/v3/route_components_pb.ts";
import { splitList } from "./split-list.ts";

const field = RouteConfigurationSchema.field.virtualHosts.number;
const host = (name: string) => create(VirtualHostSchema, { name, domains: [name] });

for (const { name, virtualHosts } of [
  { name: "no element", virtualHosts: [] },
  { name: "one", virtualHosts: [host("a")] },
  { name: "several", virtualHosts: [host("a"), host(""), host("c".repeat(300))] },
]) {
  test(name, () => {
    const message = create(RouteConfigurationSchema, { name: "r", virtualHosts, responseHeadersToRemove: ["x"] });
    const { rest, elements } = splitList(toBinary(RouteConfigurationSchema, message), field);
    const joined = fromBinary(RouteConfigurationSchema, rest);
    assert.deepEqual(joined.virtualHosts, []);
    joined.virtualHosts = elements.map((element) => fromBinary(VirtualHostSchema, element));
    assert.ok(equals(RouteConfigurationSchema, joined, message));
  });
}

const element = [(field << 3) | 2, 2, 0x0a, 0];
for (const { name, bytes } of [
  { name: "an element cut short", bytes: element.slice(0, 3) },
  { name: "another field cut short", bytes: [...element, 0x0a, 9] },
  { name: "a wire type that does not exist", bytes: [0x0f] },
]) {
  test(`${name} is refused`, () => {
    assert.throws(() => splitList(Uint8Array.from(bytes), field));
  });
}

test("a field of that number which is no message belongs to the rest", () => {
  const bytes = Uint8Array.from([field << 3, 1, ...element]);
  const { rest, elements } = splitList(bytes, field);
  assert.deepEqual([[...rest], elements.length], [[field << 3, 1], 1]);
});
