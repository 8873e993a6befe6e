// Clients that cost more than they pay for: what ends their connection, and that others are served meanwhile.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { forwardTo, handBuiltCluster } from "../../testing/hand-built-runtime.ts";
import { frame, Http2Peer, plainFields } from "../../testing/http2-peer.ts";
import { http2Floods, requestFields } from "../../testing/http2-floods.ts";
import type { RouteAction } from "../../route/route-table.ts";
import { runBackend, runProxy } from "../../testing/running-proxy.ts";
import { frameFlags, frameTypes } from "./frame.ts";
import { defaultHttp2Options } from "./http2-options.ts";

const { endStream, endHeaders } = frameFlags;
const { data, headers, ping } = frameTypes;

/** An answer that waits for no window, and fills what the kernel holds soon. */
const noContent: RouteAction = {
  type: "direct",
  status: 204,
  body: Buffer.alloc(0),
  finalizeResponse: (head) => head.headers.set("x-large", "x".repeat(4000)),
};

for (const { name, turn, turns, metric, readsNothing = false } of http2Floods) {
  test(`ends a flood: ${name}`, async (t) => {
    const backend = await runBackend(t, (socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    const silent = await runBackend(t, () => undefined);
    const routes = {
      "/": forwardTo(handBuiltCluster("c", [backend.port])),
      "/silent": forwardTo(handBuiltCluster("silent", [silent.port])),
      "/none": noContent,
    };
    const http2 = { ...defaultHttp2Options, maxOutboundFrames: 1000 };
    const proxy = await runProxy(t, { routes, config: { http2 } });
    const flooder = await Http2Peer.open(proxy.port);
    t.after(() => flooder.socket.destroy());
    if (readsNothing) flooder.socket.pause();
    for (let index = 0; index < turns && !flooder.isClosed; index += 1) {
      flooder.send(...turn(index));
      // What cannot be sent need not be made.
      if (flooder.socket.writableLength > 1_000_000)
        await Promise.race([once(flooder.socket, "drain"), once(flooder.socket, "close")]);
      if (proxy.config.stats.downstreamProtocolErrors.value > 0) break;
    }
    if (readsNothing) flooder.socket.resume();
    await flooder.until((peer) => peer.isClosed || peer.summary().includes("GOAWAY")).catch(() => undefined);
    assert.equal(proxy.config.stats.downstreamProtocolErrors.value, 1);
    assert.equal(proxy.config.http2Stats()[metric].value, 1);
    if (!readsNothing) assert.match(flooder.summary(), /GOAWAY enhanceYourCalm$/);
    const other = await Http2Peer.open(proxy.port);
    t.after(() => other.socket.destroy());
    other.send(frame(headers, endStream | endHeaders, 1, requestFields("/")));
    await other.until((peer) => peer.summary().includes("HEADERS 1 200"));
  });
}

for (const path of ["/silent", "/none"]) {
  test(`an empty frame before the trailers of each of many bodies is no flood: ${path}`, async (t) => {
    const backend = await runBackend(t, () => undefined);
    const routes = { "/silent": forwardTo(handBuiltCluster("c", [backend.port])), "/none": noContent };
    const proxy = await runProxy(t, { routes });
    const peer = await Http2Peer.open(proxy.port);
    t.after(() => peer.socket.destroy());
    const streams = Array.from({ length: 50 }, (_, index) => 2 * index + 1);
    peer.send(
      ...streams.map((id) => frame(headers, endHeaders, id, requestFields(path))),
      // nghttp2 writes one, and does so for all streams that end together.
      ...streams.map((id) => frame(data, 0, id)),
      ...streams.map((id) => frame(headers, endStream | endHeaders, id, plainFields([["x-sum", "1"]]))),
      frame(ping, 0, 0, Buffer.alloc(8)),
    );
    await peer.until(({ frames }) => frames.some(({ type }) => type === ping));
    assert.equal(proxy.config.stats.downstreamProtocolErrors.value, 0);
  });
}

test("HPACK: entries of the table that come again and again are counted, not kept", async (t) => {
  const proxy = await runProxy(t, { routes: {} });
  const peer = await Http2Peer.open(proxy.port);
  t.after(() => peer.socket.destroy());
  // One large entry, then a byte each: 4,000 bytes a byte.
  const large = Buffer.concat([Buffer.from([0x40, 1, 120, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, 97)]);
  const block = Buffer.concat([requestFields("/"), large, Buffer.alloc(11_000, 0xbe)]);
  const before = process.memoryUsage().heapUsed;
  peer.send(frame(headers, endStream | endHeaders, 1, block));
  await peer.until(({ heads }) => heads.length === 1);
  assert.equal(peer.heads[0]!.fields.get(":status"), "431");
  assert.ok(process.memoryUsage().heapUsed - before < 20_000_000);
});
