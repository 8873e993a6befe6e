// The spans that the control plane and the authorization server make of their own work, as a collector gets them by
// OTLP over HTTP and over gRPC.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import path from "node:path";
import { test } from "node:test";
import { ApiClient, loadText } from "@tulle/config";
import { endpoints } from "@tulle/config/api";
import { runManifestControlPlane } from "@tulle/control-plane";
import { Logging } from "@tulle/telemetry";
import { listeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { testSecret } from "../../packages/authorization-server/src/testing/test-server.ts";
import { ask, provenWorld, tokenOf } from "../../packages/control-plane/src/testing/proven-world.ts";
import {
  type CollectorAnswer,
  type SeenSpan,
  TraceCollector,
} from "../../packages/proxy/src/testing/trace-collector.ts";
import { inTime, waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const callersTrace = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${callersTrace}-b7ad6b7169203331-01`;

async function startCollector(protocol: "grpc" | "http/protobuf", answer: CollectorAnswer = "good") {
  const collector = new TraceCollector();
  collector.answer = answer;
  const { grpcPort, httpPort } = await collector.start();
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${protocol === "grpc" ? grpcPort : httpPort}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    OTEL_EXPORTER_OTLP_HEADERS: "x-key=of-the-collector",
    OTEL_BSP_SCHEDULE_DELAY: "20",
  };
  /** The end of a server waits a second for them, and this machine may be slower. */
  const untilTold = (count: number, name = ""): Promise<unknown> =>
    waitFor(() => collector.spans.filter((span) => span.name.startsWith(name)).length >= count, {
      what: `${count} spans ${name}`,
      details: () => collector.spans.map((span) => span.name).join(" "),
    });
  return { collector, environment, untilTold, [Symbol.dispose]: () => collector.close() };
}

const childrenOf = (spans: readonly SeenSpan[], parent: SeenSpan | undefined): readonly string[] =>
  spans.filter(({ parentSpanId }) => parentSpanId === parent?.spanId).map(({ name }) => name);

async function askBySocket(socketPath: string, url: string): Promise<void> {
  const asked = request({ socketPath, path: url, headers: { traceparent } }).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  await answer.toArray();
}

const served = (method: string, route: string | undefined, status: number) => ({
  name: route === undefined ? method : `${method} ${route}`,
  kind: "SPAN_KIND_SERVER",
  traceId: callersTrace,
  attributes: {
    "http.request.method": method,
    ...(route === undefined ? {} : { "http.route": route }),
    "http.response.status_code": { intValue: String(status) },
  },
});

for (const protocol of ["grpc", "http/protobuf"] as const) {
  test(`control plane, ${protocol}: a change is one tree, a request of the API joins its caller's`, async () => {
    using started = await startCollector(protocol);
    const { collector, environment } = started;
    const folder = temporaryFolder("tulle-own-traces-");
    const running = await runManifestControlPlane({
      stateDirectory: path.join(folder, ".tulle"),
      xdsAddress: { host: "127.0.0.1", port: 0 },
      httpAddress: { host: "127.0.0.1", port: 0 },
      debounce: { quietMs: 5, maxMs: 100 },
      logging: new Logging({ level: "off" }),
      environment,
    });
    try {
      const api = new ApiClient({ endpoint: { socketPath: running.socketPath } });
      const { resources } = loadText(
        "{ apiVersion: v1, kind: Service, metadata: { name: catalog, namespace: shop }, spec: { ports: [{ port: 80 }] } }",
        "service.yaml",
      );
      await api.apply(resources[0]!);
      await waitFor(async () => !(await api.call(endpoints.pending, {})).pending, { what: "the change" });
      await askBySocket(running.socketPath, "/debug/syncz?secret=of-a-caller");
      await started.untilTold(1, "change");
      await started.untilTold(1, "PUT");
      await started.untilTold(1, "GET /debug");
    } finally {
      await running.close();
    }
    const change = collector.spans.find(({ name }) => name === "change");
    assert.deepEqual(childrenOf(collector.spans, change), ["debounce", "accept", "snapshot", "endpoints", "push"]);
    assert.deepEqual(change?.attributes, { "tulle.triggers": "service" });
    const applied = collector.spans.find(({ name }) => name.startsWith("PUT"));
    assert.equal(applied?.name, "PUT /api/v1/resources/{kind}/{namespace}/{name}");
    const asked = collector.spans.filter(({ traceId }) => traceId === callersTrace);
    assert.deepEqual(
      asked.map(({ kind, parentSpanId }) => [kind, parentSpanId]),
      [["SPAN_KIND_SERVER", "b7ad6b7169203331"]],
    );
    assert.doesNotMatch(JSON.stringify(collector.spans), /of-a-caller/);
    assert.ok(collector.requests.every((headers) => headers["x-key"] === "of-the-collector"));
  });

  test(`control plane, ${protocol}: whose certificates it signs, and whose it does not`, async (context) => {
    using started = await startCollector(protocol);
    const world = await provenWorld(context, { environment: started.environment });
    await ask(world, { token: await tokenOf(world) });
    await ask(world, { token: "token-of-a-stranger" });
    await started.untilTold(2, "sign");
    await world.running.close();
    const signing = started.collector.spans.filter(({ name }) => name === "sign certificate");
    assert.deepEqual(
      signing.map(({ attributes, status }) => [attributes["tulle.identity"], status]),
      [
        ["spiffe://cluster.local/ns/shop/sa/web", ""],
        [undefined, "STATUS_CODE_ERROR"],
      ],
    );
    assert.doesNotMatch(JSON.stringify(started.collector.spans), /of-a-stranger/);
  });

  test(`both servers, ${protocol}: a collector that says nothing does not hold their end up`, async () => {
    using started = await startCollector(protocol, "late");
    // As long as a request may take: an end that waited for it would not come in this test's time.
    const environment = { ...started.environment, OTEL_EXPORTER_OTLP_TIMEOUT: "3600000" };
    const running = await runManifestControlPlane({
      stateDirectory: path.join(temporaryFolder("tulle-own-traces-"), ".tulle"),
      xdsAddress: { host: "127.0.0.1", port: 0 },
      httpAddress: { host: "127.0.0.1", port: 0 },
      logging: new Logging({ level: "off" }),
      environment,
    });
    await askBySocket(running.socketPath, "/debug/syncz");
    await inTime(running.close(), "the end of the control plane");
    const server = await listeningServer([], environment);
    await (await fetch(`${server.issuer}/no-such-page`)).text();
    await inTime(Promise.resolve(server[Symbol.asyncDispose]()), "the end of the authorization server");
  });

  test(`authorization server, ${protocol}: requests join their callers', and tell no secret`, async () => {
    using started = await startCollector(protocol);
    const { collector, environment } = started;
    {
      await using server = await listeningServer([], environment);
      await server.client({ id: "shop", redirectUris: [server.redirectUri] });
      const form = {
        grant_type: "authorization_code",
        code: "code-of-a-thief",
        client_id: "shop",
        client_secret: testSecret,
      };
      const asked = [
        ["/token", { method: "POST", body: new URLSearchParams(form) }],
        ["/authorize?client_id=shop&state=state-of-a-client&login_hint=ann", {}],
        ["/interaction/code-of-a-page", {}],
        ["/no-such-page-of-a-secret", {}],
      ] as const;
      for (const [url, init] of asked) {
        const answer = await fetch(`${server.issuer}${url}`, {
          ...init,
          headers: { traceparent, authorization: "Bearer token-of-ann" },
        });
        await answer.text();
      }
      await started.untilTold(asked.length);
    }
    const told = collector.spans.map(({ name, kind, traceId, attributes }) => ({ name, kind, traceId, attributes }));
    assert.deepEqual(told, [
      served("POST", "/token", 400),
      served("GET", "/authorize", 302),
      served("GET", "/interaction/:id", 400),
      served("GET", undefined, 404),
    ]);
    assert.doesNotMatch(JSON.stringify(collector.spans), /of-a|of-ann|hint|secret/);
  });
}
