// gRPC of grpc-js through two sidecars and their mutual TLS, in every mix of the two proxies: one expectation, whatever
// proxy is at either end. And HTTP/1.1 between sidecars as streams of HTTP/2.
import assert from "node:assert/strict";
import type { ChannelOptions } from "@grpc/grpc-js";
import { after, before, describe, test } from "node:test";
import { serveGrpc } from "../../samples/shop/catalog/serve-grpc.ts";
import { Stock } from "../../samples/shop/catalog/stock.ts";
import { waitFor } from "../tools/processes.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { type GrpcApplication, grpcApplication, GrpcCaller } from "./grpc-application.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const grpcPort = 9000;
const retriedPort = 9001;
const boundedPort = 9002;
const catalogPort = 9003;
const ports = [grpcPort, retriedPort, boundedPort, catalogPort];
const outboundPort = 15_007;

const manifests = kinds.map((kind) =>
  JSON.stringify({
    apiVersion: "networking.tulle.io/v1",
    kind: "VirtualService",
    metadata: { name: `server-${kind}`, namespace: "shop" },
    spec: {
      hosts: [`server-${kind}`],
      http: [
        {
          match: [{ port: retriedPort }],
          retries: { attempts: 3, retryOn: "resource-exhausted,internal" },
          route: [{ destination: { host: `server-${kind}`, port: { number: retriedPort } } }],
        },
        {
          match: [{ port: boundedPort }],
          timeout: "0.3s",
          route: [{ destination: { host: `server-${kind}`, port: { number: boundedPort } } }],
        },
      ],
    },
  }),
);

const retryPolicy = JSON.stringify({
  methodConfig: [
    {
      name: [{}],
      retryPolicy: {
        maxAttempts: 3,
        initialBackoff: "0.01s",
        maxBackoff: "0.1s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["RESOURCE_EXHAUSTED"],
      },
    },
  ],
});

describe("gRPC through two sidecars", () => {
  let mesh: MeshedProxies;
  const applications = new Map<string, GrpcApplication>();

  before(
    async () => {
      mesh = await MeshedProxies.start({
        pods: kinds.flatMap((proxy) =>
          ["client", "server"].map((role) => ({ name: `${role}-${proxy}`, namespace: "shop", proxy })),
        ),
        ports,
        protocols: Object.fromEntries(ports.map((port) => [port, "grpc"])),
        manifests: manifests.join("\n---\n"),
        startApplication: async ({ name, appAddress }) => {
          const stack = new AsyncDisposableStack();
          for (const port of [grpcPort, retriedPort, boundedPort]) {
            const application = stack.use(await grpcApplication(`${appAddress}:${port}`));
            applications.set(`${name}:${port}`, application);
          }
          const stock = new Stock({ showImage: false, imageBaseUrl: "" });
          const catalog = await serveGrpc(stock, `${appAddress}:${catalogPort}`);
          stack.defer(() => catalog.end());
          return stack;
        },
      });
    },
    { timeout: 120_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
  });

  for (const client of kinds) {
    for (const server of kinds) {
      const pair = `${client} to ${server}`;
      const callerAt = (port: number, options?: ChannelOptions): GrpcCaller =>
        new GrpcCaller(`${mesh.pod(`client-${client}`).address}:${outboundPort}`, `server-${server}:${port}`, options);
      const applicationAt = (port: number): GrpcApplication => applications.get(`server-${server}:${port}`)!;

      test(`${pair}: a unary call, its metadata and trailers, and who called`, async () => {
        using caller = callerAt(grpcPort);
        const { code, body, head, trailers } = await caller.unary("unary", Buffer.from("hello")).outcome;
        assert.deepEqual([code, body, trailers.get("x-sum")], ["OK", "hello", ["5"]]);
        assert.match(String(head.get("saw-client-cert")), new RegExp(`ns/shop/sa/client-${client}`));
      });

      test(`${pair}: a message of three megabytes there and back`, async () => {
        using caller = callerAt(grpcPort);
        const large = Buffer.alloc(3 * 1024 * 1024, "x");
        const { code, body } = await caller.unary("unary", large).outcome;
        assert.equal(code, "OK");
        assert.equal(body.length, large.length);
      });

      test(`${pair}: a status from the application, in its trailers`, async () => {
        using caller = callerAt(grpcPort);
        const headers = { "x-key": `${pair} status`, "x-code": "9", "x-fails": "1" };
        const { code, details } = await caller.unary("fail", Buffer.from("a"), headers).outcome;
        assert.deepEqual([code, details], ["FAILED_PRECONDITION", "as asked"]);
      });

      test(`${pair}: repeated where the route asks for it`, async () => {
        using caller = callerAt(retriedPort);
        const key = `${pair} retried`;
        const headers = { "x-key": key, "x-code": "8", "x-fails": "2" };
        const { code, body } = await caller.unary("fail", Buffer.from("again"), headers).outcome;
        assert.deepEqual([code, body, applicationAt(retriedPort).tries.get(key)], ["OK", "again", 3]);
      });

      test(`${pair}: repeated by the client's own policy`, async () => {
        using caller = callerAt(grpcPort, { "grpc.service_config": retryPolicy });
        const key = `${pair} retried by the client`;
        const headers = { "x-key": key, "x-code": "8", "x-fails": "2" };
        const { code, body } = await caller.unary("fail", Buffer.from("again"), headers).outcome;
        assert.deepEqual([code, body, applicationAt(grpcPort).tries.get(key)], ["OK", "again", 3]);
      });

      test(`${pair}: health and reflection of the shop's catalog`, async () => {
        using caller = callerAt(catalogPort);
        // A question about nothing in particular; the answer's status is SERVING.
        const health = await caller.first("/grpc.health.v1.Health/Check", Buffer.alloc(0));
        assert.deepEqual([...health], [8, 1]);
        const listServices = Buffer.from([0x3a, 1, 0x2a]);
        const services = await caller.first("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", listServices);
        assert.match(String(services), /shop\.Catalog/);
      });

      test(`${pair}: the client's deadline reaches the server and ends the call`, async () => {
        using caller = callerAt(grpcPort);
        const key = `${pair} deadline`;
        const { head } = await caller.unary("unary", Buffer.from("a"), {}, 60_000).outcome;
        const toldMs = Number(head.get("saw-deadline")[0]);
        assert.ok(toldMs > 0 && toldMs <= 60_000, `${toldMs} ms`);
        const without = await caller.unary("unary", Buffer.from("a")).outcome;
        assert.deepEqual(without.head.get("saw-deadline"), ["none"]);
        const { code } = await caller.unary("hang", Buffer.from("a"), { "x-key": key }, 300).outcome;
        // Or by the sidecar, which waits as long and says what it says of any time-out.
        assert.match(code, /^(DEADLINE_EXCEEDED|UNAVAILABLE)$/);
        await waitFor(() => applicationAt(grpcPort).cancelled.includes(key), { what: "the end of the call" });
      });

      test(`${pair}: a time-out of the route is a status`, async () => {
        using caller = callerAt(boundedPort);
        const { code, details } = await caller.unary("hang", Buffer.from("a"), { "x-key": pair }).outcome;
        // All are told of the time-out, and each may be the first to give up: this side, the other, or the application.
        const words = ["UNAVAILABLE upstream request timeout", "DEADLINE_EXCEEDED downstream duration timeout"];
        assert.ok(
          [...words, "DEADLINE_EXCEEDED Deadline exceeded"].includes(`${code} ${details}`),
          `${code} ${details}`,
        );
      });

      test(`${pair}: what the client gives up is given up at the server`, async () => {
        using caller = callerAt(grpcPort);
        const key = `${pair} cancelled`;
        const chat = caller.chat({ "x-key": key });
        const code = Promise.withResolvers<number>();
        chat.on("error", (error: Error & { readonly code?: number }) => code.resolve(error.code ?? -1));
        const answer = new Promise<Buffer>((resolve) => chat.once("data", resolve));
        chat.write(Buffer.from("first"));
        assert.equal(String(await answer), "first");
        chat.cancel();
        assert.equal(await code.promise, 1);
        await waitFor(() => applicationAt(grpcPort).cancelled.includes(key), { what: "the end of the call" });
        const isLogged = (line: string): boolean =>
          line.includes("/test.Echo/Chat") && / 200 DR http2.remote_reset /.test(line);
        for (const name of [`client-${client}`, `server-${server}`])
          await waitFor(() => mesh.output(name).split("\n").some(isLogged), { what: `the line of ${name}` });
      });

      test(`${pair}: streams both ways, and a reader that is slow`, async () => {
        using caller = callerAt(grpcPort);
        const chunks = Array.from({ length: 200 }, (_, index) => Buffer.alloc(10_000, index % 256));
        assert.equal(await caller.upload(chunks), "2000000");
        let received = 0;
        let at = 0;
        for await (const chunk of caller.download(100, 60_000)) {
          assert.ok(
            (chunk as Buffer).every((byte) => byte === at % 256),
            `message ${at}`,
          );
          received += (chunk as Buffer).length;
          at += 1;
          if (at % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        assert.deepEqual([at, received], [100, 6_000_000]);
        const chat = caller.chat();
        const answers: string[] = [];
        chat.on("data", (chunk: Buffer) => answers.push(String(chunk)));
        for (const word of ["one", "two", "three"]) chat.write(Buffer.from(word));
        chat.end();
        await new Promise((resolve) => chat.once("end", resolve));
        assert.deepEqual(answers, ["one", "two", "three"]);
      });
    }

    test(`${client}: a service that does not exist is a status`, async () => {
      const { address } = mesh.pod(`client-${client}`);
      using caller = new GrpcCaller(`${address}:${outboundPort}`, "nobody:1");
      const { code } = await caller.unary("unary", Buffer.from("a")).outcome;
      assert.match(code, /^(UNAVAILABLE|UNIMPLEMENTED)$/);
    });
  }

  // The client's side counts calls, whose tries the server's side sees.
  for (const [role, statuses] of [
    ["client", ["0", "9"]],
    ["server", ["0", "8", "9"]],
  ] as const) {
    test(`metrics of Tulle's ${role} side name the status`, async () => {
      const text = await mesh.admin(`${role}-tulle`, "/stats/prometheus");
      for (const status of statuses) {
        const found = text
          .split("\n")
          .some(
            (line) =>
              line.startsWith("istio_requests_total{") &&
              line.includes('request_protocol="grpc"') &&
              line.includes(`grpc_response_status="${status}"`),
          );
        assert.ok(found, `${role}: no calls with the status ${status}`);
      }
      // One stream alone has so many.
      for (const [direction, least] of [
        ["request", 200],
        ["response", 100],
      ] as const) {
        const line = new RegExp(`^istio_${direction}_messages_total\\{.*destination_service="[^"]+".*\\} (\\d+)$`, "m");
        const count = Number(line.exec(text)?.[1] ?? 0);
        assert.ok(count > least, `${role}: ${count} messages of ${direction}s`);
      }
    });
  }
});
