// A sidecar in Istio's `interceptionMode: TPROXY`, Tulle's proxy or Envoy: the application sees its clients' addresses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { debianTool } from "../tools/debian-tool.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { playInOwnNetwork } from "../tools/own-network.ts";
import { tproxyCalls } from "./tproxy-calls.ts";

const stage = new URL("./tproxy-stage.ts", import.meta.url).pathname;

for (const [client, server] of [
  ["tulle", "envoy"],
  ["envoy", "tulle"],
] as const) {
  test(`the application beside ${server} is called through ${client}`, async () => {
    await debianTool("curl");
    await envoyPath();
    const outcome = await playInOwnNetwork<Readonly<Record<string, string>>>(stage, [client, server]);
    assert.deepEqual(outcome, Object.fromEntries(tproxyCalls.map(({ name, expected }) => [name, expected])));
  });
}
