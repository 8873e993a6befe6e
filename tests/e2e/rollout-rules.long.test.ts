// What leads a roll-out, with real proxies: each kind of step with a control plane that is killed at it, freezes,
// comparison with the stable version, and latency.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { RolloutStage } from "./rollout-stage.ts";

const rollout = (steps: string, more = ""): string => `
apiVersion: rollouts.tulle.io/v1alpha1
kind: Rollout
metadata: { name: catalog, namespace: shop }
spec:
  host: catalog
  stable: { subset: version-v1 }
  canary: { subset: version-v2 }
  strategy: { canary: { steps: [${steps}] } }
${more}
`;
const measured = "interval: 1s, minRequests: 10";
const asGood = `{ name: as-good, successRate: {}, stableTolerance: 5, ${measured} }`;
const good = `{ name: good, successRate: {}, thresholdRange: { min: 95 }, ${measured} }`;
const quick = `{ name: quick, latency: { percentile: 50 }, thresholdRange: { max: 1000 }, interval: 1s, minRequests: 5 }`;

describe("a roll-out is led", () => {
  let stage: RolloutStage;
  before(async () => {
    stage = await RolloutStage.start();
  });
  after(() => stage[Symbol.asyncDispose]());
  const nothingFailed = (): void => assert.equal(stage.load.failed.length, 0, stage.load.failed.slice(0, 3).join("\n"));

  test("by every kind of step, with a control plane that is killed at each, or while it goes on", async () => {
    const steps = [
      'setHeaderRoute: { match: { name: x-dark-launch, exact: "yes" } }',
      "pause: {}",
      "setWeight: 20",
      "pause: {}",
      `analysis: { metrics: [${good}] }`,
      "setHeaderRoute: {}",
      "pause: {}",
      "setWeight: 80",
      "pause: {}",
    ];
    await stage.begin(rollout(steps.map((step) => `{ ${step} }`).join(", ")));
    const isOfVersion2 = async (header: string): Promise<boolean> =>
      (await stage.shop.get("/api/catalog/items/1", { "x-dark-launch": header })).body.includes('"imageUrl"');
    for (const { step, weight, byHeader, isKilledGoingOn } of [
      { step: 1, weight: 0, byHeader: true, isKilledGoingOn: false },
      { step: 3, weight: 20, byHeader: true, isKilledGoingOn: true },
      { step: 6, weight: 20, byHeader: false, isKilledGoingOn: false },
      { step: 8, weight: 80, byHeader: false, isKilledGoingOn: true },
    ]) {
      const at = await stage.until(`step ${step}`, (view) => view.step === step && view.phase === "Paused");
      assert.deepEqual([at.weight, at.headerRoute !== undefined], [weight, byHeader]);
      if (!isKilledGoingOn) {
        await stage.kill("control-plane");
        // It may be seen before it has looked at the mesh.
        const again = await stage.until("the control plane", ({ phase }) => phase === "Paused");
        const { step: sameStep, weight: sameWeight, headerRoute, message } = again;
        assert.deepEqual([sameStep, sameWeight, headerRoute, message], [step, weight, at.headerRoute, at.message]);
      }
      await stage.isWhole();
      if (byHeader) for (let turn = 0; turn < 10; turn += 1) assert.ok(await isOfVersion2("yes"), `turn ${turn}`);
      if (weight === 0) await stage.onlyFrom("v1");
      if (!isKilledGoingOn) {
        await stage.act("resume");
        continue;
      }
      // Whether it hears that, saves it, or answers before it ends, nobody knows.
      const resumed = stage.act("resume").catch(() => undefined);
      await stage.kill("control-plane");
      await resumed;
      const later = await stage.until("the control plane once more", ({ phase }) => phase !== "Idle");
      assert.ok(later.step >= step, `${later.step} after ${step}`);
      if (later.step === step) await stage.act("resume");
    }
    await stage.until("the end", ({ phase }) => phase === "Completed");
    await stage.onlyFrom("v2");
    nothingFailed();
  });

  test("by no step forward while it is frozen, and back all the same", async () => {
    const steps = "{ setWeight: 50 }, { pause: {} }, { setWeight: 80 }";
    const frozen = (text: string): string => rollout(steps, `  freeze: ${text}`);
    const always = '{ windows: [{ start: "2020-01-01T00:00:00Z", end: "2999-01-01T00:00:00Z" }] }';
    const daily = '{ windows: [{ from: "00:00", to: "24:00" }], timeZone: Asia/Kolkata }';
    const edit = async (text: string): Promise<void> => {
      const file = path.join(stage.shop.folder, "..", "edited.yaml");
      await writeFile(file, text);
      await stage.shop.mustTulle("apply", "-f", file);
    };
    await stage.begin(frozen("{ enabled: true }"));
    await stage.until("its freeze", ({ message }) => message === "frozen by freeze.enabled");
    for (const [text, reason] of [
      [always, "frozen until 2999-01-01T00:00:00Z"],
      [daily, "frozen from 00:00 to 24:00, Asia/Kolkata"],
    ] as const) {
      await edit(frozen(text));
      const view = await stage.until(reason, ({ message }) => message === reason);
      assert.deepEqual([view.phase, view.weight, view.step], ["Paused", 0, 0]);
    }
    await assert.rejects(stage.act("promote"), /it cannot go on: frozen from 00:00 to 24:00, Asia\/Kolkata/);
    await stage.onlyFrom("v1");
    await edit(rollout(steps));
    await stage.until("half of the requests", ({ weight, step }) => weight === 50 && step === 1);
    await edit(frozen(always));
    await stage.act("resume");
    const held = await stage.until("the freeze again", ({ message }) => message.startsWith("frozen until 2999"));
    assert.deepEqual([held.weight, held.step], [50, 2]);
    await stage.act("abort");
    await stage.until("the way back", ({ phase }) => phase === "Aborted");
    await stage.onlyFrom("v1");
    nothingFailed();
  });

  test("beside a stable version that is as bad, or better", async () => {
    const steps = `{ setWeight: 50 }, { analysis: { metrics: [${asGood}] } }`;
    await stage.fault(true, "v1");
    await stage.fault(true);
    await stage.begin(rollout(steps));
    const completed = await stage.until("an end", ({ endedAt }) => endedAt !== undefined);
    assert.equal(completed.phase, "Completed", completed.message);
    await stage.fault(false, "v1");
    await stage.begin(rollout(steps));
    const aborted = await stage.until("an end", ({ endedAt }) => endedAt !== undefined);
    assert.equal(aborted.phase, "Aborted", aborted.message);
    assert.match(aborted.message, /as-good: 0 % .*at least 95 % beside the stable version's 100 %/);
    await stage.onlyFrom("v1");
    nothingFailed();
    await stage.fault(false);
  });
});

/** The catalog's fault makes it slow instead. */
async function beSlow(folder: string): Promise<void> {
  const file = path.join(folder, "catalog", "catalog.ts");
  const text = await readFile(file, "utf8");
  const fails = 'if (stock.fails()) return sendJson(response, 500, { error: "blowup" });';
  assert.ok(text.includes(fails));
  const waits = "if (stock.fails()) await new Promise((resolve) => setTimeout(resolve, 2000));";
  await writeFile(file, text.replace(fails, waits));
}

test("a canary that is slow goes back, and completes when it is quick", async () => {
  await using stage = await RolloutStage.start({ prepare: beSlow });
  await stage.fault(true);
  await stage.begin(rollout(`{ setWeight: 50 }, { analysis: { metrics: [${quick}] } }`));
  const aborted = await stage.until("an end", ({ endedAt }) => endedAt !== undefined);
  assert.equal(aborted.phase, "Aborted", aborted.message);
  assert.match(aborted.message, /quick: \d[\d.]* ms \(\d+ requests, seen by clients; wanted at most 1000 ms\)/);
  await stage.fault(false);
  await stage.onlyFrom("v1");
  await stage.begin(rollout(`{ setWeight: 50 }, { analysis: { metrics: [${quick}] } }`));
  const completed = await stage.until("an end", ({ endedAt }) => endedAt !== undefined);
  assert.equal(completed.phase, "Completed", completed.message);
  await stage.onlyFrom("v2");
  assert.equal(stage.load.failed.length, 0, stage.load.failed.slice(0, 3).join("\n"));
});
