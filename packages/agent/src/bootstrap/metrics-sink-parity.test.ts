// Tulle's proxy and a stock Envoy, started from the document that the agent writes, send their metrics where the
// environment says: with who they are, and with the headers that the collector wants.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { ExportMetricsServiceRequestSchema } from "@tulle/xds/opentelemetry/proto/collector/metrics/v1/metrics_service_pb";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { freeAddressBlock, inTime, startProcess } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { parseSettings } from "../settings.ts";
import { bootstrapDocument } from "./bootstrap.ts";

const cli = path.resolve(import.meta.dirname, "../../../cli/src/main.ts");

for (const proxy of ["tulle", "envoy"] as const) {
  test(`${proxy} sends its metrics as the agent's environment says`, async () => {
    await using open = new AsyncDisposableStack();
    const { promise, resolve } = Promise.withResolvers<{ headers: http.IncomingHttpHeaders; body: Buffer }>();
    const collector = http.createServer(async (request, response) => {
      const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
      response.end();
      resolve({ headers: request.headers, body });
    });
    collector.listen(0, "127.0.0.1");
    await once(collector, "listening");
    open.defer(() => {
      collector.closeAllConnections();
      collector.close();
    });
    const folder = temporaryFolder("metrics-sink-");
    const parsed = parseSettings({
      POD_NAME: "web-1",
      POD_NAMESPACE: "shop",
      INSTANCE_IP: `${await freeAddressBlock()}.1`,
      TULLE_XDS_ADDRESS: "127.0.0.1:15010",
      TULLE_STATE_DIR: folder,
      TULLE_NODE_METADATA: JSON.stringify({ WORKLOAD_NAME: "web" }),
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
      OTEL_EXPORTER_OTLP_HEADERS: "api-key=k",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test",
      OTEL_METRIC_EXPORT_INTERVAL: "200",
    });
    assert.ok(parsed.ok);
    const file = path.join(folder, "bootstrap.json");
    const sockets = { xds: path.join(folder, "nobody.sock"), secrets: undefined };
    await writeFile(file, JSON.stringify(bootstrapDocument(parsed.settings, sockets)));
    const [command, args] =
      proxy === "tulle"
        ? [process.execPath, [cli, "proxy", "-c", file]]
        : [await envoyPath(), ["-c", file, "--disable-hot-restart", "--concurrency", "1"]];
    const running = await startProcess(command, args, { name: proxy });
    open.use(running);
    const { headers, body } = await inTime(promise, `metrics of ${proxy}: ${running.output()}`);
    assert.equal(headers["api-key"], "k");
    const [first] = fromBinary(ExportMetricsServiceRequestSchema, body).resourceMetrics;
    const attributes = new Map(first?.resource?.attributes.map(({ key, value }) => [key, value?.value.value]));
    assert.deepEqual(
      ["service.name", "service.namespace", "service.instance.id", "k8s.pod.name", "deployment.environment"].map(
        (key) => attributes.get(key),
      ),
      ["web", "shop", "web-1.shop", "web-1", "test"],
    );
    assert.ok(first!.scopeMetrics[0]!.metrics.length > 10);
  });
}
