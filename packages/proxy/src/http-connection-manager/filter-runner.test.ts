// Whom a stream asks: in which order, who stops it, and that a filter which is off by itself sees the requests of
// routes that name it, from beginning to end, and no others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enablementKey } from "../filters/http/enablement-key.ts";
import type { FilterStatus, HttpFilter } from "../http/filter.ts";
import { HeaderMap } from "../http/header-map.ts";
import { HttpFilterChain } from "./filter-chain.ts";
import { type FilteredStream, FilterRunner } from "./filter-runner.ts";

/** Says each of its hooks. */
function talking(name: string, seen: string[], status: FilterStatus = "continue"): HttpFilter {
  const say = (hook: string): void => void seen.push(`${name} ${hook}`);
  return {
    name,
    onRequestHead: () => {
      say("head");
      return status;
    },
    onRequestData: () => say("data"),
    onRequestTrailers: () => say("trailers"),
    onRequestWaiting: () => say("waiting"),
    onResponseHead: () => say("response"),
    onResponseData: () => say("response data"),
    onResponseTrailers: () => say("response trailers"),
    onDownstreamDrained: () => say("drained"),
    onComplete: () => say("complete"),
  };
}

function streamWith(config: readonly [string, unknown][]): FilteredStream {
  const route = { name: "", metadata: {}, virtualHostMetadata: {}, perFilterConfig: new Map(config) };
  return {
    routeMatch: { route },
    isOver: false,
    responseStarted: false,
    bufferLimitBytes: 1024,
  } as unknown as FilteredStream;
}

const bytes = Buffer.alloc(1);

function everything(runner: FilterRunner): void {
  const response = { status: 200, headers: new HeaderMap() };
  runner.requestData(bytes, false);
  runner.requestTrailers(new HeaderMap());
  runner.responseHead(response, false);
  runner.responseData(bytes, false);
  runner.responseTrailers(new HeaderMap());
  runner.downstreamDrained();
  runner.complete();
}

const enablements: readonly {
  readonly name: string;
  readonly config: readonly [string, unknown][];
  readonly sees: boolean;
}[] = [
  { name: "named by the route", config: [[enablementKey("a"), true]], sees: true },
  { name: "another filter is named", config: [[enablementKey("b"), true]], sees: false },
  { name: "nothing is named", config: [], sees: false },
];
for (const { name, config, sees } of enablements) {
  for (const hasHeadHook of [true, false]) {
    test(`${name}${hasHeadHook ? "" : ", with no hook for heads"}`, () => {
      const seen: string[] = [];
      const filter = talking("a", seen);
      if (!hasHeadHook) delete filter.onRequestHead;
      const chain = new HttpFilterChain([{ filter, enablementKey: enablementKey("a") }]);
      const stream = streamWith(config);
      const runner = new FilterRunner(stream, chain);
      runner.requestHead(false);
      // What happens to the route later changes nothing.
      (stream as { routeMatch: unknown }).routeMatch = undefined;
      everything(runner);
      const all = ["data", "trailers", "response", "response data", "response trailers", "drained", "complete"];
      const expected = [...(hasHeadHook ? ["head"] : []), ...all].map((hook) => `a ${hook}`);
      assert.deepEqual(seen, sees ? expected : []);
    });
  }
}

test("a request passes from the first filter to the last, a response from the last to the first", () => {
  const seen: string[] = [];
  const filters = ["a", "b"].map((name) => ({ filter: talking(name, seen), enablementKey: undefined }));
  const runner = new FilterRunner(streamWith([]), new HttpFilterChain(filters));
  runner.requestHead(false);
  everything(runner);
  assert.deepEqual(seen.slice(0, 8), [
    "a head",
    "b head",
    "a data",
    "b data",
    "a trailers",
    "b trailers",
    "b response",
    "a response",
  ]);
  assert.deepEqual(seen.slice(8, 12), [
    "b response data",
    "a response data",
    "b response trailers",
    "a response trailers",
  ]);
});

test("who stops a request hears of what waits, and nobody behind him hears anything until he lets it go on", () => {
  const seen: string[] = [];
  const filters = [talking("a", seen), talking("b", seen, "stop"), talking("c", seen)];
  const chain = new HttpFilterChain(filters.map((filter) => ({ filter, enablementKey: undefined })));
  const runner = new FilterRunner(streamWith([]), chain);
  runner.requestHead(false);
  runner.requestData(bytes, false);
  runner.requestTrailers(new HeaderMap());
  assert.deepEqual(seen.splice(0), ["a head", "b head", "b waiting", "b waiting"]);
  assert.equal(runner.waitingBytes, 1);
  runner.continueRequest();
  const passed = ["c head", "a data", "b data", "c data", "a trailers", "b trailers", "c trailers"];
  assert.deepEqual(seen.splice(0), passed);
  // What has gone on cannot go on once more.
  runner.continueRequest();
  assert.deepEqual(seen, []);
});

test("a request that was answered early goes on with nobody", () => {
  const seen: string[] = [];
  const filters = [talking("a", seen, "stop"), talking("b", seen)];
  const chain = new HttpFilterChain(filters.map((filter) => ({ filter, enablementKey: undefined })));
  const runner = new FilterRunner(streamWith([]), chain);
  runner.requestHead(true);
  runner.dropRequest();
  runner.continueRequest();
  assert.deepEqual(seen, ["a head"]);
});

function runnerOf(filters: readonly HttpFilter[]): FilterRunner {
  const chain = new HttpFilterChain(filters.map((filter) => ({ filter, enablementKey: undefined })));
  return new FilterRunner(streamWith([]), chain);
}

test("what a filter returns goes on in the chunk's place, and nothing in the place of nothing", () => {
  const seen: string[] = [];
  const tells = (name: string): HttpFilter => ({
    name,
    onRequestData: (_stream, chunk, endStream) => void seen.push(`${name} ${String(chunk)} ${endStream}`),
    onResponseData: (_stream, chunk, endStream) => void seen.push(`${name} ${String(chunk)} ${endStream}`),
  });
  const changes: HttpFilter = {
    name: "changes",
    onRequestData: (_stream, chunk) => chunk.subarray(1),
    onResponseData: (_stream, chunk) => Buffer.concat([chunk, chunk]),
    onResponseTrailers: (_stream, trailers) => Buffer.from(trailers.entries.join("=")),
  };
  const runner = runnerOf([tells("before"), changes, tells("behind")]);
  runner.requestHead(false);
  for (const text of ["abc", "x"]) runner.requestData(Buffer.from(text), false);
  runner.requestData(Buffer.from("y"), true);
  const request = ["before abc false", "behind bc false", "before x false", "before y true", "behind  true"];
  assert.deepEqual(seen.splice(0), request);
  runner.responseHead({ status: 200, headers: new HeaderMap() }, false);
  assert.equal(String(runner.responseData(Buffer.from("r"), false)), "rr");
  assert.equal(String(runner.responseTrailers(new HeaderMap(["a", "1"]))), "a=1");
  assert.deepEqual(seen, ["behind r false", "before rr false", "before a=1 true"]);
});

test("who stops a response's head has its body for himself, and another answer begins anew", () => {
  const seen: string[] = [];
  const stopper = { ...talking("b", seen), onResponseHead: (): FilterStatus => "stop" };
  const runner = runnerOf([talking("a", seen), stopper, talking("c", seen)]);
  const response = { status: 404, headers: new HeaderMap() };
  for (const _answer of [1, 2]) {
    assert.equal(runner.responseHead(response, false), false);
    assert.equal(runner.holdsResponse, true);
    runner.responseData(bytes, false);
    runner.responseTrailers(new HeaderMap());
    const held = ["c response", "c response data", "b response data", "c response trailers", "b response trailers"];
    assert.deepEqual(seen.splice(0), held);
  }
  assert.equal(runner.continueResponseHead(response), true);
  assert.equal(runner.holdsResponse, false);
  assert.deepEqual(seen, ["a response"]);
});
