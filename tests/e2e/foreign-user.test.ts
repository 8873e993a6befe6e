// A program under another user's id on the same machine: it knows everything but a workload's token and key, and gets neither a
// certificate nor configuration, nor a word from a workload under STRICT.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { startProcess } from "../tools/processes.ts";
import { ToolUnavailable } from "../tools/tool-unavailable.ts";
import type { Knowledge, Outcomes } from "./foreign-user-program.ts";
import { assertRefused, gatherKnowledge, startStrictShop } from "./strict-shop.ts";

async function tryAs(knowledge: Knowledge): Promise<Outcomes> {
  const program = path.join(import.meta.dirname, "foreign-user-program.ts");
  await using started = await startProcess(process.execPath, [program], {
    name: "a foreign program",
    input: JSON.stringify(knowledge),
  });
  const [line] = await started.waitForOutput(/^\{.*\}$/m, { timeoutMs: 60_000 });
  return JSON.parse(line) as Outcomes;
}

test("a program of another user gets neither certificate nor configuration nor an answer, and speaks in nobody's name", async () => {
  if (process.getuid?.() !== 0) {
    throw new ToolUnavailable("root", "only root may start a program under another user's id; run this test as root");
  }
  await using shop = await startStrictShop();
  const pod = await shop.pod("catalog-v1");
  const knowledge = await gatherKnowledge(shop, pod, await shop.pod("webapp"));

  const outcomes = await tryAs(knowledge);
  assertRefused(outcomes);
  assert.equal(Object.keys(outcomes).length, 5 + 3 + 5 + 3 + 3 + 2, JSON.stringify(outcomes, undefined, 2));

  // The same machine, the same moment: whoever has the workload's token is given a certificate, whatever the user's id.
  const own = await readFile(path.join(shop.folder, ".tulle", "pods", pod.name, "token"), "utf8");
  const only = { ...knowledge, files: [], sockets: [], workloads: [], ports: [] };
  const withToken = await tryAs({ ...only, tokens: { "the workload's own token": own.trim() } });
  const [at] = knowledge.xdsAddresses;
  assert.equal(withToken[`certificate for the workload's own token, ${at}`], "issued");
  assert.equal((await shop.get("/api/catalog")).status, 200);
});
