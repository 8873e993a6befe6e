// What was saved is there again, and what is damaged is told.
import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { StateFolder } from "../state/state-folder.ts";
import { started } from "./rollout-machine.ts";
import { openSavedRollouts } from "./saved-rollouts.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "tulle-rollouts-"));
});
after(() => rm(folder, { recursive: true }));

const spec = {
  host: "a",
  stable: { subset: "v1" },
  canary: { subset: "v2" },
  strategy: { canary: { steps: [{ setWeight: 20 }] } },
};

async function open() {
  const problems: string[] = [];
  const texts = new StateFolder(folder, { warning: () => undefined });
  const saved = await openSavedRollouts(texts, (reason) => problems.push(reason));
  return { saved, problems };
}

test("what was saved is there again, for its owner alone", async () => {
  const { saved } = await open();
  assert.equal(saved.saved.size, 0);
  const state = started(spec, undefined, "ann", 5);
  await saved.save(new Map([["shop/a", state]]));
  const again = await open();
  assert.deepEqual(again.saved.saved.get("shop/a"), state);
  assert.deepEqual(again.problems, []);
  assert.equal((await stat(path.join(folder, "rollouts.json"))).mode & 0o777, 0o600);
});

const state = started(spec, undefined, "ann", 5);
const damaged: readonly { readonly name: string; readonly text: string }[] = [
  { name: "empty", text: "" },
  { name: "cut short", text: '{"shop/a":{' },
  { name: "another document", text: '{"shop/a":1}' },
  { name: "a spec that is none", text: JSON.stringify({ "shop/a": { ...state, spec: { host: "a" } } }) },
  { name: "no such outcome", text: JSON.stringify({ "shop/a": { ...state, outcome: "paused" } }) },
  { name: "nothing measured", text: JSON.stringify({ "shop/a": { ...state, measured: null } }) },
  {
    name: "a measurement that is none",
    text: JSON.stringify({ "shop/a": { ...state, measured: { "step/a": null } } }),
  },
  { name: "no weight", text: JSON.stringify({ "shop/a": { ...state, weight: "20" } }) },
];

for (const { name, text } of damaged) {
  test(`damaged: ${name}`, async () => {
    await writeFile(path.join(folder, "rollouts.json"), text, { mode: 0o600 });
    const { saved, problems } = await open();
    assert.equal(saved.saved.size, 0);
    assert.equal(problems.length, 1);
    assert.match(problems[0]!, /rollouts\.json/);
  });
}
