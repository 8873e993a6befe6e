// Start, restart, stop and inheritance of one program, with real processes.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { closeSocket, listeningSocket } from "../network/libc.ts";
import { SupervisedProcess, type Launch, type ProcessEnd, type ProcessSpec } from "./supervised-process.ts";
import { waitUntil } from "./wait-until.ts";

const searchPath = process.env["PATH"] ?? "";

function supervise(
  t: TestContext,
  script: string,
  changes: Partial<ProcessSpec> = {},
): { process: SupervisedProcess; ends: ProcessEnd[]; log: () => string } {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-process-"));
  const logFile = path.join(folder, "log");
  const ends: ProcessEnd[] = [];
  const spec: ProcessSpec = {
    name: "test",
    launch: () => ({ argv: ["/bin/sh", "-c", script], env: { PATH: searchPath } }),
    cwd: folder,

    logFile,
    restart: "always",
    ...changes,
  };
  const supervised = new SupervisedProcess(spec, { onUnexpectedEnd: (end) => ends.push(end) });
  t.after(async () => {
    supervised.destroy();
    await supervised.stop(1000);
    rmSync(folder, { recursive: true, force: true });
  });
  return { process: supervised, ends, log: () => readFileSync(logFile, "utf8") };
}

const soon = { timeoutMs: 60_000 };

test("a program that ends is started again, and says why it ended", async (t) => {
  const { process: supervised, ends, log } = supervise(t, "echo the reason >&2; exit 3");
  supervised.start();
  await waitUntil(() => ends.length >= 2, { ...soon, what: () => "two ends" });
  assert.equal(ends[0]!.description, "exit status 3: the reason");
  assert.deepEqual(
    ends.slice(0, 2).map(({ restartInMs }) => restartInMs),
    [200, 400],
  );
  assert.equal(supervised.restarts, 1);
  assert.match(log(), /^(the reason\n){2}$/);
});

test("with restarts off it stays down", async (t) => {
  const { process: supervised, ends } = supervise(t, "kill -9 $$", { restart: "never" });
  supervised.start();
  await waitUntil(() => ends.length === 1, { ...soon, what: () => "the end" });
  assert.equal(ends[0]!.restartInMs, undefined);
  assert.equal(ends[0]!.signal, "SIGKILL");
  assert.equal(supervised.state, "failed");
});

test("stopping lets it end by itself, and it never comes back", async (t) => {
  const script = `trap 'echo goodbye; exit 0' TERM; echo up; while :; do sleep 0.05; done`;
  const { process: supervised, ends, log } = supervise(t, script);
  supervised.start();
  await waitUntil(() => log().includes("up"), { ...soon, what: () => "the program" });
  await supervised.stop(10_000);
  assert.match(log(), /goodbye/);
  assert.equal(supervised.state, "ended");
  assert.deepEqual(ends, []);
});

test("a program that will not end is killed after its grace", async (t) => {
  const { process: supervised, log } = supervise(t, `trap '' TERM; echo up; while :; do sleep 0.05; done`);
  supervised.start();
  await waitUntil(() => log().includes("up"), { ...soon, what: () => "the program" });
  await supervised.stop(100);
  assert.equal(supervised.state, "ended");
});

test("stopping a program that waits for its restart ends it", async (t) => {
  const { process: supervised, ends } = supervise(t, "exit 1");
  supervised.start();
  await waitUntil(() => ends.length === 1, { ...soon, what: () => "the end" });
  assert.equal(supervised.state, "waiting");
  await supervised.stop(1000);
  assert.equal(supervised.state, "ended");
});

test("a program that does not exist, and a folder that does not, are ends with a reason", async (t) => {
  const missing = supervise(t, "", { launch: () => ({ argv: ["no-such-program"], env: {} }), restart: "never" });
  missing.process.start();
  const nowhere = supervise(t, "", { cwd: "/no/such/folder", restart: "never" });
  nowhere.process.start();
  await waitUntil(() => missing.ends.length + nowhere.ends.length === 2, { ...soon, what: () => "both ends" });
  assert.match(missing.ends[0]!.description, /no-such-program: not found/);
  assert.match(nowhere.ends[0]!.description, /ENOENT/);
});

test("listening sockets are inherited and announced by port", async (t) => {
  const socket = listeningSocket("127.0.0.1", 0);
  t.after(() => closeSocket(socket));
  const { process: supervised, log } = supervise(t, 'echo "$TULLE_LISTEN_FDS"; readlink /proc/$$/fd/4', {
    listenDescriptors: [[8080, socket]],
    restart: "never",
  });
  supervised.start();
  await waitUntil(() => log().includes("socket:["), { ...soon, what: () => "the program" });
  assert.match(log(), /^8080=4\nsocket:\[\d+\]\n$/);
});

test("a restart that was asked for is told of to nobody, and ends what does not end by itself", async (t) => {
  const {
    process: supervised,
    ends,
    log,
  } = supervise(t, "trap 'echo asked' TERM; echo begins; while :; do sleep 0.1; done");
  supervised.restart(1);
  assert.equal(supervised.state, "idle", "what does not run begins by its own rules");
  supervised.start();
  await waitUntil(() => log() === "begins\n", { ...soon, what: () => "the first run" });
  const first = supervised.pid;
  supervised.restart(300);
  await waitUntil(() => log() === "begins\nasked\nbegins\n", { ...soon, what: () => "the second run" });
  assert.notEqual(supervised.pid, first);
  assert.equal(supervised.state, "running");
  assert.equal(supervised.restarts, 1);
  assert.deepEqual(ends, []);
});

test("a stop during a restart is the end", async (t) => {
  const { process: supervised, log } = supervise(t, "trap 'exit 0' TERM; echo begins; while :; do sleep 0.1; done");
  supervised.start();
  await waitUntil(() => log() === "begins\n", { ...soon, what: () => "the first run" });
  supervised.restart(5000);
  await supervised.stop(5000);
  assert.equal(supervised.state, "ended");
  assert.equal(log(), "begins\n");
});

test("one that lacks what it is made of is held, and each start takes what is there then", async (t) => {
  let word: string | undefined;
  const launch = (): Launch =>
    word === undefined
      ? { missing: "no word" }
      : { argv: ["/bin/sh", "-c", `echo ${word}; exec sleep 600`], env: { PATH: searchPath } };
  const { process: supervised, log } = supervise(t, "", { launch });
  supervised.start();
  assert.deepEqual([supervised.state, supervised.missing, supervised.restarts], ["held", "no word", 0]);
  supervised.tryAgain();
  assert.equal(supervised.state, "held");
  word = "first";
  supervised.tryAgain();
  assert.deepEqual([supervised.state, supervised.missing], ["running", undefined]);
  await waitUntil(() => log().includes("first"), { timeoutMs: 60_000, what: () => "the first start" });
  word = "second";
  supervised.tryAgain();
  supervised.kill();
  await waitUntil(() => log().includes("second"), { timeoutMs: 60_000, what: () => "the second start" });
});

test("one that is held can be told to stop", async (t) => {
  const { process: supervised } = supervise(t, "", { launch: () => ({ missing: "anything" }) });
  supervised.start();
  await supervised.stop(1000);
  supervised.tryAgain();
  assert.equal(supervised.state, "ended");
});

for (const { name, value, expected } of [
  { name: "longer than the kernel takes", value: "a".repeat(4 * 2 ** 20), expected: /longer than the system takes/ },
  {
    name: "with a NUL byte",
    value: "hidden\0",
    expected: /^it cannot be started: a variable or an argument holds a NUL byte$/,
  },
]) {
  test(`a variable ${name} ends the start of its program, and of nothing else`, async (t) => {
    const launch = (): Launch => ({ argv: ["true"], env: { A: value } });
    const { process: supervised, ends } = supervise(t, "", { launch, restart: "never" });
    supervised.start();
    await waitUntil(() => ends.length > 0, { timeoutMs: 60_000, what: () => "the end" });
    assert.match(ends[0]!.description, expected);
    assert.equal(supervised.state, "failed");
  });
}
