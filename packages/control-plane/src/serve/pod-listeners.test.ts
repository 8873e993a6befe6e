// Pods of a Service without an address that come and go: sidecars whose connections are captured are sent their
// listeners, and nobody else is sent any.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseResource } from "@tulle/config";
import type { AdsResponse } from "@tulle/xds";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { identityOfWeb, openStream, type ProvenWorld, provenWorld } from "../testing/proven-world.ts";

const name = "database";

async function apply({ running }: ProvenWorld, document: object): Promise<void> {
  const { resource, findings } = parseResource(document);
  assert.ok(resource, JSON.stringify(findings));
  await running.store.apply(resource);
}

function podsAt(addresses: readonly string[], ready = true): object {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    ports: [{ name: "tcp-sql", port: 5432 }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready } })),
  };
}

function databaseListeners(responses: readonly AdsResponse[]): readonly string[] {
  const last = responses.at(-1);
  return last?.type === "LDS" ? [...last.resources.keys()].filter((each) => each.endsWith("_5432")) : [];
}

test("pods that come and go", async (context) => {
  const world = await provenWorld(context);
  await apply(world, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace: "shop" },
    spec: { clusterIP: "None", ports: [{ name: "tcp-sql", port: 5432 }] },
  });
  const identity = await identityOfWeb(world);
  const captured = await openStream(context, world, { identity, type: "LDS", interceptionMode: "REDIRECT" });
  const other = await openStream(context, world, { identity, type: "LDS" });
  for (const { responses } of [captured, other]) await waitFor(() => responses.length > 0, { what: "listeners" });
  const before = other.responses.length;
  for (const addresses of [["10.1.1.2"], ["10.1.1.2", "10.1.1.3"], ["10.1.1.3"], []]) {
    await apply(world, podsAt(addresses));
    const expected = addresses.map((address) => `${address}_5432`);
    const isThere = (): boolean => databaseListeners(captured.responses).join() === expected.join();
    await waitFor(isThere, { what: `listeners of ${addresses.join()}` });
  }
  assert.equal(other.responses.length, before);

  // What a pod's readiness changes are its names and the Service's endpoints.
  await apply(world, podsAt(["10.1.1.4"], false));
  await waitFor(() => databaseListeners(captured.responses).join() === "10.1.1.4_5432", { what: "a listener" });
});
