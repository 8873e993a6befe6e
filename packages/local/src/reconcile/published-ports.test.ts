// Published ports as sockets: taken, kept, let go of, and refused with a remedy.
import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { test, type TestContext } from "node:test";
import type { Service } from "@tulle/config";
import { tcpCheck } from "@tulle/listening/probes";
import { freePort } from "../../../../tests/tools/processes.ts";
import { machineHere } from "../network/pod-network.ts";
import { PublishedPorts, withHolder } from "./published-ports.ts";

function occupy(): Promise<Server> {
  const { promise, resolve } = Promise.withResolvers<Server>();
  const server = createServer();
  server.listen(0, "127.0.0.1", () => resolve(server));
  return promise;
}

function gateway(publish: string, name = "gateway"): Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace: "s", annotations: { "local.tulle.io/publish": publish } },
    spec: { type: "ClusterIP", selector: { app: name }, ports: [] },
  };
}

function openPorts(t: TestContext): PublishedPorts {
  const ports = new PublishedPorts([]);
  t.after(() => ports.close());
  return ports;
}

/** As a gateway takes it. */
function inherited(ports: PublishedPorts): { readonly fd: number } {
  return { fd: ports.forPod({ namespace: "s", labels: { app: "gateway" } })[0]!.descriptor };
}

test("a port is open as long as a Service asks for it", async (t) => {
  const ports = openPorts(t);
  const port = await freePort();
  assert.deepEqual(ports.update([gateway(`${port}:8080`)]), []);
  assert.equal(await tcpCheck({ address: "127.0.0.1", connect: machineHere.connect }, port, 1000), true);
  const [held] = ports.forPod({ namespace: "s", labels: { app: "gateway" } });
  // A second look changes nothing: the gateways that run have inherited this very socket.
  ports.update([gateway(`${port}:8080`)]);
  assert.equal(ports.forPod({ namespace: "s", labels: { app: "gateway" } })[0]!.descriptor, held!.descriptor);
  ports.update([]);
  assert.equal(await tcpCheck({ address: "127.0.0.1", connect: machineHere.connect }, port, 1000), false);
});

test("it leads to the pods of its Service alone", async (t) => {
  const ports = openPorts(t);
  ports.update([gateway(`${await freePort()}:8080`)]);
  assert.equal(ports.forPod({ namespace: "s", labels: { app: "other" } }).length, 0);
  assert.equal(ports.forPod({ namespace: "other", labels: { app: "gateway" } }).length, 0);
});

test("a port that is in use is told with its holder and a remedy, and the others are taken", async (t) => {
  const ports = openPorts(t);
  const server = await occupy();
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const other = await freePort();
  const [problem] = ports.update([gateway(`${port}:8080,${other}:8443`)]);
  const told = withHolder(problem!, machineHere);
  assert.match(told.message, new RegExp(`^port 127\\.0\\.0\\.1:${port} is in use by process ${process.pid} \\(`));
  assert.match(told.suggestion, /--publish \d+:8080$/);
  assert.deepEqual(
    ports.list().map((each) => each.port),
    [other],
  );
});

test("the remedy leads around every port that is in use, and keeps what the command line said of others", async (t) => {
  const [first, second] = [await occupy(), await occupy()];
  t.after(() => [first, second].forEach((server) => server.close()));
  const [a, b] = [first, second].map((server) => (server.address() as AddressInfo).port);
  const kept = await freePort();
  const service = gateway(`${a}:8080,${b}:8443,9999:9000`);
  const ports = new PublishedPorts([{ hostPort: kept, targetPort: 9000 }]);
  t.after(() => ports.close());
  const problems = ports.update([service]);
  assert.deepEqual(
    problems.map(({ takenPort }) => takenPort),
    [a, b],
  );
  const [remedy] = /(?<=--publish ).*/.exec(problems[0]!.suggestion)!;
  assert.match(remedy, new RegExp(`^\\d+:8080,\\d+:8443,${kept}:9000$`));
  ports.close();
  // Whoever types it gets through.
  const overrides = remedy.split(",").map((pair) => pair.split(":").map(Number));
  const again = new PublishedPorts(
    overrides.map(([hostPort, targetPort]) => ({ hostPort: hostPort!, targetPort: targetPort! })),
  );
  t.after(() => again.close());
  assert.deepEqual(again.update([service]), []);
});

test("two Services cannot publish the same port", async (t) => {
  const ports = openPorts(t);
  const port = await freePort();
  const [problem] = ports.update([gateway(`${port}:8080`), gateway(`${port}:80`, "second")]);
  assert.match(problem!.message, /is published by Service s\/gateway already/);
});

test("a port of the command line that no Service asks for is told", async (t) => {
  const mappings = [
    { hostPort: await freePort(), targetPort: 8080 },
    { hostPort: await freePort(), targetPort: 9090 },
  ];
  const ports = new PublishedPorts(mappings);
  t.after(() => ports.close());
  ports.update([gateway("8080:8080")]);
  assert.deepEqual(ports.unusedOverrides(), [mappings[1]]);
});

test("what is waited for is told until it has come", async (t) => {
  const ports = openPorts(t);
  const port = await freePort();
  ports.update([gateway(`${port}:8080`)]);
  const told: (readonly string[])[] = [];
  // As a gateway that knows no endpoint yet, until somebody has heard that it is waited for.
  const server = createHttpServer((_, response) => response.writeHead(told.length === 0 ? 503 : 200).end());
  server.listen(inherited(ports));
  t.after(() => server.close());
  const signal = AbortSignal.timeout(60_000);
  const pods = [{ namespace: "s", labels: { app: "gateway" } }];
  await ports.waitForAnswers(pods, signal, (awaited) => told.push(awaited));
  assert.deepEqual(told, [[`an answer through http://localhost:${port} (gateway.s)`], []]);
  const toldAgain: (readonly string[])[] = [];
  await ports.waitForAnswers(pods, signal, (awaited) => toldAgain.push(awaited));
  assert.deepEqual(toldAgain, [], "nothing is told where the answer comes at once");
});

test("a gateway that takes the PROXY protocol is told that nobody is spoken for, and asked again while it is silent", async (t) => {
  const ports = openPorts(t);
  const port = await freePort();
  ports.update([gateway(`${port}:8080`)]);
  const received: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => undefined).setEncoding("latin1");
    let text = "";
    socket.on("data", (data: string) => {
      text += data;
      if (!text.endsWith("\r\n\r\n")) return;
      received.push(text);
      if (received.length > 1) socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
  });
  server.listen(inherited(ports));
  t.after(() => server.close());
  const pods = [{ namespace: "s", labels: { app: "gateway" }, takesProxyProtocol: true } as const];
  await ports.waitForAnswers(pods, AbortSignal.timeout(60_000), () => undefined);
  assert.ok(received.length >= 2);
  for (const text of received) assert.match(text, /^PROXY UNKNOWN\r\nGET \/ HTTP\/1\.1\r\n/);
});

const unavailable = [
  {
    name: "an application's own 503 is an answer",
    headers: { "x-envoy-upstream-service-time": "1" },
    isPartial: false,
  },
  { name: "nobody behind the route is one where a part cannot run", headers: {}, isPartial: true },
];
for (const { name, headers, isPartial } of unavailable) {
  test(name, async (t) => {
    const ports = openPorts(t);
    const port = await freePort();
    ports.update([gateway(`${port}:8080`)]);
    const server = createHttpServer((_, response) => response.writeHead(503, headers).end());
    server.listen(inherited(ports));
    t.after(() => server.close());
    const pods = [{ namespace: "s", labels: { app: "gateway" } }];
    await ports.waitForAnswers(pods, AbortSignal.timeout(60_000), () => undefined, isPartial);
  });
}
