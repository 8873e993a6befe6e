// What a pass does when not everything that is wanted can be had.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import type { ApiClient, Deployment, MeshResource, ResourceWatchOptions } from "@tulle/config";
import type { AddressBlock } from "../network/address-block.ts";
import { LoopbackNetwork } from "../network/loopback-network.ts";
import { openStateDirectory } from "../state-directory.ts";
import type { SupervisorEvent } from "../supervisor-event.ts";
import { Reconciler } from "./reconciler.ts";

/** A control plane that holds `deployment` and takes whatever is written. */
function apiWith(deployment: Deployment): ApiClient {
  const watch = (_kinds: unknown, _options: ResourceWatchOptions): unknown => ({
    ready: Promise.resolve(),
    list: (kind: string) => (kind === "Deployment" ? [deployment] : []),
    get: () => undefined,
    close: () => undefined,
  });
  const api = {
    list: () => Promise.resolve({ resourceVersion: 1, items: [] }),
    watch,
    apply: (resource: MeshResource) => Promise.resolve({ outcome: "created", resource, findings: [] }),
    delete: () => Promise.resolve(undefined),
  };
  return api as unknown as ApiClient;
}

function blockOf(addresses: number): AddressBlock {
  let free = addresses;
  return {
    index: 0,
    controlPlaneAddress: "127.0.0.1",
    range: "127.16.0.0/22",
    get free() {
      return free;
    },
    allocate: () => {
      if (free === 0) throw new Error("no address left");
      free -= 1;
      return `127.16.0.${free + 2}`;
    },
    release: () => void (free += 1),
    close: () => undefined,
  };
}

test("replicas without an address are told of, and the others run", async (context) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-reconciler-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  const state = openStateDirectory(folder);
  context.after(() => state.unlock());
  // Without a local command the pods are blocked, and no process is started for them.
  const deployment: Deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "many", namespace: "shop" },
    spec: {
      replicas: 5,
      selector: { matchLabels: { app: "many" } },
      template: { metadata: { labels: { app: "many" } }, spec: { containers: [{ name: "app" }] } },
    },
  };
  const events: SupervisorEvent[] = [];
  const reconciler = new Reconciler({
    api: apiWith(deployment),
    state,
    network: new LoopbackNetwork(blockOf(3)),
    proxy: "tulle",
    hasEnvoy: false,
    publish: [],
    podSettings: {
      tulleCommand: ["false"],
      env: {},
      nodePath: process.execPath,
      tulleCompileCache: folder,
      appCompileCache: folder,
      xdsAddress: "127.0.0.1:1",
      addressRange: "127.16.4.0/22",
      rootsFile: "/nowhere/root-cert.pem",
      tokens: { begin: () => Promise.resolve(), end: () => Promise.resolve() },
      clusterId: "local",
      restart: "never",
      podStateFolder: (name) => state.podFolder(name),
      commandFolder: folder,
      logsFolder: state.logsFolder,
    },
    onEvent: (event) => void events.push(event),
  });
  await reconciler.connect();
  assert.equal(reconciler.open(), undefined);
  context.after(() => reconciler.destroy());
  assert.equal(reconciler.pods().length, 3);
  assert.equal(reconciler.isConverged(), true);
  const told = events.filter((event) => event.type === "problem").map(({ subject, problem }) => [subject, problem]);
  assert.match(JSON.stringify(told), /"Deployment shop\/many",.*not all of its 5 replicas can run here/);
});
