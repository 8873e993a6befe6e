// Clients that cost more than they pay for: what ends their connection, and that others are served meanwhile.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { forwardTo, handBuiltCluster } from "../../testing/hand-built-runtime.ts";
import { emptySettings, frame, Http2Peer, plainFields, settingFrame } from "../../testing/http2-peer.ts";
import type { RouteAction } from "../../route/route-table.ts";
import { runBackend, runProxy } from "../../testing/running-proxy.ts";
import { frameFlags, frameTypes } from "./frame.ts";
import { defaultHttp2Options } from "./http2-options.ts";
import type { Http2Stats } from "./http2-stats.ts";

const { endStream, endHeaders } = frameFlags;
const { data, headers, priority, rstStream, ping, windowUpdate, continuation } = frameTypes;

const fields = (path: string): Buffer =>
  plainFields([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "a"],
  ]);
const cancel = Buffer.from([0, 0, 0, 8]);
const one = Buffer.from([0, 0, 0, 1]);
/** An answer that waits for no window, and fills what the kernel holds soon. */
const noContent: RouteAction = {
  type: "direct",
  status: 204,
  body: Buffer.alloc(0),
  finalizeResponse: (head) => head.headers.set("x-large", "x".repeat(4000)),
};

interface Flood {
  readonly name: string;
  /** The frames of turn `index`, over and over. */
  readonly turn: (index: number) => readonly Buffer[];
  readonly turns: number;
  readonly metric: keyof Http2Stats;
  /** Our answers are not read. */
  readonly readsNothing?: boolean;
}

const floods: readonly Flood[] = [
  {
    name: "rapid reset (CVE-2023-44487)",
    turn: (index) => [
      frame(headers, endStream | endHeaders, 2 * index + 1, fields("/")),
      frame(rstStream, 0, 2 * index + 1, cancel),
    ],
    turns: 3000,
    metric: "inbound_reset_flood",
  },
  {
    name: "resets that our own refusals are (MadeYouReset, CVE-2025-8671)",
    turn: (index) => [
      frame(headers, endHeaders, 2 * index + 1, fields("/")),
      frame(windowUpdate, 0, 2 * index + 1, Buffer.alloc(4)),
    ],
    turns: 3000,
    metric: "inbound_reset_flood",
  },
  {
    name: "CONTINUATIONs without an end (CVE-2024-27316)",
    turn: (index) => [
      index === 0
        ? frame(headers, 0, 1, fields("/"))
        : frame(continuation, 0, 1, plainFields([["x", "y".repeat(100)]])),
    ],
    turns: 20,
    metric: "inbound_continuation_flood",
  },
  {
    name: "a section larger than all of its limits",
    turn: (index) => [
      index === 0
        ? frame(headers, 0, 1, fields("/"))
        : frame(continuation, 0, 1, plainFields([["x", "y".repeat(16_000)]])),
    ],
    turns: 9,
    metric: "headersOverflow",
  },
  {
    name: "empty DATA (CVE-2019-9518)",
    turn: (index) => [index === 0 ? frame(headers, endHeaders, 1, fields("/")) : frame(data, 0, 1)],
    turns: 20,
    metric: "inbound_empty_frames_flood",
  },
  {
    name: "empty DATA of two streams in turns",
    turn: (index) => [
      index < 2 ? frame(headers, endHeaders, 2 * index + 1, fields("/")) : frame(data, 0, (2 * index + 1) % 4),
    ],
    turns: 20,
    metric: "inbound_empty_frames_flood",
  },
  {
    name: "empty DATA of a stream that is over",
    turn: (index) => [index === 0 ? frame(headers, endHeaders, 1, fields("/none")) : frame(data, 0, 1)],
    turns: 3000,
    metric: "inbound_empty_frames_flood",
  },
  {
    name: "PRIORITY (CVE-2019-9513)",
    turn: () => [frame(priority, 0, 3, Buffer.alloc(5))],
    turns: 400,
    metric: "inbound_priority_frames_flood",
  },
  {
    name: "WINDOW_UPDATE for nothing that was sent",
    turn: () => [frame(windowUpdate, 0, 0, one)],
    turns: 400,
    metric: "inbound_window_update_frames_flood",
  },
  {
    name: "SETTINGS that change the windows of all streams",
    turn: (index) => [settingFrame(4, index % 2)],
    turns: 3000,
    metric: "inbound_settings_flood",
  },
  {
    name: "requests whose answers are not read",
    turn: (index) =>
      Array.from({ length: 100 }, (_, at) =>
        frame(headers, endStream | endHeaders, 2 * (100 * index + at) + 1, fields("/none")),
      ),
    turns: 3000,
    metric: "outbound_flood",
    readsNothing: true,
  },
  {
    name: "PING whose answers are not read (CVE-2019-9512)",
    turn: () => Array.from({ length: 1000 }, () => frame(ping, 0, 0, Buffer.alloc(8))),
    turns: 3000,
    metric: "outbound_control_flood",
    readsNothing: true,
  },
  {
    name: "SETTINGS whose answers are not read (CVE-2019-9515)",
    turn: () => Array.from({ length: 1000 }, () => emptySettings),
    turns: 3000,
    metric: "outbound_control_flood",
    readsNothing: true,
  },
];

for (const { name, turn, turns, metric, readsNothing = false } of floods) {
  test(`ends a flood: ${name}`, async (t) => {
    const backend = await runBackend(t, (socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    const routes = { "/": forwardTo(handBuiltCluster("c", [backend.port])), "/none": noContent };
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
    other.send(frame(headers, endStream | endHeaders, 1, fields("/")));
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
      ...streams.map((id) => frame(headers, endHeaders, id, fields(path))),
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
  const block = Buffer.concat([fields("/"), large, Buffer.alloc(11_000, 0xbe)]);
  const before = process.memoryUsage().heapUsed;
  peer.send(frame(headers, endStream | endHeaders, 1, block));
  await peer.until(({ heads }) => heads.length === 1);
  assert.equal(peer.heads[0]!.fields.get(":status"), "431");
  assert.ok(process.memoryUsage().heapUsed - before < 20_000_000);
});
