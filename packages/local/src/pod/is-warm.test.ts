// What a proxy's own gauges say of configuration that it has accepted and does not serve yet.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test, type TestContext } from "node:test";
import { freeAddressBlock } from "../../../../tests/tools/processes.ts";
import { connectHere } from "../network/pod-network.ts";
import { isWarm } from "./is-warm.ts";

/** A proxy's admin page on the port that it always has, at an address of its own. */
async function proxyThatSays(t: TestContext, stats: string): Promise<string> {
  const server = createServer((_request, response) => response.end(stats));
  const address = `${await freeAddressBlock()}.1`;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(15_000, address, resolve);
  });
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return address;
}

for (const { name, clusters, listeners, expected } of [
  { name: "nothing warms", clusters: 0, listeners: 0, expected: true },
  { name: "a cluster warms", clusters: 1, listeners: 0, expected: false },
  { name: "listeners warm", clusters: 0, listeners: 10, expected: false },
]) {
  test(name, async (t) => {
    const stats = `cluster_manager.warming_clusters: ${clusters}\nlistener_manager.total_listeners_warming: ${listeners}\n`;
    assert.equal(await isWarm({ proxyAt: await proxyThatSays(t, stats), connect: connectHere }), expected);
  });
}
