// The routing rules of the sample, with counted answers. Every count is compared with what the proxies counted, so that
// a request that went past a sidecar fails the test.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { startProcess, waitFor } from "../tools/processes.ts";
import { type MeshVariant, untilTaken } from "./mesh-variant.ts";
import { countRequests, type RequestsOnTheirWay } from "./requests-on-their-way.ts";
import { useRunningShop } from "./running-shop.ts";
import { inParallel, type ShopInstance } from "./shop-instance.ts";

const blowupScript = path.resolve(import.meta.dirname, "../../samples/shop/blowup");

type Answers = Readonly<Record<string, number>>;

interface Tally {
  /** Answers by what gave them: v1, v2, or their status when that is not 200. */
  readonly answers: Answers;
  /** What the proxies counted meanwhile. */
  readonly counted: RequestsOnTheirWay;
}

/**
 * What is left to chance passes within five standard deviations: less often than once in a million runs it does not.
 */
function assertNear(seen: number, expected: number, tolerance: number, what: string): void {
  assert.ok(Math.abs(seen - expected) <= tolerance, `${seen} ${what}, expected ${expected} ± ${tolerance.toFixed(0)}`);
}

/** With `calls` where the answers are left to chance: what many tell apart better is asked in the long suite. */
export function routingTests(variant: MeshVariant, calls: number): void {
  let shop: ShopInstance;
  useRunningShop(variant, (running) => (shop = running));

  async function tally(count: number, headers: (index: number) => Record<string, string> = () => ({})): Promise<Tally> {
    const running = await shop.processes();
    const counted = await countRequests(shop);
    const answers: Record<string, number> = {};
    // Retries wait: many at a time, so that they wait together.
    await inParallel(count, 64, async (index) => {
      const { status, body } = await shop.get("/api/catalog/items/1", headers(index));
      const from = status !== 200 ? String(status) : body.includes('"imageUrl"') ? "v2" : "v1";
      answers[from] = (answers[from] ?? 0) + 1;
    });
    const result = { answers, counted: await counted() };
    // A proxy that was started again has lost what it counted.
    assert.deepEqual(await shop.processes(), running, shop.up.output());
    return result;
  }

  /** That all `count` requests took the whole way, and each version answered as often as its own proxy says. */
  function assertWholeWay({ answers, counted }: Tally, count: number): void {
    const { v1 = 0, v2 = 0 } = answers;
    assert.deepEqual(counted, {
      fromGateway: count,
      toWebapp: count,
      fromWebapp: count,
      retried: 0,
      toCatalog: { v1, v2 },
    });
  }

  const answersBecome = (expected: Answers, headers: Record<string, string> = {}): Promise<void> =>
    untilTaken(variant, async () => isDeepStrictEqual((await tally(20, () => headers)).answers, expected));

  async function blowup(...args: readonly string[]): Promise<string> {
    const script = await startProcess("sh", [blowupScript, ...args, "--dir", shop.folder], { name: "blowup" });
    const { code } = await script.exited;
    assert.equal(code, 0, script.output());
    return script.output();
  }

  test("rule 1: without a route that names a subset, requests are spread over both versions", async () => {
    for (const prepare of [() => Promise.resolve(), () => shop.applyRule("1-spread-over-versions")]) {
      await prepare();
      await untilTaken(variant, async () => Object.keys((await tally(20)).answers).length === 2);
      const result = await tally(calls);
      assertWholeWay(result, calls);
      assert.deepEqual(Object.keys(result.answers).sort(), ["v1", "v2"]);
      // A tenth for the balancer, which prefers who has fewer calls, and four standard deviations of a coin's throw.
      assertNear(result.answers["v1"]!, calls / 2, calls / 10 + 2 * Math.sqrt(calls), "from v1");
    }
  });

  test("rule 2: everything goes to version 1", async () => {
    await shop.applyRule("2-everything-to-v1");
    await answersBecome({ v1: 20 });
    const result = await tally(calls / 2);
    assertWholeWay(result, calls / 2);
    assert.deepEqual(result.answers, { v1: calls / 2 });
  });

  test("rule 3: a header reaches version 2, all else version 1", async () => {
    await shop.applyRule("3-dark-launch-v2");
    await answersBecome({ v2: 20 }, { "x-dark-launch": "v2" });
    const dark = await tally(calls / 4, () => ({ "x-dark-launch": "v2" }));
    assertWholeWay(dark, calls / 4);
    assert.deepEqual(dark.answers, { v2: calls / 4 });
    const others = ["v1", "v20", "V2", ""];
    const rest = await tally(calls / 4, (index) => (index % 5 === 4 ? {} : { "x-dark-launch": others[index % 5]! }));
    assertWholeWay(rest, calls / 4);
    assert.deepEqual(rest.answers, { v1: calls / 4 });
  });

  test("rule 4: retries lift the share of successes from a half to 1 - 0.5⁴", async () => {
    await shop.applyRule("1-spread-over-versions");
    await untilTaken(variant, async () => Object.keys((await tally(20)).answers).length === 2);
    await blowup("on", "50");
    const without = await tally(calls);
    const successes = (each: Tally): number => (each.answers["v1"] ?? 0) + (each.answers["v2"] ?? 0);
    const tries = ({ counted: { toCatalog } }: Tally): number => toCatalog.v1 + toCatalog.v2;
    assertNear(successes(without), calls / 2, 5 * Math.sqrt(calls * 0.5 * 0.5), "successes without retries");
    assert.equal(tries(without), calls);

    await shop.applyRule("4-retries");
    await untilTaken(variant, async () => (await tally(20)).counted.retried > 0);
    const many = 2.5 * calls;
    const retried = await tally(many);
    const share = 1 - 0.5 ** 4;
    assertNear(successes(retried), many * share, 5 * Math.sqrt(many * share * (1 - share)), "successes with retries");
    assert.equal(retried.counted.fromWebapp, many);
    assert.equal(retried.counted.retried, tries(retried) - many);
    // 1 + 0.5 + 0.25 + 0.125 tries for each request, whose variance is 1.11.
    assertNear(tries(retried), many * 1.875, 5 * Math.sqrt(many * 1.11), "tries");
    // Where every try fails, nothing is left to chance: three retries, and neither two nor four.
    await blowup("on");
    const failed = await tally(20);
    assert.deepEqual(failed.answers, { 500: 20 });
    assert.equal(tries(failed), 20 * 4);
    await blowup("off");
    await shop.mustTulle("delete", "virtualservice", "catalog", "-n", "shop");
    await shop.waitForSync();
    await untilTaken(variant, async () => Object.keys((await tally(20)).answers).length === 2);
  });

  test("rule 5: the catalog fails the chosen share, all unless chosen, and stops", async () => {
    assert.match(await blowup("on", "30"), /30 % of requests answer 500/);
    const partly = await tally(calls);
    assertNear(partly.answers["500"]!, calls * 0.3, 5 * Math.sqrt(calls * 0.3 * 0.7), "failed");
    await blowup("on");
    assert.deepEqual((await tally(20)).answers, { 500: 20 });
    await blowup("on", "100", "--version", "v2");
    await blowup("off", "--version", "v1");
    const half = await tally(calls / 2);
    assert.equal((half.answers["500"] ?? 0) + (half.answers["v1"] ?? 0), calls / 2);
    assert.ok(half.answers["500"]! > 0 && half.answers["v1"]! > 0);
    await blowup("off");
    assert.equal((await tally(20)).answers["500"], undefined);
  });

  test("rule 6: the gateway sees the client's own address", async () => {
    await shop.mustTulle("apply", "-f", path.join(shop.folder, "rules", "6-keep-the-client-address.yaml"));
    await shop.waitForSync();
    assert.equal((await shop.get("/api/catalog", { "user-agent": "rule-6" })).status, 200);
    const line = await waitFor(
      async () => {
        const log = await shop.mustTulle("logs", "tulle-ingressgateway", "--tail", "20");
        return log.split("\n").find((each) => each.includes('"rule-6"'));
      },
      { what: "the request in the gateway's log" },
    );
    // Behind it the server name, of which plain text has none, the route, and the revision of its routes.
    assert.match(line, / 127\.0\.0\.1:\d+ - \S+ [0-9a-f]+$/);
  });
}
