// Connections that the kernel redirects to a listener, against stock Envoy with the same bootstrap: which listener and
// which chain takes each, which addresses it has there, and where it goes on to. Each proxy is in a network namespace
// of the test's own.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { playInOwnNetwork } from "../../../../tests/tools/own-network.ts";
import { movedCounters } from "../testing/parity-pair.ts";
import { redirectedDials, type RedirectedOutcome } from "../testing/redirected-dials.ts";

const program = new URL("../testing/redirected-stage.ts", import.meta.url).pathname;

let ours: RedirectedOutcome;
let envoys: RedirectedOutcome;

before(async () => {
  await envoyPath();
  const outcomeOf = (proxy: string): Promise<RedirectedOutcome> => playInOwnNetwork(program, [proxy]);
  [ours, envoys] = await Promise.all([outcomeOf("ours"), outcomeOf("envoy")]);
});

for (const { name, host, port, expected, loopsAtEnvoy } of redirectedDials) {
  test(`${name}: ${host} port ${port}`, () => {
    if (!loopsAtEnvoy) assert.equal(envoys.answers[name], expected, "Envoy");
    assert.equal(ours.answers[name], expected, "this proxy");
  });
}

test("headers that name no address are counted as by Envoy, destinations that there are none as without a host", () => {
  const invalid = "cluster.header.original_dst_host_invalid";
  assert.deepEqual([ours.counters[invalid], envoys.counters[invalid]], [1, 1]);
  assert.deepEqual(movedCounters(ours.counters), {
    [invalid]: 1,
    "cluster.all.upstream_cx_none_healthy": 3,
    "cluster.all.original_dst_loop": 1,
  });
});
