// What observers hear of a stream, and when: its beginning, its route, each try, its end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { retryConditions } from "../route/route-table.ts";
import { forwardTo, handBuiltCluster, retryPolicy } from "../testing/hand-built-runtime.ts";
import { Client, runBackend, runProxy } from "../testing/running-proxy.ts";
import { StreamObservers, type StreamObserver } from "./stream-observer.ts";

function recorder(seen: string[]): StreamObserver {
  return {
    onStart: (info) => void seen.push(`start ${info.request === undefined}`),
    onRoute: (info) => void seen.push(`route ${info.route?.name}`),
    onTry(info) {
      seen.push(`try ${info.attemptCount} at ${info.cluster?.name}`);
      info.request?.headers.set("traceparent", `try-${info.attemptCount}`);
    },
    onEnd: (info) => void seen.push(`end ${info.responseCode} ${info.responseCodeDetails}`),
  };
}

test("each try is told before it leaves, and may say so in its headers", async (t) => {
  const answers = ["HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"];
  const backend = await runBackend(t, (socket) => void socket.write(answers.shift()!));
  const cluster = handBuiltCluster("c", [backend.port]);
  const seen: string[] = [];
  const routes = { "/a": forwardTo(cluster, { retryPolicy: retryPolicy(retryConditions["5xx"], 1) }) };
  const config = { observers: new StreamObservers([recorder(seen), {}]) };
  const proxy = await runProxy(t, { routes, config, random: () => 0 });
  const client = await Client.connect(t, proxy.port);
  client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.receive(/ok$/);
  assert.deepEqual(seen, ["start true", "route /a", "try 1 at c", "try 2 at c", "end 200 via_upstream"]);
  assert.deepEqual(backend.seen.join("").match(/traceparent: \S+/g), ["traceparent: try-1", "traceparent: try-2"]);
});

test("a request that no route fits, and bytes that are no request, end as they began", async (t) => {
  const seen: string[] = [];
  const config = { observers: new StreamObservers([recorder(seen)]) };
  const proxy = await runProxy(t, { routes: {}, config });
  const client = await Client.connect(t, proxy.port);
  client.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.receive(/^HTTP\/1\.1 404 /);
  client.send("{}\r\n\r\n");
  await client.receive(/HTTP\/1\.1 400 /);
  assert.deepEqual(seen, [
    "start true",
    "route undefined",
    "end 404 route_not_found",
    "start true",
    "end 400 http1.codec_error",
  ]);
});
