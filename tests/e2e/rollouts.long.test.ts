// Roll-outs while something ends: the control plane at each step, a client's proxy, the canary's own, the traffic. What
// every request got is counted.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { RolloutView } from "@tulle/config/api";
import { envoyPath } from "../tools/envoy-path.ts";
import { waitFor } from "../tools/processes.ts";
import { Prometheus } from "../tools/prometheus.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { RolloutStage } from "./rollout-stage.ts";
import type { ShopOptions } from "./shop-instance.ts";

/** Two weights with an analysis behind each. */
const rollout = (metric: string): string => `
apiVersion: rollouts.tulle.io/v1alpha1
kind: Rollout
metadata: { name: catalog, namespace: shop }
spec:
  host: catalog
  stable: { labels: { version: v1 } }
  canary: { labels: { version: v2 } }
  strategy:
    canary:
      steps:
        - setHeaderRoute: { match: { name: x-preview, exact: "yes" } }
        - setWeight: 20
        - analysis: { metrics: [${metric}] }
        - setHeaderRoute: {}
        - setWeight: 50
        - analysis: { metrics: [${metric}] }
        - setWeight: 80
        - pause: { duration: 2s }
`;
const strict =
  "{ name: success-rate, successRate: {}, thresholdRange: { min: 95 }, interval: 1s, count: 3, minRequests: 10 }";
/** A proxy that is killed fails some requests, which say nothing of the version. */
const lenient = strict.replace("min: 95", "min: 1");

describe("a roll-out goes on", () => {
  let stage: RolloutStage;
  before(async () => {
    stage = await RolloutStage.start();
  });
  after(() => stage[Symbol.asyncDispose]());
  const nothingFailed = (): void => assert.equal(stage.load.failed.length, 0, stage.load.failed.slice(0, 3).join("\n"));

  for (const isFaulty of [false, true]) {
    test(`with a control plane that is killed at each step, ${isFaulty ? "and undoes itself" : "to its end"}`, async () => {
      await stage.isWhole();
      await stage.fault(isFaulty);
      await stage.begin(rollout(strict));
      const stepsSeen = new Set<number>();
      let view = await stage.view();
      while (view.endedAt === undefined) {
        const { step } = view;
        if (!stepsSeen.has(step)) {
          stepsSeen.add(step);
          await stage.kill("control-plane");
          const again = await stage.until("the control plane", () => true);
          assert.ok(again.step >= step, `${again.step} after ${step}`);
        }
        view = await stage.until("the next step", (now) => now.step !== step || now.endedAt !== undefined);
      }
      assert.equal(view.phase, isFaulty ? "Aborted" : "Completed", view.message);
      // Those where it waits for evidence; the others are soon over.
      assert.deepEqual(
        [...stepsSeen].filter((step) => step < 6),
        isFaulty ? [2] : [2, 5],
      );
      await stage.kill("control-plane");
      // What went back was not on disk yet when it did: then it goes back once more.
      const ended = await stage.until("its end", ({ endedAt }) => endedAt !== undefined);
      assert.deepEqual([ended.phase, ended.weight, ended.step], [view.phase, view.weight, view.step]);
      await stage.onlyFrom(isFaulty ? "v1" : "v2");
      nothingFailed();
      await stage.fault(false);
    });
  }

  test("when there are requests again", async () => {
    await stage.isWhole();
    await stage.begin(rollout(strict));
    await stage.until("half of the requests", ({ weight }) => weight === 50);
    stage.load.isPaused = true;
    const waiting = await stage.until("too little", ({ message }) =>
      /\d of 10 requests to the canary so far/.test(message),
    );
    assert.deepEqual([waiting.phase, waiting.weight], ["Progressing", 50]);
    stage.load.isPaused = false;
    await stage.until("the end", ({ phase }) => phase === "Completed");
    nothingFailed();
  });

  for (const { whose, pod } of [
    { whose: "the canary's", pod: "catalog-v2" },
    { whose: "a client's", pod: "webapp" },
  ]) {
    test(`without ${whose} proxy until that is back`, async () => {
      await stage.isWhole();
      await stage.begin(rollout(lenient));
      await stage.until("half of the requests", ({ weight }) => weight === 50);
      await stage.killProxyOf(pod);
      await stage.until("the end", ({ phase }) => phase === "Completed");
      await stage.isWhole();
      const failed = stage.load.failed.length;
      // On their way to the killed proxy, or sent there before its pod was known to be gone: nobody else to ask.
      assert.ok(
        stage.load.failed.every((each) => /^50[23] /.test(each)),
        stage.load.failed.slice(0, 3).join("\n"),
      );
      await stage.onlyFrom("v2");
      assert.equal(stage.load.failed.length, failed, "none once it is back");
    });
  }
});

const quick =
  "{ name: quick, latency: { percentile: 50 }, thresholdRange: { max: 10000 }, interval: 1s, minRequests: 10 }";
const beside = (file: string): ShopOptions => ({
  prepare: async (folder) => {
    const manifest = path.join(folder, file);
    const text = await readFile(manifest, "utf8");
    const annotated = text.replaceAll("annotations:\n", "annotations:\n        sidecar.tulle.io/proxy: envoy\n");
    assert.notEqual(annotated, text);
    await writeFile(manifest, annotated);
  },
});

const everywhere: ShopOptions = { args: ["--proxy", "envoy"] };

for (const [name, options, seenBy] of [
  ["beside the client: its own statistics count", beside("webapp.yaml"), "clients' clusters"],
  ["beside the catalog: clients count", beside("catalog.yaml"), "clients"],
  ["everywhere: its own statistics count", everywhere, "clients' clusters"],
] as const) {
  test(`a stock Envoy ${name}`, async () => {
    await using stage = await RolloutStage.start({ ...options, env: { TULLE_ENVOY: await envoyPath() } });
    await stage.fault(true);
    await stage.begin(rollout(strict));
    const aborted = await stage.until("an end", ({ endedAt }) => endedAt !== undefined);
    assert.equal(aborted.phase, "Aborted");
    assert.ok(aborted.message.includes(`seen by ${seenBy};`), aborted.message);
    await stage.onlyFrom("v1");
    await stage.fault(false);
    await stage.begin(rollout(`${strict}, ${quick}`));
    await stage.until("the end", ({ phase }) => phase === "Completed");
    await stage.onlyFrom("v2");
    assert.equal(stage.load.failed.length, 0, stage.load.failed.slice(0, 3).join("\n"));
    if (options !== everywhere) return;
    // And while something ends.
    await stage.begin(rollout(lenient));
    await stage.until("a fifth of the requests", ({ weight }) => weight === 20);
    await stage.kill("control-plane");
    await stage.until("half of the requests", ({ weight }) => weight === 50);
    await stage.killProxyOf("webapp");
    stage.load.isPaused = true;
    const waiting = await stage.until("too little", ({ message }) => /requests to the canary so far/.test(message));
    assert.deepEqual([waiting.phase, waiting.weight], ["Progressing", 50]);
    stage.load.isPaused = false;
    await stage.until("the end", ({ phase }) => phase === "Completed");
    await stage.onlyFrom("v2");
    assert.ok(
      stage.load.failed.every((each) => /^50[23] /.test(each)),
      stage.load.failed.slice(0, 3).join("\n"),
    );
  });
}

const toCanary = (labels: string): string =>
  `sum(rate(istio_requests_total{reporter="source",destination_workload="catalog-v2"${labels}}[10s]))`;
const goodShare = `${toCanary(',response_code!~"5.."')} / ${toCanary("")} or 0 * ${toCanary("")} / ${toCanary("")}`;

const askedFor = (address: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: { name: tulle, namespace: tulle-system }
data: { mesh: 'rolloutPrometheusUrls: ["${address}"]' }
`;
const blueGreen = (address: string): string => `
apiVersion: rollouts.tulle.io/v1alpha1
kind: Rollout
metadata: { name: catalog, namespace: shop }
spec:
  host: catalog
  stable: { labels: { version: v1 } }
  canary: { labels: { version: v2 } }
  strategy:
    blueGreen:
      previewHeader: { name: x-dark-launch, exact: "yes" }
      prePromotionAnalysis:
        metrics:
          - name: good-share
            prometheus:
              address: ${address}
              query: |-
                ${goodShare}
            thresholdRange: { min: 0.99 }
            interval: 1s
            count: 2
      postPromotionAnalysis: { metrics: [${strict}] }
      keepOldFor: 1h
`;

test("a preview that a real Prometheus judges, the switch and the way back", async () => {
  await using stage = await RolloutStage.start();
  const { shop, load } = stage;
  const config = path.join(temporaryFolder("prometheus-config-"), "prometheus.yml");
  const printed = await shop.mustTulle("x", "prometheus-config");
  await writeFile(config, printed.replace("scrape_interval: 15s", "scrape_interval: 1s"));
  await using prometheus = await Prometheus.start(config);
  const meshConfig = path.join(shop.folder, "..", "mesh-config.yaml");
  await writeFile(meshConfig, askedFor(prometheus.url));
  await shop.mustTulle("apply", "-f", meshConfig);

  const begin = async (isFaulty: boolean): Promise<void> => {
    load.isPaused = true;
    // What came before counts no more.
    await waitFor(async () => Number.isNaN((await prometheus.number(goodShare)) ?? Number.NaN), {
      what: "no requests to the canary",
      details: () => prometheus.output(),
    });
    await stage.fault(isFaulty);
    await stage.begin(blueGreen(prometheus.url));
    await stage.until("the question", ({ message }) => message.includes("the query gives"));
    await stage.isWhole();
    load.isPaused = false;
    load.forget();
  };
  const preview = () => shop.get("/api/catalog/items/1", { "x-dark-launch": "yes" });
  /** Meanwhile somebody looks at the preview. */
  const previewUntil = (what: string, isSo: (view: RolloutView) => boolean): Promise<RolloutView> =>
    waitFor(
      async () => {
        await preview();
        const view = await stage.view();
        return isSo(view) && view;
      },
      { what, intervalMs: 50, details: () => prometheus.output() },
    );

  await begin(true);
  const aborted = await previewUntil("an end", ({ endedAt }) => endedAt !== undefined);
  assert.equal(aborted.phase, "Aborted", aborted.message);
  assert.match(aborted.message, /good-share.*wanted at least 0\.99/);
  assert.deepEqual([load.v2, load.byFault], [0, 0], "nobody else saw it");
  await stage.onlyFrom("v1");

  await begin(false);
  const shown = await previewUntil("a good preview", ({ message }) => message.includes("until it is promoted"));
  assert.deepEqual([shown.phase, shown.weight], ["Paused", 0]);
  assert.match((await preview()).body, /"imageUrl"/);
  assert.deepEqual([load.v2, load.byFault], [0, 0], "nobody else saw it");
  await stage.act("promote");
  await stage.until("the old version to be kept", ({ message }) => message.startsWith("pauses for"));
  await stage.onlyFrom("v2");
  await stage.act("abort");
  await stage.until("the way back", ({ phase }) => phase === "Aborted");
  await stage.onlyFrom("v1");
  assert.equal(load.failed.length, 0, load.failed.slice(0, 3).join("\n"));
});
