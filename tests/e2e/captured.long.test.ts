// Two pods whose connections the kernel leads through their sidecars, Tulle's proxy and Envoy, by the same control
// plane: unmodified programs reach what they name, over mutual TLS, and nobody goes past it under STRICT.
import assert from "node:assert/strict";
import { test } from "node:test";
import { debianTool } from "../tools/debian-tool.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { playInOwnNetwork } from "../tools/own-network.ts";
import { capturedCalls, type CapturedOutcome, strictCalls } from "./captured-calls.ts";

const program = new URL("./captured-stage.ts", import.meta.url).pathname;

for (const [client, server] of [
  ["tulle", "envoy"],
  ["envoy", "tulle"],
] as const) {
  test(`the caller's sidecar is ${client}, the other one ${server}`, async () => {
    await debianTool("curl");
    await envoyPath();
    const outcome = await playInOwnNetwork<CapturedOutcome>(program, [client, server]);
    const expected = [...capturedCalls, ...strictCalls].map(({ name, expected: each }) => [name, each]);
    assert.deepEqual(outcome, Object.fromEntries(expected));
  });
}
