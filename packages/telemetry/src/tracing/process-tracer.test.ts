// What becomes of a server's spans while the collector takes them, refuses them, hangs or is not there; and which
// traces are sampled. What the spans hold is read in tests/e2e/own-traces.test.ts.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { Counter } from "../metric.ts";
import { defaultTracerLimits, ProcessTracer } from "./process-tracer.ts";
import { tracingEnvironment } from "./tracing-environment.ts";

type Environment = Readonly<Record<string, string>>;

function tracerOf(environment: Environment, limits = {}) {
  const { settings } = tracingEnvironment(environment, "own");
  const stats = { sent: new Counter(), dropped: new Counter() };
  const tracer = new ProcessTracer(settings!, "1", stats, { ...defaultTracerLimits, ...limits });
  const counts = () => [stats.sent.value, stats.dropped.value];
  return { tracer, counts };
}

async function endpointOf(t: TestContext, server: net.Server): Promise<Environment> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  return { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const overGrpc = { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" };
const impatient = { OTEL_EXPORTER_OTLP_TIMEOUT: "50" };

const httpAnswers: readonly {
  readonly name: string;
  readonly answer: (response: http.ServerResponse) => void;
  readonly environment?: Environment;
  readonly expected: readonly number[];
}[] = [
  { name: "takes them", answer: (response) => response.end("{}"), expected: [2, 0] },
  { name: "refuses them", answer: (response) => response.writeHead(429).end(), expected: [0, 2] },
  { name: "breaks off", answer: (response) => response.destroy(), expected: [0, 2] },
  { name: "answers rubbish", answer: ({ socket }) => socket!.end("what\r\n\r\n"), expected: [0, 2] },
  { name: "answers without an end", answer: endless, expected: [0, 2] },
  { name: "says nothing", answer: () => undefined, environment: impatient, expected: [0, 2] },
];
for (const { name, answer, environment, expected } of httpAnswers) {
  test(`HTTP: a collector that ${name}`, async (t) => {
    const server = http.createServer((request, response) => {
      request.resume();
      request.on("end", () => answer(response));
    });
    const { tracer, counts } = tracerOf({ ...(await endpointOf(t, server)), ...environment });
    const parent = tracer.start("parent");
    tracer.start("child", { parent })?.end("it failed");
    parent?.end();
    await tracer.close();
    server.closeAllConnections();
    assert.deepEqual(counts(), expected);
  });
}

function endless(response: http.ServerResponse): void {
  const write = (): void => {
    while (!response.destroyed && response.write(Buffer.alloc(16_384)));
  };
  response.on("drain", write);
  write();
}

const grpcAnswers: readonly {
  readonly name: string;
  readonly answer: (stream: http2.ServerHttp2Stream) => void;
  readonly environment?: Environment;
  readonly expected: readonly number[];
}[] = [
  {
    name: "takes them",
    answer: (stream) => {
      stream.respond({ "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.alloc(5));
    },
    expected: [2, 0],
  },
  {
    name: "refuses them",
    answer: (stream) => stream.respond({ "content-type": "application/grpc", "grpc-status": "8" }, { endStream: true }),
    expected: [0, 2],
  },
  { name: "resets", answer: (stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM), expected: [0, 2] },
  { name: "says nothing", answer: () => undefined, environment: impatient, expected: [0, 2] },
];
for (const { name, answer, environment, expected } of grpcAnswers) {
  test(`gRPC: a collector that ${name}`, async (t) => {
    const server = http2.createServer();
    server.on("stream", (stream: http2.ServerHttp2Stream) => {
      stream.on("error", () => undefined);
      stream.resume();
      stream.on("end", () => answer(stream));
    });
    const { tracer, counts } = tracerOf({ ...(await endpointOf(t, server)), ...overGrpc, ...environment });
    tracer.start("one")?.end();
    tracer.start("two")?.end();
    await tracer.close();
    assert.deepEqual(counts(), expected);
  });
}

for (const protocol of [{}, overGrpc]) {
  test(`a collector that says nothing does not hold the end up ${JSON.stringify(protocol)}`, async (t) => {
    const server = net.createServer();
    const sockets: net.Socket[] = [];
    server.on("connection", (socket) => sockets.push(socket.on("error", () => undefined)));
    const patient = { ...(await endpointOf(t, server)), ...protocol, OTEL_EXPORTER_OTLP_TIMEOUT: "3600000" };
    const { tracer, counts } = tracerOf(patient, { closeMs: 50 });
    tracer.start("under way")?.end();
    void tracer.flush();
    tracer.start("behind it")?.end();
    await tracer.close();
    assert.deepEqual(counts(), [0, 2]);
    for (const socket of sockets) socket.destroy();
  });

  test(`nobody listens ${JSON.stringify(protocol)}: what is more than the limit is dropped at once`, async (t) => {
    const server = http.createServer();
    const environment = await endpointOf(t, server);
    server.close();
    await once(server, "close");
    const { tracer, counts } = tracerOf({ ...environment, ...protocol }, { maxSpans: 3 });
    for (let count = 0; count < 100; count += 1) tracer.start("span")?.end();
    await tracer.close();
    assert.deepEqual(counts(), [0, 100]);
  });
}

const sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const unsampled = sampled.replace(/01$/, "00");
const samplers: readonly {
  readonly sampler: string;
  readonly argument?: string;
  readonly expected: Readonly<Record<"alone" | "sampled" | "unsampled", boolean>>;
}[] = [
  { sampler: "always_on", expected: { alone: true, sampled: true, unsampled: true } },
  { sampler: "always_off", expected: { alone: false, sampled: false, unsampled: false } },
  { sampler: "parentbased_always_on", expected: { alone: true, sampled: true, unsampled: false } },
  { sampler: "parentbased_always_off", expected: { alone: false, sampled: true, unsampled: false } },
  // The last seven bytes of the trace are 0x48eb211c80319c of 2^56: a share of 0.285.
  { sampler: "traceidratio", argument: "0.28", expected: { alone: false, sampled: false, unsampled: false } },
  { sampler: "traceidratio", argument: "0.29", expected: { alone: false, sampled: true, unsampled: true } },
];
for (const { sampler, argument = "1", expected } of samplers) {
  test(`${sampler} ${argument}`, () => {
    const { tracer } = tracerOf({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
      OTEL_TRACES_SAMPLER: sampler,
      OTEL_TRACES_SAMPLER_ARG: argument,
    });
    const isTraced = (parent?: string): boolean => tracer.start("span", { parent }) !== undefined;
    const { alone, ...joined } = expected;
    // What begins alone has an id by chance.
    if (sampler !== "traceidratio") assert.equal(isTraced(), alone);
    assert.deepEqual({ sampled: isTraced(sampled), unsampled: isTraced(unsampled) }, joined);
  });
}

test("a span joins the trace of its request, and begins one where that is not sound", () => {
  const { tracer } = tracerOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" });
  const joined = tracer.start("span", { parent: sampled })!;
  assert.deepEqual([joined.traceId, joined.parentId], [sampled.slice(3, 35), sampled.slice(36, 52)]);
  const child = tracer.start("child", { parent: joined })!;
  assert.deepEqual([child.traceId, child.parentId], [joined.traceId, joined.spanId]);
  assert.equal(joined.traceParent, `00-${joined.traceId}-${joined.spanId}-01`);
  const own = tracer.start("span", { parent: "00-zz" })!;
  assert.notEqual(own.traceId, joined.traceId);
  assert.equal(own.parentId, undefined);
});
