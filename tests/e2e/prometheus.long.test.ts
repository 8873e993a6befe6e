// A real Prometheus scrapes the shop by the configuration that `tulle x prometheus-config` prints, and every query of
// existing dashboards has an answer.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { catalogByGrpc } from "../../samples/shop/webapp/catalog-by-grpc.ts";
import { boardQueries } from "../../tools/grafana-boards.ts";
import { startProcess, waitFor } from "../tools/processes.ts";
import { Prometheus } from "../tools/prometheus.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { dashboardQueries } from "./dashboard-queries.ts";
import { callThrough, writeEchoService } from "./echo-service.ts";
import { inParallel, ShopInstance } from "./shop-instance.ts";

const blowupScript = path.resolve(import.meta.dirname, "../../samples/shop/blowup");

/** By the gateway, whose sessions are counted as those of a source. */
const echoOutside = `
apiVersion: networking.tulle.io/v1
kind: Gateway
metadata: { name: echo, namespace: shop }
spec:
  selector: { tulle: ingressgateway }
  servers: [{ port: { number: 31400, name: tcp, protocol: TCP }, hosts: ["*"] }]
---
apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata: { name: echo, namespace: shop }
spec:
  hosts: ["*"]
  gateways: [echo]
  tcp: [{ route: [{ destination: { host: echo, port: { number: 7 } } }] }]
`;

async function echoAt(address: string): Promise<void> {
  const socket = net.connect({ host: address, port: 31_400 });
  const answered = once(socket, "data");
  socket.write("ping");
  assert.equal(String((await answered)[0]), "ping");
  socket.destroy();
}

describe("a Prometheus that scrapes the shop", () => {
  let shop: ShopInstance;
  let prometheus: Prometheus;

  before(async () => {
    shop = await ShopInstance.start({
      isWhole: true,
      without: ["client.yaml"],
      prepare: async (folder) => {
        await writeEchoService(folder);
        await writeFile(path.join(folder, "echo-outside.yaml"), echoOutside);
      },
    });
    await shop.applyRule("4-retries");
    const config = path.join(temporaryFolder("prometheus-config-"), "prometheus.yml");
    const printed = await shop.mustTulle("x", "prometheus-config");
    await writeFile(config, printed.replace("scrape_interval: 15s", "scrape_interval: 1s"));
    // A rate has two ends: the first of them is before the traffic.
    prometheus = await Prometheus.start(config);
    await traffic();
  });
  after(async () => {
    await prometheus?.[Symbol.asyncDispose]();
    await shop?.[Symbol.asyncDispose]();
  });

  async function blowup(...args: readonly string[]): Promise<void> {
    const script = await startProcess("sh", [blowupScript, ...args, "--dir", shop.folder], { name: "blowup" });
    assert.equal((await script.exited).code, 0, script.output());
  }

  /** Of HTTP, gRPC and TCP; with faults that retries make good, and some that they do not. */
  async function traffic(): Promise<void> {
    const { address } = await shop.pod("webapp");
    const catalog = catalogByGrpc("catalog.shop:9090", `http://${address}:15007`);
    const round = async (): Promise<void> => {
      await inParallel(40, 8, async () => void (await shop.get("/productpage?id=1")));
      await inParallel(20, 4, async () => void (await catalog.read("1", {}, 30_000)));
      await callThrough(address, "echo.shop:7", "ping");
      await echoAt((await shop.pod("tulle-ingressgateway")).address);
    };
    await round();
    await blowup("on", "50");
    // By both of its ends, and by the last of the kinds.
    const seen = async (): Promise<boolean> =>
      (await prometheus.query("sum by (reporter) (istio_tcp_sent_bytes_total)")).length > 1;
    await waitFor(seen, { what: "a scrape of the first round", details: () => prometheus.output() });
    await round();
    await blowup("off");
    catalog.close();
  }

  test("every target answers", async () => {
    const pods = await shop.pods();
    const all = await waitFor(
      async () => {
        const targets = await prometheus.targets();
        return targets.length === pods.length + 1 && targets.every(({ health }) => health !== "unknown") && targets;
      },
      { what: "a target for each pod and the control plane" },
    );
    assert.deepEqual(
      all.filter(({ health }) => health !== "up"),
      [],
    );
  });

  for (const query of new Set([...dashboardQueries, ...boardQueries])) {
    test(query, async () => {
      const values = await waitFor(
        async () => {
          const found = await prometheus.query(query);
          return found.length > 0 && found;
        },
        { what: "an answer", timeoutMs: 10_000 },
      );
      assert.ok(values.length > 0);
    });
  }
});
