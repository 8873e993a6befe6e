// Many bodies at a time through small buffers: every byte of each comes back as it was sent, whoever pauses, is slow or
// goes away in the middle, and in the end nothing is left open. The sockets share one read buffer, so that a view kept
// for too long would show up here as another body's bytes.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { forwardTo, handBuiltCluster, retryPolicy } from "../testing/hand-built-runtime.ts";
import { seededRandom } from "../testing/random-requests.ts";
import { runProxy, until } from "../testing/running-proxy.ts";
import { retryConditions } from "../route/route-table.ts";

const exchanges = 200;
const largestBodyBytes = 400_000;
const bufferLimitBytes = 16_384;

type Random = () => number;

/** Calls back after a few turns of the event loop, or at once. */
function afterAPause(random: Random, action: () => void): void {
  let turns = random() < 0.5 ? 0 : Math.floor(random() * 8);
  const wait = (): void => {
    turns -= 1;
    if (turns < 0) action();
    else setImmediate(wait);
  };
  wait();
}

function digest(body: Buffer): string {
  return createHash("sha256").update(body).digest("hex");
}

/** Echoes while the request still comes, or behind it; fails the first try of some; ends in the middle for others. */
function echo(random: Random, request: http.IncomingMessage, response: http.ServerResponse): void {
  const attempt = Number(request.headers["x-envoy-attempt-count"] ?? "1");
  if (request.url === "/retried" && attempt === 1) {
    request.resume();
    request.on("end", () => response.writeHead(503, { "content-length": "4" }).end("once"));
    return;
  }
  if (request.url === "/broken") {
    response.writeHead(200);
    request.once("data", (chunk: Buffer) => response.write(chunk, () => request.socket.destroy()));
    return;
  }
  const length = request.headers["x-length"];
  response.writeHead(200, typeof length === "string" ? { "content-length": length } : {});
  request.on("data", (chunk: Buffer) => {
    response.write(chunk);
    if (random() < 0.3) {
      request.pause();
      afterAPause(random, () => request.resume());
    }
  });
  request.on("end", () => response.end());
}

interface Exchange {
  readonly path: string;
  readonly body: Buffer;
  readonly framed: "length" | "chunked";
  readonly leaves: boolean;
}

/** Sends a body in random pieces and reads the answer slowly; gives the digest of the answer, or why there is none. */
function exchange(random: Random, agent: http.Agent, port: number, plan: Exchange): Promise<string> {
  return new Promise((resolve) => {
    const { body, framed, path } = plan;
    const headers: http.OutgoingHttpHeaders =
      framed === "length" ? { "content-length": body.length, "x-length": body.length } : {};
    const request = http.request({ port, host: "127.0.0.1", method: "POST", path, agent, headers });
    const hash = createHash("sha256");
    request.on("response", (response) => {
      // The back end may have gone before its head had left.
      if (response.statusCode === 503) resolve("cut");
      response.on("data", (chunk: Buffer) => {
        hash.update(chunk);
        if (random() < 0.3) {
          response.pause();
          afterAPause(random, () => response.resume());
        }
      });
      response.on("end", () => resolve(response.complete ? hash.digest("hex") : "cut"));
      response.on("error", () => resolve("cut"));
    });
    request.on("error", () => resolve("cut"));
    let sent = 0;
    const step = (): void => {
      if (request.destroyed) return;
      if (plan.leaves && sent > body.length / 2) {
        request.destroy();
        return;
      }
      if (sent >= body.length) {
        request.end();
        return;
      }
      const size = random() < 0.2 ? 1 + Math.floor(random() * 100) : 1 + Math.floor(random() * 60_000);
      request.write(body.subarray(sent, sent + size), () => afterAPause(random, step));
      sent += size;
    };
    step();
  });
}

test("bodies come back byte by byte, and nothing stays open", async (t) => {
  const seed = Number(process.env["TULLE_FUZZ_SEED"] ?? 20_261_120);
  const random = seededRandom(seed);
  const backend = http.createServer((request, response) => {
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    echo(random, request, response);
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  t.after(() => backend.closeAllConnections());
  t.after(() => backend.close());
  const { port: backendPort } = backend.address() as AddressInfo;
  const cluster = handBuiltCluster("c", [backendPort], {
    perConnectionBufferLimitBytes: bufferLimitBytes,
    circuitBreakers: {
      maxConnections: 64,
      maxPendingRequests: 1024,
      maxRequests: 1024,
      maxRetries: 1024,
      retryBudget: undefined,
    },
  });
  const route = { includeRequestAttemptCount: true };
  const retried = retryPolicy(retryConditions["5xx"], 2, { backOffBaseMs: 1, backOffMaxMs: 2 });
  const proxy = await runProxy(t, {
    routes: { "/": forwardTo(cluster, route), "/retried": forwardTo(cluster, { ...route, retryPolicy: retried }) },
    bufferLimitBytes,
  });
  const agent = new http.Agent({ keepAlive: true, maxSockets: exchanges });
  t.after(() => agent.destroy());
  const plans = Array.from({ length: exchanges }, (_, index): Exchange => {
    const path = index % 10 === 7 ? "/retried" : index % 10 === 8 ? "/broken" : "/";
    // A body that is to be sent again must fit the buffer.
    const most = path === "/retried" ? bufferLimitBytes / 2 : random() < 0.3 ? 3000 : largestBodyBytes;
    const body = Buffer.allocUnsafe(Math.floor(random() * most) + (path === "/broken" ? 1 : 0));
    for (let at = 0; at < body.length; at += 1) body[at] = (at * 31 + index * 7 + (at >> 9)) & 255;
    return { path, body, framed: random() < 0.5 ? "length" : "chunked", leaves: index % 10 === 9 };
  });
  const results = await Promise.all(plans.map((plan) => exchange(random, agent, proxy.port, plan)));
  for (const [index, { path, body, leaves }] of plans.entries()) {
    const expected = path === "/broken" || leaves ? "cut" : digest(body);
    assert.equal(results[index], expected, `seed ${seed}, exchange ${index} ${path} of ${body.length} bytes`);
  }
  agent.destroy();
  const { stats } = cluster;
  const config = proxy.config.stats;
  await until(
    () => proxy.host.activeConnections === 0 && stats.upstreamRequestsActive.value === 0,
    () => `an end: ${proxy.host.activeConnections} connections, ${stats.upstreamRequestsActive.value} requests`,
  );
  assert.equal(proxy.log.length, config.downstreamRequestsTotal.value);
  assert.deepEqual(
    [config.downstreamRequestsActive, config.downstreamConnectionsActive, stats.upstreamRequestsPendingActive].map(
      ({ value }) => value,
    ),
    [0, 0, 0],
  );
  assert.equal(stats.upstreamRetriesActive.value, 0);
  assert.equal(cluster.hosts[0]!.activeRequests, 0);
});
