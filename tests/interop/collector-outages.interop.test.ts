// A real Jaeger, outside of the mesh by a DNS name, that is gone, hangs, or whose place somebody else has: requests go
// on, counters tell of each span, and spans come again once it is back.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { httpRequest } from "../e2e/shop-instance.ts";
import { MeshedProxies } from "../tools/meshed-proxies.ts";
import { waitFor } from "../tools/processes.ts";
import { Jaeger, type SpanPorts, tracingProgram } from "./tracing/stage.ts";

const port = 8080;
const protocols = ["grpc", "http"] as const;
const gateways = protocols.map((protocol) => `gateway-${protocol}`);
/** A gateway's request, and its try. */
const spansOfRequest = 2;
const requestsEach = 3;

function manifests(ports: SpanPorts): string {
  const settings = { grpc: { grpc: { timeout: "1s" } }, http: { http: { path: "/v1/traces", timeout: "1s" } } };
  const extensionProviders = protocols.map((protocol) => ({
    name: protocol,
    opentelemetry: { service: "localhost", port: ports[protocol], ...settings[protocol] },
  }));
  const documents = [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "tulle", namespace: "tulle-system" },
      data: { mesh: JSON.stringify({ extensionProviders }) },
    },
    ...protocols.flatMap((protocol) => {
      const name = `gateway-${protocol}`;
      const metadata = { name, namespace: "shop" };
      const server = { port: { number: port, name: "http", protocol: "HTTP" }, hosts: ["*"] };
      return [
        {
          apiVersion: "telemetry.tulle.io/v1",
          kind: "Telemetry",
          metadata,
          spec: {
            selector: { matchLabels: { app: name } },
            tracing: [{ providers: [{ name: protocol }], randomSamplingPercentage: 100 }],
          },
        },
        {
          apiVersion: "networking.tulle.io/v1",
          kind: "Gateway",
          metadata,
          spec: { selector: { app: name }, servers: [server] },
        },
      ];
    }),
    {
      apiVersion: "networking.tulle.io/v1",
      kind: "VirtualService",
      metadata: { name: "hello", namespace: "shop" },
      spec: { hosts: ["*"], gateways, http: [{ route: [{ destination: { host: "hello", port: { number: port } } }] }] },
    },
  ];
  return documents.map((document) => JSON.stringify(document)).join("\n---\n");
}

/** Says the same to whoever comes to the ports of OTLP, whatever is asked. */
async function answerInstead(ports: SpanPorts, answer: string): Promise<AsyncDisposable> {
  await using open = new AsyncDisposableStack();
  for (const protocol of protocols) {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("data", () => socket.write(answer));
    });
    server.listen(ports[protocol], ports.address);
    await once(server, "listening");
    open.defer(async () => {
      for (const socket of sockets) socket.destroy();
      await server[Symbol.asyncDispose]();
    });
  }
  return open.move();
}

const instead: readonly { readonly name: string; readonly answer: string }[] = [
  { name: "answers rubbish", answer: "\0\0\0rubbish\r\n\r\n" },
  { name: "finds all too large", answer: "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n" },
  {
    name: "wants to be left alone for an hour",
    answer: "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n",
  },
];

describe("a collector that does not take spans", () => {
  const open = new AsyncDisposableStack();
  let program: string;
  let jaeger: Jaeger;
  let mesh: MeshedProxies;
  const counts = { spans_sent: 0, spans_dropped: 0 };

  before(async () => {
    program = await tracingProgram();
    jaeger = await Jaeger.start(program);
    open.defer(() => jaeger[Symbol.asyncDispose]());
    mesh = open.use(
      await MeshedProxies.start({
        pods: [
          ...gateways.map((name) => ({ name, namespace: "shop", proxy: "tulle" as const, isGateway: true as const })),
          { name: "hello", namespace: "shop", proxy: "tulle" },
        ],
        ports: [port],
        manifests: manifests(jaeger.ports),
      }),
    );
  });
  after(() => open.disposeAsync());

  /** Requests through both gateways are answered, and all their spans are counted so. */
  async function assertSpans(outcome: keyof typeof counts): Promise<void> {
    for (const gateway of gateways) {
      for (let index = 0; index < requestsEach; index += 1) {
        const { status, body } = await httpRequest(`http://${mesh.pod(gateway).address}:${port}/`);
        assert.equal(status, 200, body);
      }
    }
    counts[outcome] += requestsEach * spansOfRequest;
    for (const gateway of gateways) {
      let seen: unknown;
      const areCounted = async (): Promise<boolean> => {
        const { stats } = JSON.parse(await mesh.admin(gateway, "/stats?format=json&filter=opentelemetry")) as {
          readonly stats: readonly { readonly name: string; readonly value: number }[];
        };
        const valueOf = (name: string) => stats.find((stat) => stat.name === `tracing.opentelemetry.${name}`)?.value;
        seen = { spans_sent: valueOf("spans_sent"), spans_dropped: valueOf("spans_dropped") };
        return JSON.stringify(seen) === JSON.stringify(counts);
      };
      const details = (): string => JSON.stringify({ seen, counts });
      await waitFor(areCounted, { what: `the counters of ${gateway}`, intervalMs: 200, details });
    }
  }

  async function assertTaken(): Promise<void> {
    await assertSpans("spans_sent");
    for (const gateway of gateways) {
      const isThere = async (): Promise<boolean> => (await jaeger.traces(`${gateway}.shop`)).length === requestsEach;
      await waitFor(isThere, { what: `the traces of ${gateway}`, intervalMs: 200 });
    }
  }

  test("one that is there takes them", () => assertTaken());

  test("one that hangs", async () => {
    jaeger.halt();
    await assertSpans("spans_dropped");
  });

  test("one that is gone", async () => {
    await jaeger[Symbol.asyncDispose]();
    await assertSpans("spans_dropped");
  });

  for (const { name, answer } of instead) {
    test(`somebody in its place who ${name}`, async () => {
      await using _ = await answerInstead(jaeger.ports, answer);
      await assertSpans("spans_dropped");
    });
  }

  test("one that is back takes what comes from then on", async () => {
    jaeger = await Jaeger.start(program, jaeger.ports);
    await assertTaken();
  });
});
