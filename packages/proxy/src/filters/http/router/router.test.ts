// The router on real sockets and a clock that the test moves: time-outs, retries, flags and code details as Envoy gives
// them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { forwardTo, handBuiltCluster, retryPolicy } from "../../../testing/hand-built-runtime.ts";
import { ManualClock } from "../../../testing/manual-clock.ts";
import { Client, runBackend, runProxy, until } from "../../../testing/running-proxy.ts";
import { type ForwardAction, retryConditions } from "../../../route/route-table.ts";
import type net from "node:net";

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const get = (path: string, fields = ""): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
const bit = retryConditions;

test("a hanging host: four tries each cut at 2 s, four connections closed, 504 UT", async (t) => {
  const clock = new ManualClock();
  const backend = await runBackend(t, () => undefined);
  const cluster = handBuiltCluster("hang", [backend.port]);
  const policy = retryPolicy(bit["5xx"], 3, { perTryTimeoutMs: 2000 });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, { retryPolicy: policy }) }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  const heads = (): number => backend.seen.filter((piece) => piece.startsWith("GET")).length;
  for (let attempt = 1; attempt <= 4; attempt += 1) {
    await until(
      () => heads() === attempt && cluster.stats.upstreamRequestsActive.value === 1,
      () => `try ${attempt}`,
    );
    clock.advance(1900);
    assert.equal(cluster.stats.upstreamRequestPerTryTimeouts.value, attempt - 1);
    clock.advance(116);
    assert.equal(cluster.stats.upstreamRequestPerTryTimeouts.value, attempt);
    // Back-off below 250 ms.
    if (attempt < 4) clock.advance(250);
  }
  const answer = await client.receive(/upstream request timeout$/);
  assert.match(answer, /^HTTP\/1\.1 504 Gateway Timeout\r\n/);
  assert.deepEqual(proxy.log, ["504 URX,UT upstream_per_try_timeout"]);
  const { stats } = cluster;
  assert.equal(stats.upstreamConnectionsDestroyedLocalActive.value, 4);
  assert.equal(stats.upstreamRequestRetries.value, 3);
  assert.equal(stats.upstreamRequestRetryLimitExceeded.value, 1);
  assert.equal(stats.upstreamRequestsTotal.value, 4);
  assert.equal(stats.upstreamRetriesActive.value, 0);
  assert.equal(stats.upstreamRequestsActive.value, 0);
  assert.equal(proxy.infos[0]!.attemptCount, 4);
  await until(
    () => backend.seen.filter((piece) => piece === "<CLOSED>").length === 4,
    () => "four closed connections",
  );
});

// The host was told in `grpc-timeout` how long the try may last, and its clock may strike first.
for (const [name, afterMs, isRepeated] of [
  ["as a try's time ends is its time-out", 1990, true],
  ["long before is the host's answer", 1900, false],
] as const) {
  test(`DEADLINE_EXCEEDED ${name}`, async (t) => {
    const clock = new ManualClock();
    const hosts: net.Socket[] = [];
    const backend = await runBackend(t, (socket) => void hosts.push(socket));
    const cluster = handBuiltCluster("c", [backend.port]);
    const policy = retryPolicy(bit.reset, 1, { perTryTimeoutMs: 2000 });
    const routes = {
      "/": forwardTo(cluster, { retryPolicy: policy, timeoutMs: 0, grpcTimeout: { maxMs: 0, offsetMs: 0 } }),
    };
    const proxy = await runProxy(t, { routes, clock });
    const client = await Client.connect(t, proxy.port);
    client.send(get("/", "content-type: application/grpc\r\n"));
    await until(
      () => backend.seen.length === 1,
      () => "the first try",
    );
    assert.match(backend.seen[0]!, /grpc-timeout: 2000m\r\n/);
    clock.advance(afterMs);
    hosts[0]!.write("HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ngrpc-status: 4\r\ncontent-length: 0\r\n\r\n");
    if (isRepeated) {
      await until(
        () => {
          clock.advance(5);
          return hosts.length === 2;
        },
        () => "the second try",
      );
      hosts[1]!.write(ok);
    }
    const answer = await client.receive(isRepeated ? /ok$/ : /\r\n\r\n/);
    assert.equal(/grpc-status: 4/.test(answer), !isRepeated);
    assert.deepEqual(proxy.log, ["200 - via_upstream"]);
    const { upstreamRequestPerTryTimeouts, upstreamRequestRetrySuccess, upstreamRequestsActive } = cluster.stats;
    assert.deepEqual(
      [upstreamRequestPerTryTimeouts.value, upstreamRequestRetrySuccess.value, upstreamRequestsActive.value],
      isRepeated ? [1, 1, 0] : [0, 0, 0],
    );
  });
}

test("the whole request's time-out cuts a try and gives 504 UT", async (t) => {
  const clock = new ManualClock();
  const backend = await runBackend(t, () => undefined);
  const cluster = handBuiltCluster("hang", [backend.port]);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, { timeoutMs: 300 }) }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await until(
    () => backend.seen.length === 1,
    () => "the request",
  );
  assert.match(backend.seen[0]!, /x-envoy-expected-rq-timeout-ms: 300\r\n/);
  clock.advance(320);
  assert.match(await client.receive(/timeout$/), /^HTTP\/1\.1 504 /);
  assert.deepEqual(proxy.log, ["504 UT response_timeout"]);
  assert.equal(cluster.stats.upstreamRequestTimeouts.value, 1);
});

test("a stream without activity for its idle time-out ends with 504 SI", async (t) => {
  const clock = new ManualClock();
  const backend = await runBackend(t, () => undefined);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("hang", [backend.port])) }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await until(
    () => backend.seen.length === 1,
    () => "the request",
  );
  clock.advance(300_010);
  assert.match(await client.receiveEnd(), /^HTTP\/1\.1 504 [^]*stream timeout$/);
  assert.deepEqual(proxy.log, ["504 SI stream_idle_timeout"]);
});

interface Answer {
  readonly name: string;
  readonly action: Partial<ForwardAction>;
  /** What the back end does at its nth connection or request, counted over all; there are no more of them. */
  readonly answers: readonly ((socket: net.Socket) => void)[];
  readonly fields?: string;
  /** The line of the access log. */
  readonly expected: string;
}

const send =
  (text: string) =>
  (socket: net.Socket): void =>
    void socket.write(text);
const close = (socket: net.Socket): void => void socket.destroy();
const status = (code: number): ((socket: net.Socket) => void) =>
  send(`HTTP/1.1 ${code} X\r\ncontent-length: 3\r\n\r\nerr`);
const retries = (conditions: number, count = 2, overrides = {}): Partial<ForwardAction> => ({
  retryPolicy: retryPolicy(conditions, count, overrides),
});

const answers: readonly Answer[] = [
  {
    name: "no policy: a 503 passes",
    action: {},
    answers: [status(503)],
    expected: "503 - via_upstream",
  },
  {
    name: "5xx: a 500 is tried again",
    action: retries(bit["5xx"]),
    answers: [status(500), send(ok)],
    expected: "200 - via_upstream",
  },
  {
    name: "5xx: the last answer passes with URX",
    action: retries(bit["5xx"]),
    answers: [status(503), status(503), status(503)],
    expected: "503 URX via_upstream",
  },
  {
    name: "gateway-error: 500 is none",
    action: retries(bit["gateway-error"]),
    answers: [status(500)],
    expected: "500 - via_upstream",
  },
  {
    name: "gateway-error: 502 is one",
    action: retries(bit["gateway-error"]),
    answers: [status(502), send(ok)],
    expected: "200 - via_upstream",
  },
  {
    name: "retriable-4xx: 409",
    action: retries(bit["retriable-4xx"]),
    answers: [status(409), send(ok)],
    expected: "200 - via_upstream",
  },
  {
    name: "retriable-status-codes",
    action: retries(bit["retriable-status-codes"], 2, { retriableStatusCodes: [418] }),
    answers: [status(418), send(ok)],
    expected: "200 - via_upstream",
  },
  {
    name: "reset: a closed connection is tried again",
    action: retries(bit.reset),
    answers: [close, send(ok)],
    expected: "200 - via_upstream",
  },
  {
    name: "connect-failure: a closed connection is none",
    action: retries(bit["connect-failure"]),
    answers: [close],
    expected: "503 UC upstream_reset_before_response_started{connection_termination}",
  },
  {
    name: "5xx: closed for good",
    action: retries(bit["5xx"], 1),
    answers: [close, close],
    expected: "503 URX,UC upstream_reset_before_response_started{connection_termination}",
  },
  {
    name: "garbage from the back end",
    action: {},
    answers: [send("hello\r\n\r\n")],
    expected: "502 UPE upstream_reset_before_response_started{protocol_error}",
  },
  {
    name: "an external client cannot ask for retries",
    action: {},
    answers: [status(503)],
    fields: "x-envoy-retry-on: 5xx\r\n",
    expected: "503 - via_upstream",
  },
];

for (const { name, action, answers: acts, fields, expected } of answers) {
  test(name, async (t) => {
    const clock = new ManualClock();
    let turn = 0;
    const backend = await runBackend(t, (socket) => {
      acts[turn]!(socket);
      turn += 1;
    });
    const cluster = handBuiltCluster("c", [backend.port]);
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, action) }, clock });
    const client = await Client.connect(t, proxy.port);
    client.send(get("/", fields));
    await until(
      () => {
        clock.advance(50);
        return proxy.log.length === 1;
      },
      () => "the access log",
    );
    assert.match(await client.receive(/\r\n\r\n/), new RegExp(`^HTTP/1\\.1 ${expected.split(" ")[0]} `));
    assert.deepEqual(proxy.log, [expected]);
    assert.equal(turn, acts.length);
    assert.equal(cluster.stats.upstreamRetriesActive.value, 0);
  });
}

test("a trusted client's headers set retries and time-outs and are taken off", async (t) => {
  const clock = new ManualClock();
  let turn = 0;
  const backend = await runBackend(t, (socket) => {
    turn += 1;
    socket.write(turn < 3 ? "HTTP/1.1 418 X\r\ncontent-length: 0\r\n\r\n" : ok);
  });
  const cluster = handBuiltCluster("c", [backend.port]);
  const routes = { "/": forwardTo(cluster, { includeRequestAttemptCount: true, includeAttemptCountInResponse: true }) };
  const proxy = await runProxy(t, { routes, clock, config: { isInternalAddress: () => true, useRemoteAddress: true } });
  const client = await Client.connect(t, proxy.port);
  const fields =
    "x-envoy-retry-on: retriable-status-codes\r\nx-envoy-retriable-status-codes: 418\r\nx-envoy-max-retries: 5\r\n" +
    "x-envoy-upstream-rq-timeout-ms: 7000\r\n";
  client.send(get("/", fields));
  await until(
    () => {
      clock.advance(50);
      return proxy.log.length === 1;
    },
    () => "the access log",
  );
  assert.match(await client.receive(/ok$/), /x-envoy-attempt-count: 3\r\n/);
  assert.equal(backend.seen.length, 3);
  const first = backend.seen[0]!;
  assert.match(first, /x-envoy-internal: true\r\n/);
  assert.match(first, /x-envoy-attempt-count: 1\r\nx-envoy-expected-rq-timeout-ms: 7000\r\n/);
  assert.doesNotMatch(first, /x-envoy-(?:retr|max|upstream)/);
});

test("a retry avoids the host that failed", async (t) => {
  const clock = new ManualClock();
  const bad = await runBackend(t, close);
  const good = await runBackend(t, send(ok));
  const cluster = handBuiltCluster("c", [bad.port, bad.port, good.port]);
  const policy = retryPolicy(bit.reset, 2, { avoidPreviousHosts: true, hostSelectionMaxAttempts: 5 });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, { retryPolicy: policy }) }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await until(
    () => {
      clock.advance(50);
      return proxy.log.length === 1;
    },
    () => "the access log",
  );
  assert.deepEqual(proxy.log, ["200 - via_upstream"]);
});

test("a refused connection: 503 UF, and URX,UF when retries are used up", async (t) => {
  const clock = new ManualClock();
  const routes = {
    "/plain": forwardTo(handBuiltCluster("dead", [1])),
    "/retry": forwardTo(handBuiltCluster("dead", [1]), { retryPolicy: retryPolicy(bit["connect-failure"], 2) }),
  };
  const proxy = await runProxy(t, { routes, clock });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/plain"));
  const refused = "remote_connection_failure|delayed_connect_error:_Connection_refused";
  assert.match(
    await client.receive(/failure$/),
    /upstream connect error or disconnect\/reset before headers\. reset reason: remote connection failure$/,
  );
  client.send(get("/retry"));
  await until(
    () => {
      clock.advance(50);
      return proxy.log.length === 2;
    },
    () => "the access log",
  );
  assert.match(await client.receive(/failure$/), /retried and the latest reset reason: remote connection failure$/);
  assert.deepEqual(proxy.log, [
    `503 UF upstream_reset_before_response_started{${refused}}`,
    `503 URX,UF upstream_reset_before_response_started{${refused}}`,
  ]);
});

test("a later try goes to the cluster that an update has put in place", async (t) => {
  const clock = new ManualClock();
  const fresh = await runBackend(t, (socket) => void socket.write(ok));
  const next = handBuiltCluster("c", [fresh.port]);
  const before = await runBackend(t, (socket) => {
    // What an update does: the slot has another cluster, and the old one no hosts.
    action.clusterSlot.current = next;
    hosts.chooseHost = (): undefined => undefined;
    socket.write("HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n");
  });
  const cluster = handBuiltCluster("c", [before.port]);
  const hosts = cluster.loadBalancer;
  const action = forwardTo(cluster, { retryPolicy: retryPolicy(bit["5xx"], 1) });
  const proxy = await runProxy(t, { routes: { "/": action }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await until(
    () => {
      clock.advance(50);
      return proxy.log.length === 1;
    },
    () => "the answer",
  );
  assert.deepEqual(proxy.log, ["200 - via_upstream"]);
  assert.equal(cluster.stats.upstreamRetriesActive.value, 0);
});

test("a body is sent again with a retry, and not beyond the buffer limit", async (t) => {
  const clock = new ManualClock();
  let failing = true;
  const backend = await runBackend(t, (socket, data) => {
    if (!data.includes("END")) return;
    socket.write(failing ? "HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n" : ok);
    failing = false;
  });
  const cluster = handBuiltCluster("c", [backend.port]);
  const routes = { "/": forwardTo(cluster, { retryPolicy: retryPolicy(bit["5xx"], 1) }) };
  const proxy = await runProxy(t, { routes, clock });
  const settle = (count: number): Promise<void> =>
    until(
      () => {
        clock.advance(50);
        return proxy.log.length === count;
      },
      () => `${count} lines`,
    );
  const client = await Client.connect(t, proxy.port);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1234567END");
  await settle(1);
  const bodies = backend.seen.join("").match(/1234567END/g);
  assert.equal(bodies?.length, 2);
  failing = true;
  const large = "x".repeat(2 * 1024 * 1024);
  client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${large.length + 3}\r\n\r\n${large}END`);
  await settle(2);
  assert.deepEqual(proxy.log, ["200 - via_upstream", "503 - via_upstream"]);
});

test("a try without a sign for its idle time-out: 504 UT", async (t) => {
  const clock = new ManualClock();
  const backend = await runBackend(t, () => undefined);
  const policy = retryPolicy(0, 0, { perTryIdleTimeoutMs: 1000 });
  const cluster = handBuiltCluster("hang", [backend.port]);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, { retryPolicy: policy }) }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await until(
    () => backend.seen.length === 1,
    () => "the request",
  );
  clock.advance(1010);
  await client.receive(/upstream request timeout$/);
  assert.deepEqual(proxy.log, ["504 UT upstream_per_try_idle_timeout"]);
});

test("a sidecar that has not reached its application says so by grpc-status: another is asked, whatever the method", async (t) => {
  const unreached = "HTTP/1.1 503 Service Unavailable\r\ngrpc-status: 14\r\ncontent-length: 0\r\n\r\n";
  const replies = [unreached, ok];
  const backend = await runBackend(t, (socket) => socket.write(replies.shift()!));
  const policy = retryPolicy(bit.unavailable | bit["connect-failure"], 2);
  const clock = new ManualClock();
  const cluster = handBuiltCluster("c", [backend.port]);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, { retryPolicy: policy }) }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send("POST /orders HTTP/1.1\r\nHost: a\r\ncontent-length: 4\r\n\r\none!");
  await until(
    () => cluster.stats.upstreamRetriesActive.value === 1,
    () => "the first answer",
  );
  clock.advance(250);
  assert.match(await client.receive(/ok$/), /^HTTP\/1\.1 200 OK\r\n/);
  assert.equal(cluster.stats.upstreamRequestsTotal.value, 2);
});
