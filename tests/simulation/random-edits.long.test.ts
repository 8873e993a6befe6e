// An hour's worth of edits, one a second, as fast as they go: whatever was written, refused and deleted on the way, the
// proxies end in exactly the state that a fresh start on the final configuration gives.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { ApiClient, type MeshResource } from "@tulle/config";
import { endpoints } from "@tulle/config/api";
import { runManifestControlPlane, type RunningManifestControlPlane } from "@tulle/control-plane";
import { type RunningProxy, runProxy } from "@tulle/proxy";
import { Logging } from "@tulle/telemetry";
import { BootstrapSchema } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { messageFromJson } from "@tulle/xds/json";
import { waitFor } from "../tools/processes.ts";
import { randomEdit } from "./schema-arbitrary.ts";

const editCount = 3600;
/** Others are tried by `TULLE_TEST_SEED`. */
const defaultSeed = 20_261_120;
const silent = new Logging({ level: "off" });

/** Two proxies, each with loopback addresses of its own, whose ports may be opened at will. */
const nodes = {
  sidecar: {
    id: "sidecar~127.77.1.1~catalog-1.shop~shop.svc.cluster.local",
    labels: { app: "catalog", version: "v1" },
  },
  router: { id: "router~127.77.1.2~gateway-1.tulle-system~tulle-system.svc.cluster.local", labels: { app: "web" } },
} as const;
type NodeName = keyof typeof nodes;

async function startControlPlane(stateDirectory: string): Promise<RunningManifestControlPlane> {
  return runManifestControlPlane({
    stateDirectory,
    xdsAddress: { host: "127.0.0.1", port: 0 },
    httpAddress: { host: "127.0.0.1", port: 0 },
    debounce: { quietMs: 1, maxMs: 20 },
    logging: silent,
  });
}

async function startProxy({ xdsAddress }: RunningManifestControlPlane, name: NodeName): Promise<RunningProxy> {
  const { id, labels } = nodes[name];
  const ads = { ads: {}, resource_api_version: "V3", initial_fetch_timeout: "0s" };
  const result = messageFromJson(BootstrapSchema, {
    node: { id, cluster: "test", metadata: { LABELS: labels, INTERCEPTION_MODE: "NONE", APP_ADDRESS: "127.77.1.3" } },
    admin: { address: { socket_address: { address: "127.0.0.1", port_value: 0 } } },
    dynamic_resources: {
      ads_config: {
        api_type: "GRPC",
        transport_api_version: "V3",
        grpc_services: [{ google_grpc: { target_uri: `127.0.0.1:${xdsAddress!.port}`, stat_prefix: "xds" } }],
      },
      cds_config: ads,
      lds_config: ads,
    },
  });
  assert.ok(result.ok);
  return runProxy({ bootstrap: result.message, logging: silent, env: {} });
}

/**
 * Of a dump: what says when and how it came, and the way to the control plane, whose port is another after each start.
 */
const unlike: readonly string[] = ["version_info", "last_updated", "static_clusters", "static_endpoint_configs"];

/** What the proxy runs by, without what is unlike after each start. */
async function stateOf(proxy: RunningProxy): Promise<unknown> {
  const { ip, port } = proxy.adminAddress!;
  const dump = (await (await fetch(`http://${ip}:${port}/config_dump?include_eds`)).json()) as {
    readonly configs: readonly Record<string, unknown>[];
  };
  const content = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(content);
    if (typeof value !== "object" || value === null) return value;
    const kept = Object.entries(value).filter(([key]) => !unlike.includes(key));
    return Object.fromEntries(kept.map(([key, member]) => [key, content(member)]));
  };
  const byText = (value: unknown): unknown =>
    Array.isArray(value) ? value.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : value;
  return dump.configs
    .filter((config) => !String(config["@type"]).includes("Bootstrap"))
    .map((config) => content(config) as Record<string, unknown>)
    .map((config) => Object.fromEntries(Object.entries(config).map(([key, value]) => [key, byText(value)])));
}

async function settled(controlPlane: RunningManifestControlPlane, proxyCount: number): Promise<boolean> {
  const rows = await clientOf(controlPlane).call(endpoints.syncStatus, {});
  const states = rows.flatMap(({ types }) => Object.values(types));
  assert.deepEqual(
    states.flatMap(({ errors }) => errors),
    [],
    "a proxy refused what it was sent",
  );
  return rows.length === proxyCount && states.every(({ state }) => state !== "STALE");
}

function clientOf({ socketPath }: RunningManifestControlPlane): ApiClient {
  return new ApiClient({ endpoint: { socketPath } });
}

test("many edits end where a fresh start on their outcome does", async (context) => {
  const stateDirectory = await mkdtemp(path.join(tmpdir(), "tulle-edits-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(stateDirectory, { recursive: true, force: true }));
  const seed = Number(process.env["TULLE_TEST_SEED"] ?? defaultSeed);
  context.diagnostic(`seed ${seed}`);

  const first = await startControlPlane(stateDirectory);
  stack.defer(() => first.close());
  const api = clientOf(first);
  const edited = await Promise.all([startProxy(first, "sidecar"), startProxy(first, "router")]);
  for (const proxy of edited) stack.defer(() => proxy.close());
  const counts = { applied: 0, refused: 0, deleted: 0 };
  for (const { type, resource } of fc.sample(randomEdit, { numRuns: editCount, seed })) {
    if (type === "delete") {
      await api.delete({ kind: resource.kind, ...resource.metadata });
      counts.deleted += 1;
      continue;
    }
    const answer = await api.apply(resource as unknown as MeshResource);
    counts[answer.outcome === "rejected" ? "refused" : "applied"] += 1;
  }
  context.diagnostic(JSON.stringify(counts));
  assert.ok(counts.applied > editCount / 5, "most edits were refused");
  await waitFor(() => settled(first, edited.length), { what: "every proxy to acknowledge", timeoutMs: 30_000 });
  const states = await Promise.all(edited.map(stateOf));
  for (const proxy of edited) await proxy.close();
  await first.close();

  const second = await startControlPlane(stateDirectory);
  stack.defer(() => second.close());
  const fresh = await Promise.all([startProxy(second, "sidecar"), startProxy(second, "router")]);
  for (const proxy of fresh) stack.defer(() => proxy.close());
  await waitFor(() => settled(second, fresh.length), { what: "every fresh proxy to acknowledge", timeoutMs: 30_000 });
  for (const [index, proxy] of fresh.entries()) {
    await waitFor(async () => JSON.stringify(await stateOf(proxy)) === JSON.stringify(states[index]), {
      what: "the fresh proxy to run by the same",
      timeoutMs: 10_000,
    }).catch(() => undefined);
    assert.deepEqual(await stateOf(proxy), states[index]);
  }
});
