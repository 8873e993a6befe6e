// Zipkin's protobuf at a real Jaeger, beside its JSON: spans of a proxy join the one of a client that has Zipkin's
// library.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { connectionManager, loopback, staticCluster } from "../../packages/proxy/src/testing/envoy-json.ts";
import { type Side, startEnvoy, startOurs } from "../../packages/proxy/src/testing/parity-pair.ts";
import { zipkin } from "../../packages/proxy/src/testing/tracing-stage.ts";
import { waitFor } from "../tools/processes.ts";
import { Jaeger, tracingProgram, treeOf } from "./tracing/stage.ts";

const versions = ["HTTP_JSON", "HTTP_PROTO"] as const;

function bootstrap(cluster: string, appPort: number, zipkinPort: number): string {
  const listeners = versions.map((collector_endpoint_version) => {
    const routes = [{ match: { prefix: "/" }, route: { cluster: "app" } }];
    const tracing = { provider: zipkin({ collector_endpoint_version }), spawn_upstream_span: true };
    const filters = [
      { name: "envoy.filters.network.http_connection_manager", typed_config: connectionManager(routes, { tracing }) },
    ];
    return { name: collector_endpoint_version, address: loopback(0), filter_chains: [{ filters }] };
  });
  const clusters = [staticCluster("app", [appPort]), staticCluster("http_collector", [zipkinPort])];
  return JSON.stringify({
    admin: { address: loopback(0) },
    node: { id: "n", cluster },
    static_resources: { listeners, clusters },
  });
}

const open = new AsyncDisposableStack();
let jaeger: Jaeger;
const sides = new Map<string, Side>();
before(async () => {
  jaeger = open.use(await Jaeger.start(await tracingProgram()));
  const app = http.createServer((_request, response) => response.end("ok")).listen(0, "127.0.0.1");
  await once(app, "listening");
  open.defer(() => app.close().closeAllConnections());
  const documentOf = (name: string) => () => bootstrap(name, (app.address() as AddressInfo).port, jaeger.ports.zipkin);
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-zipkin-"));
  open.defer(() => rmSync(folder, { recursive: true }));
  sides.set("tulle", await startOurs("", documentOf("tulle")));
  sides.set("envoy", await startEnvoy(folder, versions.length, documentOf("envoy")));
  for (const side of sides.values()) open.defer(() => side.stop());
});
after(() => open.disposeAsync());

async function treeBy(side: string, version: string, traceId: string): Promise<readonly string[]> {
  const parent = {
    traceId,
    id: "b7ad6b7169203331",
    name: "get",
    kind: "CLIENT",
    localEndpoint: { serviceName: "client" },
  };
  await jaeger.addZipkinSpan({ ...parent, timestamp: Date.now() * 1000, duration: 1000 });
  const answer = await fetch(`http://127.0.0.1:${sides.get(side)!.ports.get(version)!}/`, {
    headers: { b3: `${traceId}-${parent.id}-1`, host: "shop.test" },
  });
  assert.equal(answer.status, 200);
  return waitFor(
    async () => {
      const traces = await jaeger.traces(side);
      const spans = traces.find(([first]) => first!.traceId === traceId) ?? [];
      return spans.length >= 3 && treeOf(spans).map((line) => line.replace(/127\.0\.0\.1:\d+/, "(host)"));
    },
    { what: "three spans", intervalMs: 500 },
  );
}

for (const [index, version] of versions.entries()) {
  test(`${version}: spans of Tulle's proxy join the client's`, async () => {
    const traceId = `0af7651916cd43dd8448eb2110000${index}00`.padEnd(32, "1");
    assert.deepEqual(await treeBy("tulle", version, traceId), [
      "client client get",
      "  tulle server (host)",
      "    tulle client router app egress",
    ]);
  });
}

test("HTTP_PROTO: those of an Envoy do not, whose ids of spans are turned around", async () => {
  assert.deepEqual(await treeBy("envoy", "HTTP_PROTO", "0af7651916cd43dd8448eb2120000000"), [
    "client client get",
    "envoy server (host)",
    "  envoy client router app egress",
  ]);
});
