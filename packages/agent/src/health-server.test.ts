// Pages of metrics that nobody takes are bounded, and keep out nobody who reads; who may end the agent.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import net from "node:net";
import { test } from "node:test";
import { freeAddressBlock, waitFor } from "../../../tests/tools/processes.ts";
import { healthPort } from "./health-address.ts";
import { maxAwaited, maxPages, startHealthServer } from "./health-server.ts";
import type { RunningDataPlane } from "./data-plane/data-plane.ts";
import { metricsPort } from "./settings.ts";

/** More than the sockets' buffers of both ends hold. */
const page = "x".repeat(16 * 1024 * 1024);

async function bytesOf(socket: net.Socket): Promise<number> {
  let bytes = 0;
  socket.on("data", (chunk) => (bytes += chunk.length)).on("error", () => undefined);
  socket.resume();
  await once(socket, "close");
  return bytes;
}

test("who reads nothing makes way for who asks later, the oldest first", async (context) => {
  const podAddress = `${await freeAddressBlock()}.1`;
  let asked = 0;
  const metrics = {
    page: () => {
      asked += 1;
      return Promise.resolve({ contentType: "text/plain", text: page });
    },
  };
  const leaving = new AbortController().signal;
  const server = await startHealthServer({ podAddress, leaving, dataPlane: () => undefined, metrics });
  context.after(() => server[Symbol.asyncDispose]());
  const idle: net.Socket[] = [];
  for (let index = 0; index < maxPages; index += 1) {
    const socket = net.connect(metricsPort, podAddress).pause();
    context.after(() => socket.destroy());
    socket.write("GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n");
    idle.push(socket);
    await waitFor(() => asked === index + 1, { what: `page ${index + 1}` });
  }
  const answer = await fetch(`http://${podAddress}:${metricsPort}/metrics`);
  assert.equal((await answer.text()).length, page.length);
  assert.ok((await bytesOf(idle[0]!)) < page.length);
  assert.ok((await bytesOf(idle[1]!)) > page.length);
});

test("a hook of the pod's programs is answered once clients know that the pod leaves", async (context) => {
  const podAddress = `${await freeAddressBlock()}.1`;
  const { promise, resolve } = Promise.withResolvers<void>();
  const server = await startHealthServer({
    podAddress,
    leaving: new AbortController().signal,
    dataPlane: () => undefined,
    metrics: { page: () => Promise.reject(new Error("nobody asks")) },
    drained: () => promise,
  });
  context.after(() => server[Symbol.asyncDispose]());
  const ask = async (port: number): Promise<number> =>
    (await fetch(`http://${podAddress}:${port}/app-lifecycle/drain`)).status;
  let isAnswered = false;
  const hook = ask(metricsPort).then((status) => {
    isAnswered = true;
    return status;
  });
  assert.equal(await ask(healthPort), 404);
  assert.equal(isAnswered, false);
  resolve();
  assert.equal(await hook, 200);
});

test("who waits for hooks keeps no probe out", async (context) => {
  const podAddress = `${await freeAddressBlock()}.1`;
  let waiting = 0;
  const server = await startHealthServer({
    podAddress,
    leaving: new AbortController().signal,
    dataPlane: () => undefined,
    metrics: { page: () => Promise.reject(new Error("nobody asks")) },
    probes: { ask: (path) => (path === "/app" ? Promise.resolve({ status: 200, text: "yes" }) : undefined) },
    drained: () => {
      waiting += 1;
      return new Promise(() => undefined);
    },
  });
  context.after(() => server[Symbol.asyncDispose]());
  const most = 1024;
  const ends: Promise<unknown>[] = [];
  for (let asked = 1; asked <= most; asked += 1) {
    const socket = net.connect(metricsPort, podAddress).on("error", () => undefined);
    ends.push(once(socket, "close"));
    context.after(() => socket.destroy());
    socket.write("GET /app-lifecycle/drain HTTP/1.1\r\nhost: a\r\n\r\n");
    if (asked % 64 === 0) await waitFor(() => waiting === asked, { what: `${asked} to wait` });
  }
  assert.equal((await fetch(`http://${podAddress}:${metricsPort}/app`)).status, 200);
  await Promise.all(ends.slice(0, most - maxAwaited));
});

test("programs of the pod alone may end the agent, and probes are asked at one port", async (context) => {
  const podAddress = `${await freeAddressBlock()}.1`;
  let quits = 0;
  const paths: string[] = [];
  const server = await startHealthServer({
    podAddress,
    leaving: new AbortController().signal,
    dataPlane: () => undefined,
    metrics: { page: () => Promise.reject(new Error("nobody asks")) },
    probes: {
      ask: (path) => (paths.push(path), path === "/app" ? Promise.resolve({ status: 500, text: "no" }) : undefined),
    },
    onQuit: () => (quits += 1),
  });
  context.after(() => server[Symbol.asyncDispose]());
  const ask = async (method: string, path: string, port = metricsPort, from = "127.0.0.1"): Promise<number> => {
    const sent = request({ method, host: podAddress, port, path, localAddress: from, agent: false }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode!;
  };
  assert.equal(await ask("GET", "/quitquitquit"), 405);
  // The proxy calls from there in the name of others.
  assert.equal(await ask("POST", "/quitquitquit", metricsPort, "127.0.0.6"), 403);
  assert.equal(await ask("POST", "/quitquitquit", healthPort), 404);
  assert.equal(quits, 0);
  assert.equal(await ask("POST", "/quitquitquit"), 200);
  assert.equal(quits, 1);
  assert.equal(await ask("GET", "/app"), 500);
  assert.equal(await ask("GET", "/app", healthPort), 404);
  assert.deepEqual(paths.slice(-1), ["/app"]);
});

test("who prefers to wait is told when the proxy is not ready any more, and others at once", async (context) => {
  const podAddress = `${await freeAddressBlock()}.1`;
  const leaving = new AbortController();
  let asked = 0;
  const isReady = (): Promise<boolean> => {
    asked += 1;
    return Promise.resolve(asked > 1);
  };
  const server = await startHealthServer({
    podAddress,
    leaving: leaving.signal,
    dataPlane: () => ({ isReady }) as unknown as RunningDataPlane,
    metrics: { page: () => Promise.reject(new Error("nobody asks")) },
  });
  context.after(() => server[Symbol.asyncDispose]());
  const ask = async (prefer?: string): Promise<string> => {
    const headers = prefer === undefined ? {} : { prefer };
    const answer = await fetch(`http://${podAddress}:${healthPort}/healthz/ready`, { headers });
    return `${answer.status} ${await answer.text()}`;
  };
  assert.equal(await ask("wait=10"), "503 the proxy is not ready\n", "it is not ready yet");
  assert.equal(await ask(), "200 ready\n");
  for (const prefer of ["respond-async", "wait=x", "wait=0"]) assert.equal(await ask(prefer), "200 ready\n", prefer);
  assert.equal(await ask("respond-async, wait=1"), "200 ready\n", "the time is over");
  const before = asked;
  const held = ask("wait=10");
  await waitFor(() => asked > before, { what: "the question" });
  leaving.abort();
  assert.equal(await held, "503 the agent is stopping\n");
});
