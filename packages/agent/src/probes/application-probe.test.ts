// Probes as a kubelet asks them, of servers that we did not write: Node's own, and gRPC's.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { after, before, test } from "node:test";
import { Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { testCertificate } from "../../../../tests/tools/certificates.ts";
import { ProbeDesk } from "./probe-desk.ts";
import { readProbes } from "./read-probes.ts";

const cleanUp = new AsyncDisposableStack();
after(() => cleanUp.disposeAsync());

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  cleanUp.defer(() => void server.close());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

let asked = 0;
const pages: RequestListener = (request, response) => {
  const answer = (status: number, location?: string): void =>
    void response.writeHead(status, location === undefined ? {} : { location }).end("x".repeat(100_000));
  switch (request.url) {
    case "/well":
      asked += 1;
      return answer(200);
    case "/to-well":
      return answer(302, "/well-too");
    case "/well-too":
      return answer(204);
    case "/to-bad":
      return answer(307, "/bad");
    case "/elsewhere":
      return answer(301, "http://elsewhere.test/bad");
    case "/circle":
      return answer(302, "/circle");
    case "/silent":
      return;
    case "/headers": {
      const { host, "user-agent": agent, "x-a": a } = request.headers;
      return answer(host === "shop.test" && agent?.startsWith("kube-probe/") === true && a === "1, 2" ? 200 : 400);
    }
    case "/from":
      return answer(request.socket.remoteAddress === "127.0.0.6" ? 200 : 400);
    default:
      return answer(503);
  }
};

let ports: Readonly<Record<"http" | "https" | "tcp" | "grpc" | "closed", number>>;

before(async () => {
  const grpc = new GrpcServer();
  const serialize = (value: Buffer): Buffer => value;
  grpc.addService(
    {
      check: {
        path: "/grpc.health.v1.Health/Check",
        requestStream: false,
        responseStream: false,
        requestSerialize: serialize,
        requestDeserialize: serialize,
        responseSerialize: serialize,
        responseDeserialize: serialize,
      },
    },
    {
      check: ({ request }: { request: Buffer }, done: (error: object | null, answer?: Buffer) => void) => {
        const service = request.subarray(2).toString();
        if (service === "unknown") done({ code: 5 });
        else done(null, Buffer.from([0x08, service === "shop.Catalog" || service === "" ? 1 : 2]));
      },
    },
  );
  const bound = Promise.withResolvers<number>();
  grpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
    error === null ? bound.resolve(port) : bound.reject(error),
  );
  cleanUp.defer(() => grpc.forceShutdown());
  const nobody = await testCertificate({ commonName: "nobody", days: 1 });
  const gone = createTcpServer();
  const closed = await listen(gone);
  gone.close();
  ports = {
    http: await listen(createServer(pages)),
    https: await listen(createTlsServer({ cert: nobody.certificate, key: nobody.key }, pages)),
    tcp: await listen(createTcpServer((socket) => socket.destroy())),
    grpc: await bound.promise,
    closed,
  };
});

type Ports = typeof ports;
const get = (path: string, more: object = {}) => ({
  httpGet: (all: Ports) => ({ path, port: all.http, ...more }),
});
const rows: readonly {
  readonly name: string;
  readonly probe: Readonly<Record<string, (all: Ports) => object>>;
  readonly status: number;
  readonly text?: RegExp;
}[] = [
  { name: "well", probe: get("/well"), status: 200 },
  { name: "a path without its slash", probe: get("well"), status: 200 },
  { name: "not well", probe: get("/bad"), status: 503 },
  { name: "a redirect to what is well", probe: get("/to-well"), status: 204 },
  { name: "a redirect to what is not", probe: get("/to-bad"), status: 503 },
  { name: "a redirect to another host", probe: get("/elsewhere"), status: 200, text: /elsewhere\.test/ },
  { name: "redirects without end", probe: get("/circle"), status: 500, text: /more than 10 times/ },
  { name: "no answer", probe: get("/silent"), status: 500, text: /no answer in 200 ms/ },
  {
    name: "headers",
    probe: get("/headers", {
      httpHeaders: [
        { name: "Host", value: "shop.test" },
        { name: "X-A", value: "1" },
        { name: "x-a", value: "2" },
      ],
    }),
    status: 200,
  },
  { name: "the address that capture lets through", probe: get("/from"), status: 200 },
  {
    name: "a certificate of nobody",
    probe: { httpGet: ({ https }) => ({ path: "/well", port: https, scheme: "HTTPS" }) },
    status: 200,
  },
  { name: "nobody listens", probe: { httpGet: ({ closed }) => ({ port: closed }) }, status: 500, text: /ECONNREFUSED/ },
  { name: "TCP", probe: { tcpSocket: ({ tcp }) => ({ port: tcp }) }, status: 200 },
  { name: "TCP where nobody listens", probe: { tcpSocket: ({ closed }) => ({ port: closed }) }, status: 500 },
  { name: "gRPC", probe: { grpc: ({ grpc }) => ({ port: grpc }) }, status: 200 },
  { name: "a service of gRPC", probe: { grpc: ({ grpc }) => ({ port: grpc, service: "shop.Catalog" }) }, status: 200 },
  {
    name: "a service that does not serve",
    probe: { grpc: ({ grpc }) => ({ port: grpc, service: "x".repeat(200) }) },
    status: 503,
    text: /not SERVING/,
  },
  {
    name: "a service that is not there",
    probe: { grpc: ({ grpc }) => ({ port: grpc, service: "unknown" }) },
    status: 503,
    text: /status 5/,
  },
  { name: "gRPC of what speaks none", probe: { grpc: ({ http }) => ({ port: http }) }, status: 500 },
];

function deskOf(probe: (typeof rows)[number]["probe"]): ProbeDesk {
  const problems: string[] = [];
  const said = Object.fromEntries(Object.entries(probe).map(([kind, make]) => [kind, make(ports)]));
  // A second is the least that a pod can ask for.
  const timeoutSeconds = JSON.stringify(said).includes("/silent") ? 0.2 : 60;
  const probes = readProbes({ "/app-health/web/readyz": { ...said, timeoutSeconds } }, problems);
  assert.deepEqual(problems, []);
  return new ProbeDesk(probes, { address: "127.0.0.1", from: "127.0.0.6" });
}

for (const { name, probe, status, text = /./ } of rows) {
  test(name, async () => {
    const answer = await deskOf(probe).ask("/app-health/web/readyz")!;
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.text, text);
  });
}

test("however many ask, the application is asked once at a time", async () => {
  const desk = deskOf(get("/well"));
  asked = 0;
  const answers = await Promise.all(Array.from({ length: 50 }, () => desk.ask("/app-health/web/readyz")!));
  assert.ok(answers.every(({ status }) => status === 200));
  assert.equal(asked, 1);
  assert.equal(desk.ask("/app-health/other/readyz"), undefined);
});

const refused: readonly { readonly name: string; readonly said: Readonly<Record<string, unknown>> }[] = [
  { name: "a path that is none", said: { "/app-health/web": { tcpSocket: { port: 1 } } } },
  { name: "a port by its name", said: { "/app-health/web/livez": { httpGet: { port: "http" } } } },
  { name: "a command", said: { "/app-health/web/livez": { exec: { command: ["true"] } } } },
  { name: "no object", said: { "/app-health/web/livez": 1 } },
];
for (const { name, said } of refused) {
  test(`${name} is refused`, () => {
    const problems: string[] = [];
    assert.equal(readProbes(said, problems).size, 0);
    assert.match(problems.join("\n"), /^ISTIO_KUBE_APP_PROBERS: \/app-health\/web.* is no probe/);
  });
}
