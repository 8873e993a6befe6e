// What a route says to a filter in bytes that are no message: told at its place, and not thrown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { compilePerFilterConfigs } from "./compile-per-filter-config.ts";
import { Place, Problems } from "../fields/problems.ts";

for (const { type, expected } of [
  { type: "envoy.config.route.v3.FilterConfig", expected: /^\["a"\]: cannot be decoded: / },
  { type: "xds.type.v3.TypedStruct", expected: /^\["a"\]: cannot be decoded: / },
  {
    type: "envoy.extensions.filters.http.rbac.v3.RBACPerRoute",
    expected: /^\["a"\]: not a valid envoy\.extensions\.filters\.http\.rbac\.v3\.RBACPerRoute: /,
  },
]) {
  test(`bytes that are no ${type}`, () => {
    const problems = new Problems();
    const any = create(AnySchema, { typeUrl: `type.googleapis.com/${type}`, value: Uint8Array.of(0x0a, 0x05) });
    compilePerFilterConfigs({ a: any }, new Map(), Place.root, problems);
    assert.equal(problems.list.length, 1);
    assert.match(`${problems.list[0]?.place}: ${problems.list[0]?.message}`, expected);
  });
}
