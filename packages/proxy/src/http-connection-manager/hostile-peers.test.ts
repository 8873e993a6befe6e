// Peers that do what they can to harm: clients that never read, bodies that smuggle requests, back ends that answer too
// much or leave at the worst moment.
import assert from "node:assert/strict";
import { test } from "node:test";
import { forwardTo, handBuiltCluster, handBuiltListener } from "../testing/hand-built-runtime.ts";
import { Client, runBackend, runProxy, until } from "../testing/running-proxy.ts";
import type { RouteAction } from "../route/route-table.ts";

const get = (path: string, fields = ""): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

test("a client that pipelines and never reads does not make answers pile up", async (t) => {
  const body = Buffer.alloc(64 * 1024, "x");
  const direct: RouteAction = { type: "direct", status: 200, body, finalizeResponse: () => undefined };
  const proxy = await runProxy(t, { routes: { "/": direct } });
  const client = await Client.connect(t, proxy.port);
  client.socket.pause();
  const count = 1000;
  client.send(get("/").repeat(count));
  await until(
    () => proxy.log.length > 10,
    () => "the first answers",
  );
  // What fits in the kernel's buffers and in the limit is answered, and then nothing more.
  let seen = -1;
  let quietTurns = 0;
  await until(
    () => {
      quietTurns = proxy.log.length === seen ? quietTurns + 1 : 0;
      seen = proxy.log.length;
      return quietTurns > 200;
    },
    () => "an end of answering",
  );
  assert.ok(seen < count / 4, `${seen} answers wait for a client that reads none`);
  let received = 0;
  client.socket.removeAllListeners("data");
  client.socket.on("data", (data) => (received += data.length));
  client.socket.resume();
  await until(
    () => proxy.log.length === count && received > count * body.length,
    () => `all answers: ${proxy.log.length} of them, ${received} bytes`,
  );
});

test("a body behind a request for an upgrade stays framed", async (t) => {
  const backend = await runBackend(t, (socket) => socket.write(ok));
  const upgrades = new Map([["websocket", { enabled: true, terminatesConnect: false }]]);
  const proxy = await runProxy(t, {
    routes: { "/": forwardTo(handBuiltCluster("c", [backend.port]), { upgrades }) },
    config: { upgradeTypes: new Set(["websocket"]) },
  });
  const client = await Client.connect(t, proxy.port);
  const smuggled = "GET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n";
  client.send(
    `POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
  );
  await client.receive(/HTTP\/1.1 200/);
  const seen = backend.seen.join("");
  assert.match(seen, /transfer-encoding: chunked\r\n/);
});

test("no transfer coding goes with 204, whatever the method", async (t) => {
  const backend = await runBackend(t, (socket) => void socket.write("HTTP/1.1 204 No Content\r\n\r\n"));
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) } });
  const client = await Client.connect(t, proxy.port);
  client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.doesNotMatch(await client.receive(/\r\n\r\n/), /transfer-encoding/);
});

test("a CONNECT that ends here closes its connection when the far side has ended", async (t) => {
  const backend = await runBackend(t, (socket) => socket.end("bye"));
  const cluster = handBuiltCluster("c", [backend.port]);
  const upgrades = new Map([["connect", { enabled: true, terminatesConnect: true }]]);
  const proxy = await runProxy(t, {
    routes: { CONNECT: forwardTo(cluster, { upgrades }) },
    config: { upgradeTypes: new Set(["connect"]) },
  });
  const client = await Client.connect(t, proxy.port);
  client.send("CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n");
  await client.receive(/200 OK/);
  client.send("hello");
  await client.receiveEnd();
  await until(
    () => cluster.stats.upstreamConnectionsActive.value === 0 && cluster.hosts[0]!.activeRequests === 0,
    () => `no connection, not ${cluster.stats.upstreamConnectionsActive.value}`,
  );
  assert.equal(cluster.stats.upstreamRequestsActive.value, 0);
});

test("a listener whose statistics are renewed counts each connection where it began", async (t) => {
  const proxy = await runProxy(t, { routes: {} });
  const first = handBuiltListener(proxy.config, 0, "renewed");
  await proxy.host.apply(first);
  const { port } = proxy.host.boundAddresses().get("renewed")![0]!;
  const client = await Client.connect(t, port);
  await until(
    () => first.stats.connectionsActive.value === 1,
    () => "the connection",
  );
  const second = handBuiltListener(proxy.config, 0, "renewed");
  await proxy.host.apply(second);
  client.socket.destroy();
  await until(
    () => first.stats.connectionsActive.value + second.stats.connectionsActive.value === 0,
    () => "the end of the connection",
  );
  assert.equal(first.stats.connectionsActive.value, 0);
});
