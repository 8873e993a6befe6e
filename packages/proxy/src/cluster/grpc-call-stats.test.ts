// Clients' paths and hosts' statuses cannot make series without end; what they are called, grpc-web-parity.test.ts
// compares with Envoy.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricRegistry } from "@tulle/telemetry";
import { handBuiltCluster } from "../testing/hand-built-runtime.ts";
import { GrpcCallStats } from "./grpc-call-stats.ts";

function calls() {
  const metrics = new MetricRegistry();
  const stats = new GrpcCallStats({ metrics, protocol: "grpc", methods: "all", replacesDots: false });
  const cluster = handBuiltCluster("c", []);
  const made = () => [...metrics.allSeries()].filter(({ statName }) => statName?.startsWith("cluster."));
  const countOf = (statName: string): number => {
    const found = made().find((series) => series.statName === statName)?.metric;
    return found !== undefined && "value" in found ? (found.value as number) : 0;
  };
  return { made, of: (path: string) => stats.of(cluster, path), countOf };
}

test("beyond a thousand methods, and for endless names, calls are counted without one", () => {
  const { made, of, countOf } = calls();
  for (let index = 0; index < 1500; index += 1) of(`/s/m${index}`)!.countStatus("0");
  of(`/s/${"x".repeat(300)}`)!.countStatus("0");
  of("/s/m0?again")!.countStatus("0");
  assert.equal(made().length, 1001 * 3);
  assert.deepEqual([countOf("cluster.c.grpc.total"), countOf("cluster.c.grpc.s.m0.total")], [501, 2]);
});

test("statuses that a host makes up are one series", () => {
  const { of, countOf } = calls();
  for (const status of ["x", "1000", "-1", ""]) of("/s/m")!.countStatus(status);
  of("/s/m")!.countStatus(undefined);
  const named = ["unknown", "failure", "total"].map((stat) => countOf(`cluster.c.grpc.s.m.${stat}`));
  assert.deepEqual(named, [4, 4, 4]);
});

test("Prometheus has service and method as labels", () => {
  const { made, of } = calls();
  of("/pkg.Service/Method")!.add("request_message_count", 3);
  const [series] = made();
  assert.equal(series?.name, "envoy_cluster_grpc_request_message_count");
  assert.deepEqual(series.labels, {
    envoy_grpc_bridge_method: "Method",
    envoy_grpc_bridge_service: "pkg.Service",
    envoy_cluster_name: "c",
  });
});

test("a path that is no method is not counted", () => {
  const { of } = calls();
  assert.deepEqual(["/", "/one", "/a/b/c", ""].map(of), [undefined, undefined, undefined, undefined]);
});
