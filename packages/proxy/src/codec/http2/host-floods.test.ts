// Hosts that cost more than they answer: what ends their connection or their stream, what the client is told, and that
// the next request is served.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { forwardTo, handBuiltCluster } from "../../testing/hand-built-runtime.ts";
import { emptySettings, frame, type Http2Peer, plainFields, runHttp2Host, uint32 } from "../../testing/http2-peer.ts";
import { Client, runProxy, until } from "../../testing/running-proxy.ts";
import { frameFlags, frameTypes } from "./frame.ts";
import type { Http2Stats } from "./http2-stats.ts";

const { endStream, endHeaders } = frameFlags;
const { data, headers, priority, ping, pushPromise, windowUpdate, continuation } = frameTypes;

const head = (status: string, flags: number = endHeaders): Buffer =>
  frame(headers, flags, 1, plainFields([[":status", status]]));

interface Flood {
  readonly name: string;
  /** Before the flood. */
  readonly first?: Buffer;
  readonly turn: Buffer;
  readonly turns: number;
  /** How often `turn` is in one write. */
  readonly atOnce?: number;
  readonly metric: keyof Http2Stats;
  /** Code and flags in the access log. */
  readonly logged: string;
  readonly readsNothing?: boolean;
}

const floods: readonly Flood[] = [
  {
    name: "informational answers",
    turn: head("103"),
    turns: 200,
    metric: "messagingErrors",
    logged: "502 UPE",
  },
  {
    name: "trailers without an end",
    first: Buffer.concat([head("200"), frame(headers, endStream, 1, plainFields([["x", "y"]]))]),
    turn: frame(continuation, 0, 1, plainFields([["x", "y"]])),
    turns: 20,
    metric: "inbound_continuation_flood",
    logged: "200 UPE",
  },
  {
    name: "a head larger than all of its limits",
    first: frame(headers, 0, 1, plainFields([[":status", "200"]])),
    turn: frame(continuation, 0, 1, plainFields([["x", "y".repeat(16_000)]])),
    turns: 20,
    metric: "inbound_continuation_flood",
    logged: "502 UPE",
  },
  {
    name: "empty DATA",
    first: head("200"),
    turn: frame(data, 0, 1),
    turns: 20,
    metric: "inbound_empty_frames_flood",
    logged: "200 UPE",
  },
  {
    name: "PRIORITY",
    turn: frame(priority, 0, 1, Buffer.alloc(5)),
    turns: 400,
    metric: "inbound_priority_frames_flood",
    logged: "502 UPE",
  },
  {
    name: "WINDOW_UPDATE for nothing that was sent",
    turn: frame(windowUpdate, 0, 0, uint32(1)),
    turns: 400,
    metric: "inbound_window_update_frames_flood",
    logged: "502 UPE",
  },
  {
    name: "PUSH_PROMISE",
    turn: frame(pushPromise, endHeaders, 1, Buffer.concat([uint32(2), plainFields([[":path", "/"]])])),
    turns: 3,
    metric: "goAwaysSent",
    logged: "502 UPE",
  },
  ...[
    { name: "PING", turn: frame(ping, 0, 0, Buffer.alloc(8)) },
    { name: "SETTINGS", turn: emptySettings },
  ].map(({ name, turn }) => ({
    name: `${name} whose answers are not read`,
    turn,
    turns: 3000,
    atOnce: 1000,
    metric: "outbound_control_flood" as const,
    logged: "502 UPE",
    readsNothing: true,
  })),
];

async function flood(peer: Http2Peer, { first, turn, turns, atOnce = 1, readsNothing }: Flood): Promise<void> {
  if (readsNothing === true) peer.socket.pause();
  if (first !== undefined) peer.send(first);
  const frames = Buffer.concat(Array.from({ length: atOnce }, () => turn));
  for (let index = 0; index < turns && !peer.isClosed && peer.socket.writable; index += 1) {
    peer.send(frames);
    if (peer.socket.writableLength > 1_000_000)
      await Promise.race([once(peer.socket, "drain"), once(peer.socket, "close")]).catch(() => undefined);
  }
  if (readsNothing === true) peer.socket.resume();
}

for (const row of floods) {
  test(`a host's flood ends: ${row.name}`, async (t) => {
    let requests = 0;
    const host = await runHttp2Host(t, emptySettings, (peer, streamId) => {
      requests += 1;
      if (requests === 1) void flood(peer, row);
      else peer.send(frame(headers, endStream | endHeaders, streamId, plainFields([[":status", "200"]])));
    });
    const cluster = handBuiltCluster("c", [host.port], { protocol: "HTTP/2" });
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
    const client = await Client.connect(t, proxy.port);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await until(
      () => proxy.log.length > 0,
      () => "the end of the request",
    );
    assert.equal(proxy.log[0]!.split(" ").slice(0, 2).join(" "), row.logged);
    assert.equal(cluster.http2Stats()[row.metric].value, 1);
    const next = await Client.connect(t, proxy.port);
    next.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await next.receive(/^HTTP\/1\.1 200 /);
  });
}

test("a host that takes no stream at all costs few connections, and the request ends", async (t) => {
  const none = frame(frameTypes.settings, 0, 0, Buffer.concat([Buffer.from([0, 3]), uint32(0)]));
  const host = await runHttp2Host(t, none, () => undefined, none);
  const cluster = handBuiltCluster("c", [host.port], { protocol: "HTTP/2", connectTimeoutMs: 500 });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, { timeoutMs: 300 }) } });
  const client = await Client.connect(t, proxy.port);
  for (let request = 0; request < 3; request += 1) {
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.receive(/^HTTP\/1\.1 50[34] /);
  }
  assert.ok(host.peers.length <= 6, `${host.peers.length} connections`);
});
