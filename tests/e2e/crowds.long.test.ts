// Connections by the thousand of another user, to every port that an instance listens on: the owner, the proxies and
// the probes are answered all the same. Two real users; so this runs as root.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { before, describe, test } from "node:test";
import { rollOut } from "./replicated-shop.ts";
import { useRunningShop } from "./running-shop.ts";
import { httpRequest, type ShopInstance } from "./shop-instance.ts";
import type { Crowd } from "./squatter-program.ts";
import { addressesOf, requireRoot, Squatter } from "./squatter-process.ts";

describe("another user's crowd", () => {
  let shop: ShopInstance;
  before(requireRoot);
  useRunningShop("Tulle's proxy", (running) => (shop = running));

  test("1,100 idle connections and 300 watches of another user keep nobody out, and are told nothing", async () => {
    const { api, xds } = await addressesOf(shop);
    const watch = `GET /api/v1/watch HTTP/1.1\r\nhost: ${api}\r\n\r\n`;
    await using _idle = await crowd({ at: api, count: 1100, text: "" }, { at: xds, count: 1100, text: "" });
    await using _watchers = await crowd(
      { at: api, count: 300, text: watch },
      // The begin of a handshake.
      { at: xds, count: 300, text: "\x16\x03\x01" },
    );
    await shop.applyRule("2-everything-to-v1");
    assert.equal((await shop.pods()).length, 5);
    const pages = [
      "debug/config_dump?proxyID=webapp.shop",
      "debug/configz",
      "debug/syncz",
      "api/v1/resources/Pod",
      "api/v1/resources/Deployment",
    ];
    for (const page of pages) {
      const { status, body } = await httpRequest(`http://${api}/${page}`);
      assert.equal(status, 403, page);
      assert.match(body, /only \/ready, \/version and \/metrics/);
    }
    assert.match((await httpRequest(`http://${api}/metrics`)).body, /^pilot_services \d/m);
    // A new pod asks for its certificate, and then for its configuration.
    await rollOut(shop, { name: "webapp", namespace: "shop" });
    await shop.waitForSync();
    assert.equal((await shop.get("/api/catalog")).status, 200);
  });

  test("1,100 idle connections of another user to each port of a pod keep out neither probes nor Prometheus nor the owner", async () => {
    const { name, address } = await shop.pod("webapp");
    const head = "GET /healthz/ready HTTP/1.1\r\n";
    const ports = [15_000, 15_007, 15_020, 15_021];
    await using _idle = await crowd(...ports.map((port) => ({ at: `${address}:${port}`, count: 1100, text: "" })));
    await using _slow = await crowd(...ports.map((port) => ({ at: `${address}:${port}`, count: 200, text: head })));
    for (let asked = 0; asked < 20; asked += 1) {
      assert.equal((await httpRequest(`http://${address}:15021/healthz/ready`)).status, 200);
      assert.match((await httpRequest(`http://${address}:15020/stats/prometheus`)).body, /^istio_agent_/m);
      assert.equal((await httpRequest(`http://${address}:15000/server_info`)).status, 200);
      const { status, body } = await shop.get("/api/catalog");
      assert.equal(status, 200, `request ${asked}: ${body}\n${await shop.proxyLogs()}`);
    }
    await shop.mustTulle("proxy-config", "clusters", name);
    assert.ok((await shop.pods()).every(({ ready }) => ready));
  });

  // What is dropped knocks again after a second, and again after three: a probe's time is over then.
  test("1,000 connections that come to a port while its process is held up are kept, not dropped", async () => {
    const { name, address } = await shop.pod("webapp");
    const processes = await shop.processes();
    const { api, xds } = await addressesOf(shop);
    const held = {
      [`${name} proxy`]: [15_000, 15_007, 15_020, 15_021].map((port) => `${address}:${port}`),
      "control-plane": [api, xds],
    };
    for (const [who, ports] of Object.entries(held)) {
      const pid = processes.get(who)!;
      process.kill(pid, "SIGSTOP");
      try {
        for (const at of ports) await connectAtOnce(at, 1000);
      } finally {
        process.kill(pid, "SIGCONT");
      }
    }
  });
});

/** Until all of them have been connected at least once. */
async function crowd(...crowds: readonly Crowd[]): Promise<Squatter> {
  const squatter = await Squatter.start({ listen: [], crowds });
  await Promise.all(crowds.map(({ at }) => squatter.crowded(at)));
  return squatter;
}

/** Rejects unless so many are connected at the same time, all within a time that two further tries would exceed. */
async function connectAtOnce(at: string, count: number): Promise<void> {
  const { hostname: host, port } = new URL(`http://${at}`);
  const signal = AbortSignal.timeout(2500);
  const sockets = Array.from({ length: count }, () => connect({ host, port: Number(port) }));
  try {
    await Promise.all(sockets.map((socket) => once(socket, "connect", { signal })));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}
