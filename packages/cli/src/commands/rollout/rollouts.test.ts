// Rollouts as a person types it, against a real control plane, and the picture on terminals of every width.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutView } from "@tulle/config/api";
import { exitCodes } from "../../command/command-failure.ts";
import { textWidth } from "../../printing/text-width.ts";
import { startShell } from "../../testing/shell.ts";
import { rolloutPicture } from "./rollout-picture.ts";

const mesh = `apiVersion: v1
kind: Service
metadata: { name: catalog, namespace: shop }
spec: { selector: { app: catalog }, ports: [{ name: http, port: 80 }] }
---
apiVersion: rollouts.tulle.io/v1alpha1
kind: Rollout
metadata: { name: catalog, namespace: shop }
spec:
  host: catalog
  stable: { labels: { version: v1 } }
  canary: { labels: { version: v2 } }
  strategy: { canary: { steps: [{ pause: {} }, { setWeight: 20 }] } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  replicas: 0
  selector: { matchLabels: { app: web } }
  template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: web }] } }
`;

test("a Rollout from its start to its end", async (t) => {
  const shell = await startShell(t);
  const applied = await shell.run("apply -f -", mesh);
  assert.equal(applied.exitCode, 0, applied.stderr);
  const lines: readonly (readonly [line: string, exitCode: number, output: RegExp])[] = [
    [
      "rollout status catalog",
      exitCodes.ok,
      /catalog\.shop: canary of catalog, revision 0\n.*Idle: has not been started/,
    ],
    [
      "rollout status nothing",
      exitCodes.failure,
      /there is neither a Rollout nor a Deployment nothing\nRollouts:\n {2}catalog\.shop\nDeployments:\n {2}web\.shop\n/,
    ],
    ["rollout status catalog -n other", exitCodes.failure, /no Rollout catalog in the namespace other\n.*-n shop/],
    [
      "get rollout",
      exitCodes.ok,
      /no rollouts in the namespace "default" \(1 elsewhere: -n shop, or -A shows all namespaces\)/,
    ],
    ["get rollout nothing", exitCodes.failure, /not found in the namespace "default"\nThere are: shop\/catalog\.\n/],
    ["rollout history catalog", exitCodes.ok, /It has not been started/],
    [
      "rollout watch catalog --timeout 1",
      exitCodes.failure,
      /has not ended in 1 s\nIt begins when it is told to:\n {2}tulle rollout start catalog -n shop\n/,
    ],
    ["rollout pause catalog", exitCodes.failure, /has not been started/],
    ["rollout start rollout/catalog", exitCodes.ok, /rollout\/catalog started: waits until it is promoted or resumed/],
    ["rollout start catalog", exitCodes.failure, /runs already: abort it first/],
    [
      "rollout status ro catalog -n shop",
      exitCodes.ok,
      /Paused: waits until.*\n\n.*version=v1 +100 % +█+\n.*version=v2 +0 %/,
    ],
    ["rollout pause rollout catalog.shop", exitCodes.ok, /paused: paused by a person/],
    ["rollout resume catalog", exitCodes.ok, /resumed: waits until/],
    ["get rollout catalog -n shop -o yaml", exitCodes.ok, /phase: Paused/],
    [
      "get rollouts -n shop",
      exitCodes.ok,
      /NAME +PHASE +WEIGHT +STEP +HOST +STABLE +CANARY\ncatalog +Paused +0 % +0\/2 +catalog +version=v1 +version=v2/,
    ],
    [
      "rollout watch catalog --timeout 1",
      exitCodes.failure,
      /Paused: waits[^]*not ended in 1 s\nIt goes on .*:\n {2}tulle rollout abort catalog -n shop\n/,
    ],
    ["rollout promote catalog", exitCodes.failure, /it cannot go on: no pod of the canary is ready/],
    ["rollout abort catalog", exitCodes.ok, /aborted: everything goes to the stable version: by .*uid \d+/],
    ["rollout abort catalog", exitCodes.failure, /it has aborted/],
    ["rollout status catalog", exitCodes.failure, /was aborted\nOnce .*:\n  tulle rollout start catalog -n shop/],
    ["rollout watch catalog", exitCodes.failure, /aborted at 0 %/],
    [
      "rollout history catalog",
      exitCodes.ok,
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  started by .*uid \d+\)? \(revision 1\)\n/,
    ],
    ["rollout history catalog -o json", exitCodes.ok, /"text": ?"resumed by [^"]*uid \d+\)?"/],
    // As before there were Rollouts.
    ["rollout status web", exitCodes.ok, /deployment\/web rolled out/],
    ["rollout status deployment/web -n shop", exitCodes.ok, /rolled out/],
    ["rollout start deployment/web", exitCodes.usage, /name one Rollout, and nothing else/],
    ["rollout start a b c", exitCodes.usage, /name one Rollout/],
    ["rollout start nothing", exitCodes.failure, /there is no Rollout nothing/],
    ["rollout restart rollout/catalog", exitCodes.usage, /name one or more Deployments/],
  ];
  for (const [line, exitCode, output] of lines) {
    const result = await shell.run(line);
    assert.equal(result.exitCode, exitCode, `${line}: ${result.stdout}${result.stderr}`);
    assert.match(result.stdout + result.stderr, output, line);
  }
});

const view: RolloutView = {
  namespace: "shop",
  name: "catalog",
  host: "catalog",
  strategy: "canary",
  stable: "version-v1",
  canary: "version-v2",
  phase: "Progressing",
  message: "measures success-rate before it goes on: 3 of 10 requests to the canary so far",
  weight: 20,
  isLaid: true,
  headerRoute: "x-preview: yes",
  step: 12,
  steps: Array.from({ length: 30 }, (_, index) => `${index} % to the canary`),
  metrics: [
    {
      name: "success-rate",
      place: "background",
      good: 2,
      bad: 1,
      failureLimit: 1,
      last: {
        at: "2026-11-24T18:00:00.000Z",
        isGood: false,
        text: "80 % (2 failed of 10 requests, seen by clients; wanted at least 95 %)",
      },
      // Of a Prometheus, say.
      waiting: "3 of 10 requests to the canary so far\u001b[2J",
    },
  ],
  isEdited: true,
  revision: 3,
  history: Array.from({ length: 50 }, (_, index) => ({ at: "2026-11-24T18:00:00.000Z", text: `thing ${index}` })),
};

for (const columns of [20, 40, 80, 200]) {
  test(`the picture fits a terminal of ${columns} columns, and is not tall`, () => {
    const lines = rolloutPicture(view, { isTerminal: true, columns, env: {} });
    const widest = Math.max(...lines.map(textWidth));
    assert.ok(widest < columns, `${widest} of ${columns}`);
    assert.ok(columns < 80 || lines.length <= 24, `${lines.length} lines`);
    assert.ok(lines.some((line) => line.includes("▸ 13")));
    assert.ok(lines.some((line) => line.includes("  18:00:00Z  thing")));
  });
}

test("no colours where nobody wants any", () => {
  for (const place of [
    { isTerminal: false, columns: undefined, env: {} },
    { isTerminal: true, columns: 80, env: { NO_COLOR: "1" } },
  ]) {
    assert.doesNotMatch(rolloutPicture(view, place).join("\n"), /\u001b/);
  }
  assert.match(rolloutPicture(view, { isTerminal: true, columns: 80, env: {} }).join("\n"), /\u001b/);
});
