// The labels of connections' metrics, by who reports them and what the handshakes proved.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricRegistry } from "@tulle/telemetry";
import type { TlsInfo, UpstreamTlsInfo } from "../../../tls/tls-info.ts";
import { finishedHandshake } from "../../../testing/finished-handshake.ts";
import { StreamInfo } from "../../../http/stream-info.ts";
import { ManualClock } from "../../../testing/manual-clock.ts";
import { rotationOf } from "./rotation.ts";
import { unknownWorkload } from "./workload-labels.ts";
import { ConnectionMetrics } from "./connection-metrics.ts";

const web = "spiffe://cluster.local/ns/shop/sa/web";
const store = "spiffe://cluster.local/ns/shop/sa/store";

const table: readonly {
  readonly name: string;
  readonly reporter: "source" | "destination";
  readonly downstream?: TlsInfo;
  readonly upstream?: UpstreamTlsInfo;
  readonly expected: readonly string[];
}[] = [
  { name: "a plain connection to a host", reporter: "source", expected: ["unknown", "unknown", "unknown"] },
  {
    name: "mutual TLS to a host",
    reporter: "source",
    upstream: finishedHandshake(store, web, true),
    expected: [web, store, "unknown"],
  },
  {
    name: "a host whose certificate nothing was compared with",
    reporter: "source",
    upstream: finishedHandshake(store, web, false),
    expected: [web, "unknown", "unknown"],
  },
  {
    name: "what a client of the source proved is not the host's affair",
    reporter: "source",
    downstream: finishedHandshake(store, web, true),
    expected: ["unknown", "unknown", "unknown"],
  },
  { name: "a plain client", reporter: "destination", expected: ["unknown", "unknown", "none"] },
  {
    name: "mutual TLS with a client",
    reporter: "destination",
    downstream: finishedHandshake(web, store, true),
    expected: [web, store, "mutual_tls"],
  },
];

for (const { name, reporter, downstream, upstream, expected } of table) {
  test(name, () => {
    const metrics = new MetricRegistry();
    const info = new StreamInfo(0, 0, "127.0.0.1:1", "127.0.0.2:2", "");
    info.downstreamTls = downstream;
    info.upstreamTls = upstream;
    info.bytesSent = 5;
    const rotation = rotationOf(metrics, new ManualClock());
    const settings = { reportIntervalMs: 5000, overrides: undefined, rotation };
    const filter = new ConnectionMetrics({ metrics, reporter, own: unknownWorkload, ...settings });
    filter.count(info, "opened");
    filter.count(info, "closed");
    const sent = [...metrics.allSeries()].filter((one) => one.name === "istio_tcp_sent_bytes_total");
    assert.deepEqual(
      sent.map(({ labels, metric }) => [
        labels["source_principal"],
        labels["destination_principal"],
        labels["connection_security_policy"],
        "value" in metric && metric.value,
      ]),
      [[...expected, 5]],
    );
  });
}
