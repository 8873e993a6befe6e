// What the agent takes out of its proxy's stream, and what it says to a table that is none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { encodeResponse } from "@tulle/xds";
import { DiscoveryRequestSchema } from "@tulle/xds/envoy/service/discovery/v3/discovery_pb";
import { NameSubscription } from "./name-subscription.ts";

test("a table that cannot be read is refused with its reason, and the last good one goes on", () => {
  const entries: LogEntry[] = [];
  const heard: unknown[] = [];
  const logging = new Logging({ sink: (entry) => void entries.push(entry) });
  const names = new NameSubscription({ onNames: (table) => void heard.push(table), log: logging.logger("dns") });
  const typeUrl = "type.googleapis.com/istio.networking.nds.v1.NameTable";
  const rubbish = encodeResponse({
    typeUrl,
    versionInfo: "2",
    nonce: "n",
    resources: [{ $typeName: "google.protobuf.Any", typeUrl, value: Uint8Array.of(10, 200) }],
  });
  const answer = fromBinary(DiscoveryRequestSchema, names.take(rubbish)!);
  assert.equal(answer.responseNonce, "n");
  assert.match(answer.errorDetail?.message ?? "", /^not a table of names: /);
  assert.deepEqual(heard, []);
  assert.equal(entries.length, 1);
  const clusters = encodeResponse({
    typeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    versionInfo: "1",
    nonce: "m",
    resources: [],
  });
  assert.equal(names.take(clusters), undefined);
});
