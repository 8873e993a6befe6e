// `tulle proxy` as a person starts it: from a file, on what is wrong with it, and until it is told to end.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { startProcess, waitFor } from "../../../../tests/tools/processes.ts";

const main = path.join(import.meta.dirname, "../main.ts");
let folder = "";
before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "tulle-proxy-"));
});
after(() => rm(folder, { recursive: true, force: true }));

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[]): Promise<Ran> {
  await using started = await startProcess(process.execPath, [main, "proxy", ...args]);
  const { code } = await started.exited;
  return { code, stdout: started.stdout(), stderr: started.stderr() };
}

async function file(name: string, text: string): Promise<string> {
  const place = path.join(folder, name);
  await writeFile(place, text);
  return place;
}

const admin = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n";

for (const { name, text, args, code, expected } of [
  {
    name: "a sound document",
    text: admin,
    args: ["--mode", "validate"],
    code: 0,
    expected: /^configuration '.*' OK\n$/,
  },
  {
    name: "an unknown field",
    text: "admin:\n  adress: {}\n",
    args: [],
    code: 4,
    expected: /^tulle: .*\.yaml:2:3: admin\.adress: unknown field .*did you mean "address"\?\n$/,
  },
  {
    name: "a cluster that cannot be",
    text: "static_resources: {clusters: [{name: a, lb_policy: MAGLEV}]}",
    args: [],
    code: 4,
    expected: /^tulle: static_resources\.clusters\[0\]\.lb_policy: MAGLEV is not supported\n$/,
  },
  {
    name: "a log that cannot be opened",
    text: admin,
    args: ["--log-path", "/no/such/folder/log"],
    code: 1,
    expected: /^tulle: the log cannot be opened: ENOENT.*\nName a file/,
  },
  { name: "a level that is none", text: admin, args: ["-l", "loud"], code: 2, expected: /one of trace, debug, info/ },
]) {
  test(name, async () => {
    const place = await file(`${code}-${args.length}-${text.length}.yaml`, text);
    const ran = await run(["-c", place, ...args]);
    assert.equal(ran.code, code, ran.stderr);
    assert.match(ran.stdout + ran.stderr, expected);
  });
}

test("no document at all", async () => {
  const ran = await run([]);
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /^tulle: a bootstrap document is needed\n/);
});

test("it runs until a signal, with Envoy's options, and logs to a file", async () => {
  const place = await file("run.yaml", admin);
  const log = path.join(folder, "proxy.log");
  const options = ["-l", "warning", "--component-log-level", "main:info", "--base-id", "7", "--disable-hot-restart"];
  await using started = await startProcess(process.execPath, [
    main,
    "proxy",
    "-c",
    place,
    "--log-path",
    log,
    ...options,
  ]);
  const written = await waitFor(
    async () => {
      const text = await readFile(log, "utf8").catch(() => "");
      return text.includes("all dependencies initialized") && text;
    },
    { what: "the proxy to be ready" },
  );
  assert.ok(!written.includes("[admin]"), "other loggers keep to warning");
  assert.equal((await started.stop()).code, 0);
});
