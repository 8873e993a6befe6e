// The routing rules of the sample on the catalog's gRPC port, beside both proxies. Every count is compared with what
// the proxies counted, so that a call that went past a sidecar fails the test.
import assert from "node:assert/strict";
import path from "node:path";
import { after, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { type CatalogByGrpc, catalogByGrpc } from "../../samples/shop/webapp/catalog-by-grpc.ts";
import { startProcess, waitFor } from "../tools/processes.ts";
import type { MeshVariant } from "./mesh-variant.ts";
import { statOf } from "./requests-on-their-way.ts";
import { useRunningShop } from "./running-shop.ts";
import { inParallel, type ShopInstance } from "./shop-instance.ts";

const blowupScript = path.resolve(import.meta.dirname, "../../samples/shop/blowup");

type Answers = Readonly<Record<string, number>>;

interface Tally {
  /** By what gave them: v1, v2, or the HTTP status that the gRPC status stands for. */
  readonly answers: Answers;
  /** Requests of the web front end's proxy that were tried again. */
  readonly retried: number;
  /** What reached the catalog of each version: tries, not calls. */
  readonly reached: Answers;
}

/** The tests of a suite. */
export function grpcRuleTests(variant: MeshVariant): void {
  let shop: ShopInstance;
  let catalog: CatalogByGrpc | undefined;
  let way: { readonly proxy: string; close(): void } | undefined;
  useRunningShop(variant, async (running) => {
    shop = running;
    way = await shop.reach.proxyOf(await shop.pod("webapp"), { host: "catalog.shop", port: 9090 });
    catalog = catalogByGrpc("catalog.shop:9090", way.proxy);
  });
  after(() => {
    catalog?.close();
    way?.close();
  });

  async function tally(count: number, headers: Record<string, string> = {}): Promise<Tally> {
    const earlier = await countsOf(shop);
    const answers: Record<string, number> = {};
    await inParallel(count, 32, async () => {
      const { status, body } = await catalog!.read("1", headers, 30_000);
      const from = status !== 200 ? String(status) : "imageUrl" in (body as object) ? "v2" : "v1";
      answers[from] = (answers[from] ?? 0) + 1;
    });
    const later = await countsOf(shop);
    const since = (of: (counts: Counts) => number): number => of(later) - of(earlier);
    return {
      answers,
      retried: since(({ retried }) => retried),
      reached: { v1: since(({ v1 }) => v1), v2: since(({ v2 }) => v2) },
    };
  }

  /** An Envoy may have acknowledged routes that its worker is yet to hear of. */
  const becomes = (expected: Answers, headers: Record<string, string> = {}): Promise<true> =>
    waitFor(
      async () => {
        const { answers, reached } = await tally(60, headers);
        assert.deepEqual(reached, { v1: 0, v2: 0, ...answers });
        return isDeepStrictEqual(answers, expected);
      },
      { what: JSON.stringify(expected) },
    );

  async function blowup(...args: readonly string[]): Promise<void> {
    const script = await startProcess("sh", [blowupScript, ...args, "--dir", shop.folder], { name: "blowup" });
    assert.equal((await script.exited).code, 0, script.output());
  }

  test("rule 1: calls are spread over both versions, each of which counts its own", async () => {
    const { answers, reached } = await tally(200);
    assert.deepEqual(Object.keys(answers).sort(), ["v1", "v2"]);
    assert.deepEqual(reached, answers);
    assert.ok(answers["v1"]! >= 50 && answers["v1"]! <= 150, `${answers["v1"]} of 200 from v1`);
  });

  test("rule 2: everything goes to version 1", async () => {
    await shop.applyRule("2-everything-to-v1");
    await becomes({ v1: 60 });
  });

  test("rule 3: a header reaches version 2, all else version 1", async () => {
    await shop.applyRule("3-dark-launch-v2");
    await becomes({ v2: 60 }, { "x-dark-launch": "v2" });
    await becomes({ v1: 60 }, { "x-dark-launch": "v20" });
  });

  test("rules 4 and 5: the catalog fails the chosen share, three retries lift it", async () => {
    await shop.applyRule("1-spread-over-versions");
    await blowup("on", "50");
    await waitFor(async () => (await tally(40)).retried === 0, { what: "nothing to be tried again" });
    const without = await tally(200);
    // Each within five standard deviations.
    assert.ok(Math.abs(without.answers["500"]! - 200 * 0.5) <= 35, JSON.stringify(without));
    assert.equal(without.reached["v1"]! + without.reached["v2"]!, 200);
    await shop.applyRule("4-retries");
    await waitFor(async () => (await tally(60)).retried > 0, { what: "calls to be tried again" });
    const lifted = await tally(300);
    assert.ok(Math.abs((lifted.answers["500"] ?? 0) - 300 * 0.5 ** 4) <= 21, JSON.stringify(lifted));
    assert.equal(lifted.reached["v1"]! + lifted.reached["v2"]!, 300 + lifted.retried);
    await blowup("on");
    const failed = await tally(20);
    assert.deepEqual([failed.answers, failed.retried], [{ 500: 20 }, 60]);
    await blowup("off");
    assert.deepEqual((await tally(20)).retried, 0);
  });
}

const inboundRequests = String.raw`^cluster\.inbound\|9090\|\|\.upstream_rq_total$`;

interface Counts {
  readonly retried: number;
  readonly v1: number;
  readonly v2: number;
}

async function countsOf(shop: ShopInstance): Promise<Counts> {
  const told = await shop.requestCounts();
  const [retried, v1, v2] = await Promise.all([
    statOf(shop, "webapp", String.raw`^cluster\.outbound\|9090\|.*\|catalog[^|]*\.upstream_rq_retry$`),
    statOf(shop, "catalog-v1", inboundRequests),
    statOf(shop, "catalog-v2", inboundRequests),
  ]);
  // Of Istio's metrics, which a stock Envoy has not.
  if (told.length > 0) {
    const ofVersion = (version: string): number =>
      told
        .filter(({ labels }) => labels["reporter"] === "destination" && labels["request_protocol"] === "grpc")
        .filter(({ labels }) => labels["destination_version"] === version)
        .reduce((sum, { value }) => sum + value, 0);
    assert.deepEqual([ofVersion("v1"), ofVersion("v2")], [v1, v2]);
  }
  return { retried, v1, v2 };
}
