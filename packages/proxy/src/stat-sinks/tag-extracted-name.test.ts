// Names without the values of their tags; that they are Envoy's is compared in open-telemetry-sink-parity.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { statDescription } from "../stats/stat-description.ts";
import { tagExtractedName } from "./tag-extracted-name.ts";

const cluster = (name: string) => ({ root: "cluster", name, label: "envoy_cluster_name" });

for (const { name, series, expected } of [
  {
    name: "a plain one",
    series: statDescription(cluster("a"), "upstream_rq_total"),
    expected: "cluster.upstream_rq_total",
  },
  {
    name: "dots, bars and colons in the tag",
    series: statDescription(cluster("outbound|80||a.b.svc:1"), "upstream_cx_total"),
    expected: "cluster.upstream_cx_total",
  },
  { name: "a code", series: statDescription(cluster("a"), "upstream_rq_503"), expected: "cluster.upstream_rq" },
  {
    name: "a class of codes",
    series: statDescription(cluster("a"), "upstream_rq_5xx"),
    expected: "cluster.upstream_rq_xx",
  },
  {
    name: "dots in what is left",
    series: statDescription(cluster("a"), "circuit_breakers.default.cx_open"),
    expected: "cluster.circuit_breakers.default.cx_open",
  },
  {
    name: "a tag that is named like the root",
    series: statDescription(cluster("cluster"), "http2.tx_reset"),
    expected: "cluster.http2.tx_reset",
  },
  {
    name: "a tag at the end",
    series: statDescription(cluster("a"), "ssl.versions.TLSv1.3"),
    expected: "cluster.ssl.versions",
  },
  {
    name: "a name that the tag does not stand in",
    series: { name: "envoy_a_b", statName: "a.c.b", labels: { x: "d" } },
    expected: "envoy_a_b",
  },
  {
    name: "no name in the stats tree",
    series: { name: "istio_requests_total", statName: undefined, labels: { reporter: "istio" } },
    expected: "istio_requests_total",
  },
]) {
  test(name, () => assert.equal(tagExtractedName(series), expected));
}
