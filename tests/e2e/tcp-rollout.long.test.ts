// A roll-out of a service that speaks a protocol of its own, by connections: step by step on what a real Prometheus
// says of them, back when the new version answers nothing, and an open connection stays where it is.
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { endpoints, type RolloutView } from "@tulle/config/api";
import { envoyPath } from "../tools/envoy-path.ts";
import { waitFor } from "../tools/processes.ts";
import { Prometheus } from "../tools/prometheus.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { ShopInstance } from "./shop-instance.ts";

/** Answers each message with its version before it; with the file, version 2 ends a connection in its place. */
const program = `
import { existsSync } from "node:fs";
import net from "node:net";
const { PORT, HOST, VERSION } = process.env;
net.createServer((socket) => {
  socket.on("error", () => {});
  socket.on("data", (data) => {
    if (VERSION === "v2" && existsSync("fault")) socket.destroy();
    else socket.write(VERSION + " " + data);
  });
}).listen(Number(PORT), HOST);
process.on("SIGTERM", () => process.exit(0));
`;

const deployment = (name: string, version: string): string =>
  `---
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name}, namespace: shop }
spec:
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata:
      labels: { app: ${name.split("-")[0]}, version: ${version}, pod: ${name} }
      annotations: { local.tulle.io/command.server: '["node", "server.mjs"]' }
    spec:
      containers:
        - name: server
          env: [{ name: VERSION, value: ${version} }]
          ports: [{ name: tcp-line, containerPort: 7007 }]
`.replace("matchLabels: { app: " + name, "matchLabels: { pod: " + name);

const service = `
apiVersion: v1
kind: Service
metadata: { name: line, namespace: shop }
spec: { selector: { app: line }, ports: [{ name: tcp-line, port: 7, targetPort: 7007 }] }
`;

const routed = `---
apiVersion: networking.tulle.io/v1
kind: DestinationRule
metadata: { name: line, namespace: shop }
spec: { host: line, subsets: [{ name: v1, labels: { version: v1 } }, { name: v2, labels: { version: v2 } }] }
---
apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata: { name: line, namespace: shop }
spec: { hosts: [line], tcp: [{ route: [{ destination: { host: line, subset: v1 } }] }] }
`;

/**
 * Bytes that a connection to the canary gave back, as the callers' clusters count them: docs/roll-outs.md has it. Of
 * those that have ended: one that was only just opened has given nothing yet. With fewer than one a second nothing is
 * said.
 */
const answeredBytes = (subset: string): string => {
  const of = (counter: string): string =>
    `sum(rate(envoy_cluster_${counter}{cluster_name="outbound|7|${subset}|line.shop.svc.cluster.local"}[5s]))`;
  const ended = of("upstream_cx_destroy");
  return `${of("upstream_cx_rx_bytes_total")} / ${ended} and ${ended} > 1`;
};

const rollout = (versions: string, address: string, query: string): string => {
  const metric = `{ name: answered, prometheus: { address: "${address}", query: '${query}' }, thresholdRange: { min: 1 }, interval: 1s, count: 2 }`;
  return `
apiVersion: rollouts.tulle.io/v1alpha1
kind: Rollout
metadata: { name: line, namespace: shop }
spec:
  host: line
${versions}
  strategy:
    canary:
      steps: [{ setWeight: 20 }, { analysis: { metrics: [${metric}] } }, { setWeight: 60 }, { analysis: { metrics: [${metric}] } }]
---
apiVersion: v1
kind: ConfigMap
metadata: { name: tulle, namespace: tulle-system }
data: { mesh: 'rolloutPrometheusUrls: ["${address}"]' }
`;
};

/** A tunnel through the caller's sidecar. */
async function openTunnel(sidecar: string): Promise<net.Socket> {
  const socket = net.connect({ host: sidecar, port: 15_007 }).on("error", () => undefined);
  socket.write("CONNECT line:7 HTTP/1.1\r\nHost: line:7\r\n\r\n");
  const head = await nextText(socket);
  assert.match(head, /^HTTP\/1\.1 200 [^]*\r\n\r\n$/);
  return socket;
}

/** Empty where it ends instead. */
async function nextText(socket: net.Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.once("data", (data) => resolve(data.toString())).once("close", () => resolve(""));
  return promise;
}

async function ask(socket: net.Socket): Promise<string> {
  socket.write("ping");
  return nextText(socket);
}

/** One connection after the other by each worker, and what they got. */
class ConnectionLoad implements AsyncDisposable {
  readonly #done: Promise<unknown>;
  #isOver = false;
  isPaused = false;
  v1 = 0;
  v2 = 0;
  /** Connections without an answer. */
  ended = 0;
  readonly failed: string[] = [];

  constructor(sidecar: string) {
    this.#done = Promise.all(Array.from({ length: 4 }, () => this.#run(sidecar)));
  }

  forget(): void {
    this.v1 = this.v2 = this.ended = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #run(sidecar: string): Promise<void> {
    while (!this.#isOver) {
      await pause(25);
      if (this.isPaused) continue;
      try {
        const socket = await openTunnel(sidecar);
        const answer = await ask(socket);
        socket.destroy();
        if (answer === "v1 ping") this.v1 += 1;
        else if (answer === "v2 ping") this.v2 += 1;
        else if (answer === "") this.ended += 1;
        else this.failed.push(answer);
      } catch (error) {
        this.failed.push(String(error));
      }
    }
  }
}

const rows = [
  {
    name: "Tulle's proxy, over a VirtualService",
    args: [],
    manifest: service + routed,
    versions: "  stable: { subset: v1 }\n  canary: { subset: v2 }",
    canary: "v2",
  },
  {
    name: "a stock Envoy, over the Service's own route",
    args: ["--proxy", "envoy"],
    manifest: service,
    versions: "  stable: { labels: { version: v1 } }\n  canary: { labels: { version: v2 } }",
    canary: "line-canary",
  },
] as const;

for (const { name, args, manifest, versions, canary } of rows) {
  test(`a roll-out of connections: ${name}`, async () => {
    await using shop = await ShopInstance.start({
      args,
      without: ["account.yaml", "catalog.yaml", "gateway.yaml", "productpage.yaml", "webapp.yaml"],
      env: { TULLE_ENVOY: await envoyPath() },
      async prepare(folder) {
        await writeFile(path.join(folder, "server.mjs"), program);
        const pods = [deployment("line-v1", "v1"), deployment("line-v2", "v2"), deployment("caller", "v1")];
        await writeFile(path.join(folder, "line.yaml"), manifest + pods.join(""));
      },
    });
    const fault = path.join(shop.folder, "fault");
    const view = (): Promise<RolloutView> => shop.api().call(endpoints.rollout, { namespace: "shop", name: "line" });
    const until = (what: string, isSo: (now: RolloutView) => boolean): Promise<RolloutView> =>
      waitFor(
        async () => {
          const now = await view();
          return isSo(now) && now;
        },
        { what, details: () => shop.up.output().slice(-2000) },
      );
    const config = path.join(temporaryFolder("prometheus-config-"), "prometheus.yml");
    const printed = await shop.mustTulle("x", "prometheus-config");
    await writeFile(config, printed.replace("scrape_interval: 15s", "scrape_interval: 1s"));
    await using prometheus = await Prometheus.start(config);
    const query = answeredBytes(canary);
    const file = path.join(shop.folder, "..", "rollout.yaml");
    await writeFile(file, rollout(versions, prometheus.url, query));
    assert.doesNotMatch(await shop.mustTulle("apply", "-f", file), /TUL0015/);
    const caller = await shop.pod("caller");
    await using load = new ConnectionLoad(caller.address);
    const onlyFrom = async (version: "v1" | "v2"): Promise<void> => {
      await shop.waitForSync();
      load.forget();
      await waitFor(
        () => {
          // An Envoy acknowledges before its workers follow, and connections are on their way.
          if (load.ended + (version === "v1" ? load.v2 : load.v1) > 0) load.forget();
          return load[version] >= 30;
        },
        { what: `answers of ${version} alone`, details: () => `v1 ${load.v1}, v2 ${load.v2}, ended ${load.ended}` },
      );
    };

    await writeFile(fault, "");
    await shop.mustTulle("rollout", "start", "line");
    const aborted = await until("an end", ({ endedAt }) => endedAt !== undefined);
    assert.deepEqual([aborted.phase, aborted.step], ["Aborted", 1], aborted.message);
    assert.match(aborted.message, /answered: 0 \(wanted at least 1\)/);
    await onlyFrom("v1");
    await rm(fault);

    load.isPaused = true;
    await waitFor(async () => (await prometheus.number(query)) === undefined, {
      what: "no connections to the canary any more",
      details: () => prometheus.output(),
    });
    load.isPaused = false;
    const open = await openTunnel(caller.address);
    assert.equal(await ask(open), "v1 ping");
    await shop.mustTulle("rollout", "start", "line");
    const completed = await until("an end", ({ endedAt }) => endedAt !== undefined);
    assert.equal(completed.phase, "Completed", completed.message);
    assert.deepEqual(
      completed.history.slice(-5).map(({ text }) => text.replace(/:.*/, "")),
      ["step 1 is done", "step 2 is done", "step 3 is done", "step 4 is done", "completed"],
    );
    await onlyFrom("v2");
    assert.equal(await ask(open), "v1 ping", "an open connection stays where it is");
    open.destroy();
    assert.deepEqual(load.failed, []);
    assert.match(await readFile(path.join(shop.folder, "line.yaml"), "utf8"), /^(?:(?!weight)[^])*$/);
  });
}
