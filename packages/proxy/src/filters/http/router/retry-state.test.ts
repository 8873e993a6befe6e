// Back-off and limits of retries; the conditions are tried through the whole router beside this.
import assert from "node:assert/strict";
import { test } from "node:test";
import { handBuiltCluster, retryPolicy } from "../../../testing/hand-built-runtime.ts";
import { HeaderMap } from "../../../http/header-map.ts";
import type { RequestHead } from "../../../http/message.ts";
import { retryConditions } from "../../../route/route-table.ts";
import { RetryState } from "./retry-state.ts";

const request = (...headers: string[]): RequestHead => ({
  method: "GET",
  scheme: "http",
  authority: "a",
  path: "/",
  protocol: "HTTP/1.1",
  headers: new HeaderMap(headers),
});

test("back-off doubles up to its maximum, each time anything below it", () => {
  const cluster = handBuiltCluster("c", []);
  const policy = retryPolicy(retryConditions["5xx"], 9);
  const intervals = (random: number): number[] => {
    const state = RetryState.of(request(), policy, cluster, () => random)!;
    return Array.from({ length: 6 }, () => state.nextBackOffMs());
  };
  assert.deepEqual(intervals(0), [0, 0, 0, 0, 0, 0]);
  assert.deepEqual(intervals(0.9999), [24, 49, 99, 199, 249, 249]);
});

test("the cluster's limit of retries holds over all requests and is given back", () => {
  const cluster = handBuiltCluster("c", []);
  const policy = retryPolicy(retryConditions["5xx"], 9);
  const states = Array.from({ length: 4 }, () => RetryState.of(request(), policy, cluster, Math.random)!);
  const response = { status: 500, headers: new HeaderMap() };
  assert.deepEqual(
    states.map((state) => state.onResponse(response, false)),
    ["retry", "retry", "retry", "overflow"],
  );
  assert.equal(cluster.stats.upstreamRequestRetryOverflow.value, 1);
  for (const state of states) state.release();
  assert.equal(cluster.stats.upstreamRetriesActive.value, 0);
});

test("nothing asked for gives no state; a policy may be for some requests only", () => {
  const cluster = handBuiltCluster("c", []);
  assert.equal(RetryState.of(request(), undefined, cluster, Math.random), undefined);
  const picky = retryPolicy(retryConditions["5xx"], 1, { isRetriableRequest: ({ method }) => method === "POST" });
  assert.equal(RetryState.of(request(), picky, cluster, Math.random), undefined);
});

test("a rate-limited answer is not tried again unless that is asked for", () => {
  const cluster = handBuiltCluster("c", []);
  const limited = { status: 503, headers: new HeaderMap(["x-envoy-ratelimited", "true"]) };
  const of = (bits: number): RetryState => RetryState.of(request(), retryPolicy(bits, 1), cluster, Math.random)!;
  assert.equal(of(retryConditions["5xx"]).onResponse(limited, false), "no");
  assert.equal(of(retryConditions["5xx"] | retryConditions["envoy-ratelimited"]).onResponse(limited, false), "retry");
});

test("gRPC conditions look at the status in the head", () => {
  const cluster = handBuiltCluster("c", []);
  const policy = retryPolicy(retryConditions.unavailable, 1);
  const answer = (code: string): { status: number; headers: HeaderMap } => ({
    status: 200,
    headers: new HeaderMap(["grpc-status", code]),
  });
  assert.equal(RetryState.of(request(), policy, cluster, Math.random)!.onResponse(answer("14"), false), "retry");
  assert.equal(RetryState.of(request(), policy, cluster, Math.random)!.onResponse(answer("13"), false), "no");
});
