// What a store refuses reaches whoever asked, with the store's words.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { MemoryStore, StoreRefusal, type StoreRefusalReason } from "@tulle/config";
import { endpoints, pathOf } from "@tulle/config/api";
import { MetricRegistry } from "@tulle/telemetry";
import { ApiFailure } from "./api-failure.ts";
import { resourceRoutes } from "./resource-routes.ts";
import { controlPlaneMetrics } from "../serve/metrics.ts";
import type { ApiRequest } from "./routes.ts";

const rows: readonly { readonly reason: StoreRefusalReason; readonly status: number }[] = [
  { reason: "conflict", status: 409 },
  { reason: "forbidden", status: 403 },
  { reason: "unavailable", status: 503 },
];

const key = { kind: "ServiceAccount", namespace: "shop", name: "web" } as const;
const { kind, namespace, name } = key;
const manifest = { apiVersion: "v1", kind, metadata: { namespace, name } };

for (const { reason, status } of rows) {
  test(`a store that refuses: ${reason}`, async (context) => {
    const store = new MemoryStore();
    const refuse = (): never => {
      throw new StoreRefusal(reason, `this is ${reason}`);
    };
    store.apply = async () => refuse();
    store.delete = async () => refuse();
    const resources = resourceRoutes({
      store,
      findings: () => [],
      statusOf: () => undefined,
      metrics: controlPlaneMetrics(new MetricRegistry(), "test"),
    });
    context.after(() => resources.close());
    for (const endpoint of ["applyResource", "deleteResource"] as const) {
      const request = Object.assign(Readable.from([Buffer.from(JSON.stringify(manifest))]), { socket: {} });
      const path = pathOf(endpoints[endpoint], key);
      const asked = { path, query: new URLSearchParams(), request } as unknown as ApiRequest;
      await assert.rejects(
        async () => resources.handlers[endpoint](asked),
        new ApiFailure(status, `this is ${reason}`),
      );
    }
  });
}
