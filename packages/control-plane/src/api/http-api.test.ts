// The three ways into the API: who gets what by each, and that nobody who has proved nothing keeps the owner out.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { connect, type Socket } from "node:net";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { ApiClient, ApiError, controlPlaneName, type MeshResource } from "@tulle/config";
import { endpoints } from "@tulle/config/api";
import { createAuthority } from "@tulle/identity";
import { provenWorld, type ProvenWorld } from "../testing/proven-world.ts";
import { tcpLimits } from "./tcp-door.ts";

interface World extends ProvenWorld {
  readonly port: number;
  readonly token: string;
  readonly roots: string;
}

async function start(context: TestContext): Promise<World> {
  const world = await provenWorld(context);
  const token = (await readFile(path.join(world.stateDirectory, "token"), "utf8")).trim();
  return { ...world, token, port: world.running.httpAddress.port, roots: await world.rootsPem() };
}

interface Asked {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Status and message, or the error's code. */
function ask(world: World, isTls: boolean, { path: where, method = "GET", headers = {} }: Asked): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const options = { host: "127.0.0.1", port: world.port, path: where, method, headers, agent: false };
  const tls = { ...options, ca: world.roots, servername: controlPlaneName };
  const outgoing = isTls ? https.request(tls) : http.request(options);
  outgoing.on("response", (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      // A watch has no end.
      if (where.startsWith("/api/v1/watch")) response.destroy();
    });
    response.on("close", () => resolve(`${response.statusCode} ${text}`));
  });
  outgoing.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  outgoing.end();
  return promise;
}

const owned = [
  "/debug",
  "/debug/config_dump?proxyID=web-1.shop",
  "/debug/configz",
  "/debug/connections",
  "/debug/endpointz",
  "/debug/pending",
  "/debug/registryz",
  "/debug/syncz",
  "/api/v1/ca",
  "/api/v1/findings",
  "/api/v1/rollouts",
  "/api/v1/resources/Pod",
  "/api/v1/resources/Pod/shop/web-1",
  "/api/v1/watch?kinds=Pod",
  "/no/such/page",
  "/",
];

/** Nothing is there, or no proxy of that name is connected. */
const missing = new Set(["/", "/no/such/page", "/debug/config_dump?proxyID=web-1.shop"]);

/** Prometheus 2's, and 3's. */
const openMetricsAccepts = [
  "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
  "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
];

test("metrics are OpenMetrics where Prometheus asks for that", async (context) => {
  const world = await start(context);
  for (const accept of openMetricsAccepts) {
    const answer = await fetch(`http://127.0.0.1:${world.port}/metrics`, { headers: { accept } });
    assert.equal(answer.headers.get("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert.match(await answer.text(), /^# TYPE tulle_xds_denied_streams counter$[^]*\n# EOF\n$/m);
  }
  const text = await fetch(`http://127.0.0.1:${world.port}/metrics`);
  assert.equal(text.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  assert.doesNotMatch(await text.text(), /# EOF/);
});

test("in the clear only readiness, version and metrics are answered", async (context) => {
  const world = await start(context);
  assert.equal(await ask(world, false, { path: "/ready" }), "200 ready\n");
  assert.equal(await ask(world, false, { path: "/ready", method: "HEAD" }), "200 ");
  assert.match(await ask(world, false, { path: "/version" }), /^200 \{"version":/);
  assert.match(await ask(world, false, { path: "/metrics" }), /^200 # /);
  const authorization = `Bearer ${world.token}`;
  for (const where of owned) {
    const refused =
      /^403 .*only \/ready, \/version and \/metrics are answered: ask by the state directory's Unix socket, or by https/;
    assert.match(await ask(world, false, { path: where }), refused, where);
    assert.match(
      await ask(world, false, { path: where, headers: { authorization } }),
      refused,
      `${where} with a token`,
    );
  }
  for (const method of ["PUT", "DELETE", "POST"]) {
    const write = { path: "/api/v1/resources/Pod/shop/web-1", method, headers: { authorization } };
    assert.match(await ask(world, false, write), /^403 /, method);
    assert.match(await ask(world, false, { path: "/metrics", method }), /^403 /, method);
  }
});

test("over TLS the token is asked for, for reading and writing alike", async (context) => {
  const world = await start(context);
  assert.equal(await ask(world, true, { path: "/ready" }), "200 ready\n");
  const authorization = `Bearer ${world.token}`;
  for (const where of owned) {
    assert.match(await ask(world, true, { path: where }), /^401 .*needs the token/, where);
    const wrong = { authorization: `Bearer ${world.token}x` };
    assert.match(await ask(world, true, { path: where, headers: wrong }), /^401 /, where);
    const answer = await ask(world, true, { path: where, headers: { authorization } });
    assert.match(answer, missing.has(where) ? /^404 / : /^200 /, where);
  }
  for (const headers of [{ origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }]) {
    assert.match(await ask(world, true, { path: "/debug", headers: { authorization, ...headers } }), /^403 /);
  }
});

test("no page of the web reads even what everybody may", async (context) => {
  const world = await start(context);
  for (const headers of [
    { host: "evil.example" },
    { origin: "http://evil.example" },
    { "sec-fetch-site": "cross-site" },
  ]) {
    assert.match(await ask(world, false, { path: "/metrics", headers }), /^403 .*programs of this machine/);
  }
});

test("the client asks by TLS, and tells an impostor nothing", async (context) => {
  const world = await start(context);
  const url = `https://127.0.0.1:${world.port}`;
  const client = new ApiClient({ endpoint: { url, token: world.token, rootsPem: world.roots } });
  assert.deepEqual(
    (await client.list("Pod", "bank")).items.map(({ metadata }) => metadata.name),
    ["web-1"],
  );
  const another = await createAuthority({ trustDomain: "cluster.local", nowMs: Date.now() });
  const rootsPem = another.roots[0]!.pem;
  await assert.rejects(new ApiClient({ endpoint: { url, token: world.token, rootsPem } }).list("Pod"), (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.status, 0);
    assert.match(error.message, /certificate/);
    return true;
  });
});

/** Connections that send `first` and then nothing; they stay until the test ends, or the server closes them. */
async function hold(context: TestContext, port: number, count: number, first: string): Promise<Set<Socket>> {
  const open = new Set<Socket>();
  context.after(() => open.forEach((socket) => socket.destroy()));
  for (let begun = 0; begun < count; begun += 50) {
    const batch = Array.from({ length: Math.min(50, count - begun) }, () => connect({ host: "127.0.0.1", port }));
    for (const socket of batch) {
      open.add(socket);
      socket.on("error", () => undefined).on("close", () => open.delete(socket));
      if (first !== "") socket.write(first);
    }
    await Promise.all(batch.map((socket) => once(socket, "connect").catch(() => undefined)));
  }
  return open;
}

/** Time stands still until the test says otherwise, or ends. */
function stopTime(context: TestContext): Disposable {
  const { timers } = context.mock;
  timers.enable({ apis: ["setTimeout"] });
  // Before the world is closed: a timer from before can be cleared only by the function that belongs to it.
  return { [Symbol.dispose]: () => timers.reset() };
}

/** Without a timer. */
async function comesTrue(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!condition() && performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(condition(), what);
}

test("whoever shows no token in time is closed", async (context) => {
  const world = await start(context);
  using _still = stopTime(context);
  const silent = await hold(context, world.port, 1, "");
  const slow = await hold(context, world.port, 1, "GET /metrics HTTP/1.1\r\n");
  const agent = new https.Agent({ keepAlive: true });
  context.after(() => agent.destroy());
  const options = { host: "127.0.0.1", port: world.port, path: "/debug/pending", agent };
  const headers = { authorization: `Bearer ${world.token}` };
  const asked = https.get({ ...options, headers, ca: world.roots, servername: controlPlaneName });
  const [response] = (await once(asked, "response")) as [http.IncomingMessage];
  response.resume();
  const { socket } = response;
  await once(response, "end");
  // The server's end of a connection begins its time; both have been asked there once each of them was accepted.
  assert.match(await ask(world, false, { path: "/ready" }), /^200 /);
  context.mock.timers.tick(tcpLimits.unprovenLifeMs);
  await comesTrue(() => silent.size === 0 && slow.size === 0, "both are closed");
  assert.ok(!socket.destroyed, "who has shown the token stays");
});

const silences = [
  { name: "nothing", first: "" },
  { name: "half a head", first: "GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n" },
  { name: "the begin of a handshake", first: "\x16\x03\x01" },
];

for (const { name, first } of silences) {
  test(`1,100 connections that send ${name} keep nobody out`, async (context) => {
    const world = await start(context);
    // Nobody's time is over in this test: what closes, makes way.
    using _still = stopTime(context);
    const open = await hold(context, world.port, 1100, first);
    await comesTrue(() => open.size <= tcpLimits.maxUnproven, "the oldest make way");
    assert.ok(open.size > 0, "the newest stay for a while");
    assert.equal(JSON.parse((await world.ask("/debug/pending")).body).pending, false, "the owner, by the socket");
    const headers = { authorization: `Bearer ${world.token}` };
    assert.match(await ask(world, true, { path: "/debug/syncz", headers }), /^200 /, "the owner, by TLS");
    assert.match(await ask(world, false, { path: "/metrics" }), /^200 /, "Prometheus");
  });
}

test("watches of another user do not exist, and the owner's by one way take no place of the other", async (context) => {
  const world = await start(context);
  const asked = Array.from({ length: 300 }, () => ask(world, false, { path: "/api/v1/watch" }));
  for (const answer of await Promise.all(asked)) assert.match(answer, /^(?:403 |ECONNRESET)/);
  const sockets = Array.from({ length: 256 }, () => {
    const outgoing = http.get({ socketPath: world.running.socketPath, path: "/api/v1/watch", agent: false });
    context.after(() => outgoing.destroy());
    return once(outgoing, "response") as Promise<[http.IncomingMessage]>;
  });
  for (const [response] of await Promise.all(sockets)) assert.equal(response.statusCode, 200);
  assert.equal((await world.ask("/api/v1/watch")).status, 503);
  const headers = { authorization: `Bearer ${world.token}` };
  assert.match(await ask(world, true, { path: "/api/v1/watch", headers }), /^200 /);
});

test("a change tells who made it", async (t) => {
  const world = await start(t);
  const bySocket = new ApiClient({ endpoint: { socketPath: world.running.socketPath } });
  const url = `https://127.0.0.1:${world.port}`;
  const byToken = new ApiClient({ endpoint: { url, token: world.token, rootsPem: world.roots } });
  for (const [name, client] of Object.entries({ "by-socket": bySocket, "by-token": byToken })) {
    const resource = {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, namespace: "" },
    } as unknown as MeshResource;
    assert.equal((await client.apply(resource)).outcome, "created");
    await client.delete({ kind: "Namespace", namespace: "", name });
  }
  const { changes } = await bySocket.call(endpoints.changes, {});
  const uid = new RegExp(`uid ${process.geteuid!()}\\)?$`);
  const told = changes
    .filter(({ kind }) => kind === "Namespace")
    .map(({ name, type, by = "" }) => [name, type, by.replace(uid, "us")]);
  const us = told[0]?.[2] ?? "";
  assert.ok(us.endsWith("us"), us);
  assert.deepEqual(told, [
    ["by-socket", "added", us],
    ["by-socket", "deleted", us],
    ["by-token", "added", "the token's holder at 127.0.0.1"],
    ["by-token", "deleted", "the token's holder at 127.0.0.1"],
  ]);
});
