// A filter that is off by itself sees the requests of routes that name it, from beginning to end, and no others.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpFilter, HttpStream } from "../../http/filter.ts";
import { HeaderMap } from "../../http/header-map.ts";
import { enablementKey, whereRoutesEnable } from "./where-routes-enable.ts";

const cases: readonly {
  readonly name: string;
  readonly config: readonly [string, unknown][];
  readonly sees: boolean;
}[] = [
  { name: "named by the route", config: [[enablementKey("a"), true]], sees: true },
  { name: "another filter is named", config: [[enablementKey("b"), true]], sees: false },
  { name: "nothing is named", config: [], sees: false },
];
for (const { name, config, sees } of cases) {
  test(name, () => {
    const seen: string[] = [];
    const filter: HttpFilter = {
      name: "a",
      onRequestHead: () => {
        seen.push("head");
        return "stop";
      },
      onRequestData: () => seen.push("data"),
      onRequestTrailers: () => seen.push("trailers"),
      onRequestWaiting: () => seen.push("waiting"),
      onResponseHead: () => seen.push("response"),
      onResponseData: () => seen.push("response data"),
      onDownstreamDrained: () => seen.push("drained"),
      onComplete: () => seen.push("complete"),
    };
    const wrapped = whereRoutesEnable(filter, "a");
    const route = { name: "", metadata: {}, perFilterConfig: new Map(config) };
    const stream = { routeMatch: { route } } as unknown as HttpStream;
    const headers = new HeaderMap();
    assert.equal(wrapped.onRequestHead!(stream, false), sees ? "stop" : "continue");
    // What happens to the route later changes nothing.
    (stream as { routeMatch: unknown }).routeMatch = undefined;
    wrapped.onRequestData!(stream, Buffer.alloc(1), true);
    wrapped.onRequestTrailers!(stream, headers);
    wrapped.onRequestWaiting!(stream, true);
    wrapped.onResponseHead!(stream, { status: 200, headers }, false);
    wrapped.onResponseData!(stream, Buffer.alloc(1), true);
    wrapped.onDownstreamDrained!(stream);
    wrapped.onComplete!(stream);
    const all = ["head", "data", "trailers", "waiting", "response", "response data", "drained", "complete"];
    assert.deepEqual(seen, sees ? all : []);
  });
}

test("hooks that a filter lacks are not made up: bodies of others cost nothing", () => {
  const wrapped = whereRoutesEnable({ name: "a", onRequestHead: () => "continue" }, "a");
  assert.deepEqual(Object.keys(wrapped), ["name", "onRequestHead"]);
  assert.equal(wrapped.onRequestHead!({ routeMatch: undefined } as HttpStream, true), "continue");
});
