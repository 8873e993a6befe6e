// What `tulle up` shows while it starts: a block that is drawn anew on a terminal, lines elsewhere.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LocalPod, PodPhase, Supervisor } from "@tulle/local";
import type { Instance } from "@tulle/local/instance";
import type { CommandContext } from "../../command/command-module.ts";
import { UpProgress } from "./up-progress.ts";

interface FakePod {
  readonly name: string;
  readonly plan: { readonly namespace: string };
  phase: PodPhase;
  ready: boolean;
}

/** Progress over pods of the test's own; `shown` is everything written, `screen` what a terminal would show of it. */
function show(
  terminal: { columns: number } | undefined,
  { follows = true, onWrite = () => {} }: { follows?: boolean; onWrite?: (text: string) => void } = {},
): {
  progress: UpProgress;
  pods: FakePod[];
  set: (name: string, phase: PodPhase, ready?: boolean) => void;
  shown: () => string;
  screen: () => string[];
} {
  let shown = "";
  const context = {
    env: { NO_COLOR: "1" },
    cwd: "/srv/mesh",
    isTerminal: terminal !== undefined,
    columns: terminal?.columns,
    stdout: (text: string): void => {
      onWrite(text);
      shown += text;
    },
    stderr: (text: string) => void (shown += text),
    eraseLines: (count: number) => void (shown += `\u001b[${count}A\u001b[0J`),
  };
  const pods: FakePod[] = [];
  const progress = new UpProgress(context as unknown as CommandContext, "/srv/mesh/shop");
  if (follows) progress.follow({ pods: () => pods as unknown as LocalPod[] } as unknown as Supervisor);
  const set = (name: string, phase: PodPhase, ready = false): void => {
    const pod = pods.find((each) => each.name === name);
    if (pod === undefined) pods.push({ name, plan: { namespace: "shop" }, phase, ready });
    else Object.assign(pod, { phase, ready });
    progress.take({ type: "pods" });
  };
  const screen = (): string[] => {
    const lines: string[] = [""];
    // The two controls that are used: up by some lines, and clear from here on.
    for (const [, up, character] of shown.matchAll(/\u001b\[(\d+)A\u001b\[0J|([^])/g)) {
      if (up !== undefined) lines.splice(lines.length - 1 - Number(up), Infinity, "");
      else if (character === "\n") lines.push("");
      else lines[lines.length - 1] += character!;
    }
    return lines.slice(0, -1);
  };
  return { progress, pods, set, shown: () => shown, screen };
}

const instance = {
  apiUrl: "http://127.20.0.1:15014",
  publishedPorts: [
    { address: "127.0.0.1", port: 8080, targetPort: 8080, service: "gateway.tulle-system", protocol: "http" },
  ],
} as unknown as Instance;

test("elsewhere than on a terminal each change is a line, told once", () => {
  const { progress, pods, set, screen } = show(undefined);
  set("web-1", "starting-proxy");
  set("web-1", "starting-proxy");
  set("web-1", "starting-app");
  set("web-1", "running", true);
  set("web-2", "starting-proxy");
  pods.pop();
  progress.take({ type: "pods" });
  assert.deepEqual(screen(), [
    "Starting shop",
    "shop/web-1: starting its proxy",
    "shop/web-1: starting",
    "shop/web-1: ready",
    "shop/web-2: starting its proxy",
    "shop/web-2: gone",
  ]);
});

test("on a terminal the pods are a block that changes in place, below messages", () => {
  const { progress, set, screen } = show({ columns: 80 });
  set("web-2", "starting-proxy");
  set("web-1", "running", true);
  progress.take({ type: "trouble", message: "something is odd" });
  set("web-2", "starting-app");
  assert.deepEqual(screen(), ["Starting shop", "something is odd", "  ● shop/web-1 ready", "  ○ shop/web-2 starting"]);
});

test("below the pods stands what the start waits for besides them", () => {
  const port = "an answer through http://localhost:8080 (gateway.s)";
  const { progress, set, screen } = show({ columns: 40 });
  set("web-1", "running", true);
  progress.take({ type: "waiting", awaited: [port] });
  assert.deepEqual(screen().slice(1), [
    "  ● shop/web-1 ready",
    "  ○ waiting for an answer through",
    "    http://localhost:8080 (gateway.s)",
  ]);
  progress.take({ type: "waiting", awaited: [] });
  assert.deepEqual(screen().slice(1), ["  ● shop/web-1 ready"]);
});

test("elsewhere than on a terminal what the start waits for is told once", () => {
  const { progress, screen } = show(undefined);
  for (const awaited of [["one"], ["one", "two"], ["two"], []]) progress.take({ type: "waiting", awaited });
  assert.deepEqual(screen().slice(1), ["waiting for one", "waiting for two"]);
});

test("nothing is said before the folder is taken", () => {
  const { progress, shown, screen } = show(undefined, { follows: false });
  assert.equal(shown(), "");
  progress.take({ type: "trouble", message: "something is odd" });
  assert.deepEqual(screen(), ["Starting shop", "something is odd"]);
});

test("no line of the block is as wide as the window, and the ends of names and all reasons are told", () => {
  const { set, screen } = show({ columns: 30 });
  set("a-very-long-name-of-a-deployment-x7k2m", "starting-proxy");
  const lines = screen().slice(-2);
  assert.ok(
    lines.every((line) => line.length < 30),
    lines.join("\n"),
  );
  assert.deepEqual(lines, ["  ○ shop/a-very-long-n…-x7k2m", "      starting its proxy"]);
});

test("at the end the block gives way to Ready and the URLs", () => {
  for (const terminal of [{ columns: 80 }, undefined]) {
    const { progress, set, screen } = show(terminal);
    set("web-1", "running", true);
    progress.ready(instance);
    const lines = screen();
    assert.deepEqual(lines.slice(lines.indexOf("Ready"), -3), [
      "Ready",
      "",
      "  http://localhost:8080            gateway.tulle-system",
      "  http://127.20.0.1:15014/metrics  control plane",
    ]);
    assert.ok(!lines.some((line) => line.includes("●")));
    set("web-1", "running", false);
    assert.equal(screen().at(-1), "shop/web-1: not ready");
  }
});

test("in namespaces mode the control plane is said to be the pods' alone", () => {
  const { progress, shown } = show(undefined);
  progress.ready({ ...instance, mode: "namespaces" });
  assert.match(shown(), /:15014\/metrics +control plane, for pods$/m);
});

test("whoever reads Ready from a pipe has read the table with it", () => {
  const writes: string[] = [];
  const { progress } = show(undefined, { onWrite: (text) => void writes.push(text) });
  progress.ready(instance);
  assert.match(writes.at(-1)!, /Nothing to run[^]*http:\/\/localhost:8080[^]*Ctrl-C ends it\.\n$/);
});

test("in a narrow window the table has two lines a row", () => {
  const { progress, screen } = show({ columns: 30 });
  progress.ready(instance);
  const lines = screen();
  const at = lines.indexOf("  http://localhost:8080");
  assert.equal(lines[at + 1], "    gateway.tulle-system");
});

const headings: readonly { name: string; phases: readonly PodPhase[]; expected: readonly string[] }[] = [
  { name: "all run", phases: ["running", "running"], expected: ["Ready"] },
  {
    name: "one cannot run",
    phases: ["running", "blocked"],
    expected: ["Ready, except for 1 of 2 pods", "  shop/web-2 cannot run here, as told above"],
  },
  {
    name: "none can run",
    phases: ["blocked", "blocked"],
    expected: ["Not ready: none of the 2 pods can run here, as told above. The control plane is up."],
  },
  {
    name: "the only one cannot run",
    phases: ["blocked"],
    expected: ["Not ready: the only pod cannot run here, as told above. The control plane is up."],
  },
  {
    name: "there is none",
    phases: [],
    expected: ["Nothing to run: the manifests ask for no pods. The control plane is up."],
  },
];
for (const { name, phases, expected } of headings) {
  test(`the heading tells what is ready: ${name}`, () => {
    const { progress, set, screen } = show({ columns: 100 });
    for (const [index, phase] of phases.entries()) set(`web-${index + 1}`, phase, phase === "running");
    progress.ready(instance);
    const lines = screen();
    assert.deepEqual(lines.slice(1, lines.indexOf("", 1)), expected);
  });
}

test("mistakes are told with places that can be typed, and so is their end", () => {
  const { progress, screen } = show(undefined);
  const place = { file: "/srv/mesh/shop/a.yaml", line: 3, column: 5 };
  progress.take({ type: "finding", finding: { code: "IST0106", severity: "error", message: "is wrong", place } });
  progress.take({ type: "repaired" });
  assert.deepEqual(screen(), [
    "Starting shop",
    "Error [IST0106] (shop/a.yaml:3:5) is wrong",
    "The manifests have no errors any more.",
  ]);
});
