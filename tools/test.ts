// `npm test`: sets up the tools that tests borrow, checks the code's form, then runs every test; `--long`, `--interop`
// and `--soak` run those of that kind alone. Paths and words narrow it: `npm test -- packages/xds`, `npm test --
// oauth2`; `--affected` leaves what a change cannot reach. `--help` says so too.
import { spawn } from "node:child_process";
import { glob, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { sweep } from "../tests/tools/cluster/cluster-group.ts";
import { clusterPrograms, kubernetesVersion, nextVersion } from "../tests/tools/cluster/cluster-programs.ts";
import { inOwnNamespaces } from "../tests/tools/cluster/own-namespaces.ts";
import { debianTool, installDebianTools, type DebianToolName } from "../tests/tools/debian-tool.ts";
import { envoyPath } from "../tests/tools/envoy-path.ts";
import { oauthClientPackages, pythonEnvironment } from "../tests/tools/python-environment.ts";
import { soakMinutes } from "../tests/tools/soak-minutes.ts";
import { manyTriesVariable } from "../tests/tools/tries.ts";
import { selectTests } from "./select-tests.ts";
import { batchProgram, testBatches } from "./test-batches.ts";
import { readOutcomes, verdict } from "./test-outcomes.ts";

const root = path.resolve(import.meta.dirname, "..");
const onCi = process.env["CI"] !== undefined && process.env["CI"] !== "" && process.env["CI"] !== "false";

/**
 * What tests borrow from Debian; a test asks for it by `debianTool`, this list only saves time by installing all at
 * once.
 */
const borrowedPrograms: readonly DebianToolName[] = [
  "nginx",
  "haproxy",
  "wrk",
  "chromium-headless-shell",
  "postgresql",
  "curl",
  "openssl",
];

/** Interop tests bring the rest themselves. */
const borrowedByInterop: readonly DebianToolName[] = ["chromium", "openssl"];

/** Of this clone, made anew for each run. */
const clusterImages = path.join(root, ".cache", "tulle-images.tar");

/** A file or a single test that takes longer than this hangs, on however busy a machine. */
const testTimeoutMs = 900_000;
const longTestTimeoutMs = 1_800_000;

/**
 * By the file's name: `name.test.ts`, `name.long.test.ts`, and likewise `interop`, `soak`, `kubernetes` and
 * `kubernetes-long`.
 */
type TestKind = "short" | "long" | "interop" | "soak" | ClusterKind;
type ClusterKind = "kubernetes" | "kubernetes-long";

const timeoutsMs: Readonly<Record<TestKind, number>> = {
  short: testTimeoutMs,
  long: longTestTimeoutMs,
  interop: testTimeoutMs,
  kubernetes: testTimeoutMs,
  "kubernetes-long": longTestTimeoutMs,
  // What it does besides, such as starts and waits for calm, takes no longer than a long test.
  soak: soakMinutes() * 2 * 60_000 + longTestTimeoutMs,
};

interface Step {
  readonly name: string;
  /** Returns whether it passed. */
  readonly run: () => Promise<boolean>;
}

const usage = `Usage: npm test -- [names]           checks the code's form, then runs every test but the long ones
       npm test -- --affected        runs the tests that can see what changed since main,
                                  committed or not
       npm run test:long -- [names]  runs the long tests alone
       npm run test:interop -- [names]  runs other people's clients against our servers; needs
                                  Java with Maven, Go, Python, apt-get (for Apache) and Chromium
       npm run test:soak -- [names]  runs the tests that look for leaks for half an hour, or SOAK_MINUTES,
                                  and those that are too long for CI
       npm run test:kubernetes -- [names]  runs the tests that need a cluster beside one of two
                                  nodes that it makes; needs root, Go and apt-get;
                                  --keep leaves the cluster up until Ctrl-C;
                                  with --long, those that take minutes each, in their place
       npm test -- --help            prints this

A name is a file or a folder, such as packages/xds, or a part of the path of test files, such as oauth2.
`;

const { values: options, positionals } = commandLine();
const kindToRun: TestKind =
  options.kubernetes && options.long
    ? "kubernetes-long"
    : ((["long", "interop", "soak", "kubernetes"] as const).find((kind) => options[kind]) ?? "short");
const selection = await selectTests(await testFiles(kindToRun), {
  root,
  names: positionals,
  affected: options.affected,
});
const { paths } = selection;
if (selection.message !== undefined) process.stdout.write(`${selection.message}\n`);
if (selection.files.length === 0) process.exit(options.affected ? 0 : 2);
const results: string[] = [];
for (const step of kindToRun === "short" ? steps() : [toolsStep()]) {
  process.stdout.write(`\n── ${step.name}\n`);
  const started = performance.now();
  const passed = await step.run();
  if (!passed) process.exitCode = 1;
  results.push(`${passed ? "ok    " : "FAILED"} ${step.name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}
process.stdout.write(`\n${results.join("\n")}\n\n── ${kindToRun === "short" ? "tests" : `${kindToRun} tests`}\n`);
// Last, so that the runner's own summary ends the output.
if (!(await runTests(kindToRun))) process.exitCode = 1;

function commandLine() {
  try {
    const parsed = parseArgs({
      options: {
        long: { type: "boolean", default: false },
        interop: { type: "boolean", default: false },
        soak: { type: "boolean", default: false },
        kubernetes: { type: "boolean", default: false },
        keep: { type: "boolean", default: false },
        affected: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
      allowPositionals: true,
    });
    if (!parsed.values.help) return parsed;
    process.stdout.write(usage);
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

function steps(): readonly Step[] {
  const whole = paths.length === 0;
  const format = whole ? ["."] : paths;
  return [
    toolsStep(),
    // Without one, programs run all the same, at twice the cost: nobody would see it.
    { name: "bundle", run: () => execute(process.execPath, ["tools/bundle.ts"]) },
    // Each thread that checks looks at what all use anew: two of them cost a fifth less than four.
    { name: "types", run: () => program("tsc", ["--noEmit", "-p", ".", "--checkers", "2"]) },
    { name: "lint", run: () => program("oxlint", ["--type-aware", "--deny-warnings", "--quiet", ...paths]) },
    { name: "format", run: () => program("oxfmt", ["--check", ...format]) },
    { name: "tidy", run: () => execute(process.execPath, ["tools/tidy.ts", ...paths]) },
    ...(whole ? [{ name: "unused code", run: () => program("knip", ["--no-config-hints", "--no-progress"]) }] : []),
  ];
}

function toolsStep(): Step {
  return { name: "tools for tests", run: setUpTools };
}

/** A missing tool fails the tests that ask for it, by name, not this step: the rest is worth running all the same. */
async function setUpTools(): Promise<boolean> {
  if (isClusterKind(kindToRun)) return setUpCluster();
  const borrowed = kindToRun === "interop" ? borrowedByInterop : borrowedPrograms;
  const debian = installDebianTools(borrowed);
  const wanted: readonly (readonly [string, Promise<string>])[] = [
    ...(kindToRun === "interop" ? [] : ([["envoy", envoyPath()]] as const)),
    ["python with OAuth clients", pythonEnvironment(oauthClientPackages)],
    ...borrowed.map((name) => [name, debian.then(() => debianTool(name))] as const),
  ];
  for (const [name, tool] of wanted) {
    const found = await tool.catch((error: Error) => error);
    process.stdout.write(found instanceof Error ? `!! ${found.message}\n` : `${name}: ${found}\n`);
  }
  return true;
}

function isClusterKind(kind: TestKind): kind is ClusterKind {
  return kind === "kubernetes" || kind === "kubernetes-long";
}

/** Nothing can be run without one. */
async function setUpCluster(): Promise<boolean> {
  const programs = await clusterPrograms().catch((error: Error) => error);
  if (programs instanceof Error) process.stdout.write(`!! ${programs.message}\n`);
  else process.stdout.write(`Kubernetes ${kubernetesVersion}: ${programs.folders[0]}\n`);
  await sweep();
  if (programs instanceof Error) return false;
  const images = path.join(root, "tools", "images", "images.ts");
  // Of another version for upgrades, which take minutes.
  const also = kindToRun === "kubernetes-long" ? ["--also", nextVersion] : [];
  return execute(process.execPath, [images, "--output", clusterImages, ...also]);
}

async function runTests(kind: TestKind): Promise<boolean> {
  if (isClusterKind(kind) && process.exitCode !== undefined) return false;
  // Each file or batch of files is a process, and starts many: they read stripped types and compiled code from one
  // place.
  process.env["NODE_COMPILE_CACHE"] ??= path.join(root, "node_modules", ".cache", "compile");
  if (kind === "long") process.env[manyTriesVariable] = "yes";
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-test-"));
  const report = path.join(folder, "outcomes.jsonl");
  try {
    const passed = await executeFor(kind, [
      process.execPath,
      `--import=${pathToFileURL(path.join(root, "tools", "quick-imports.ts")).href}`,
      "--test",
      // Of two cores: files wait for a third of their time, and Node's own default there is one file at a time. A long
      // test loads both by itself: beside another one it would find requests that wait longer than a proxy drains.
      `--test-concurrency=${kind === "short" || kind === "interop" ? 3 : 1}`,
      `--test-timeout=${timeoutsMs[kind]}`,
      "--test-reporter=spec",
      "--test-reporter-destination=stdout",
      `--test-reporter=${path.join(root, "tools", "test-outcomes.ts")}`,
      `--test-reporter-destination=${report}`,
      ...(kind === "short" ? await testPrograms(selection.files, folder) : selection.files),
    ]);
    const { ok, messages } = verdict(readOutcomes(await readFile(report, "utf8")), {
      passed,
      needsTools: onCi || kind === "interop" || isClusterKind(kind),
    });
    for (const message of messages) process.stdout.write(`${message}\n`);
    return ok;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Beside a cluster where the tests need one; nothing of it is left afterwards. */
async function executeFor(kind: TestKind, command: readonly string[]): Promise<boolean> {
  if (!isClusterKind(kind)) return execute(command[0]!, command.slice(1));
  const run = path.join(root, "tests", "tools", "cluster", "run.ts");
  const keep = options.keep ? ["--keep"] : [];
  const [first, ...args] = inOwnNamespaces([
    process.execPath,
    run,
    ...keep,
    "--image",
    clusterImages,
    "--",
    ...command,
  ]);
  try {
    return await execute(first!, args);
  } finally {
    await sweep();
  }
}

/** What Node's runner is given: a file, or a program in `folder` that runs several. */
async function testPrograms(chosen: readonly string[], folder: string): Promise<readonly string[]> {
  const programs: string[] = [];
  for (const batch of await testBatches(chosen, root)) {
    if (batch.files.length === 1) {
      programs.push(batch.files[0]!);
      continue;
    }
    const batchFile = path.join(folder, `${batch.name}.test.mjs`);
    await writeFile(batchFile, batchProgram(batch, root));
    programs.push(batchFile);
  }
  return programs;
}

async function testFiles(kind: TestKind): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const file of glob("{packages,tests,samples,tools,bench}/**/*.test.ts", {
    cwd: root,
    exclude: ["**/node_modules/**", "**/.tulle/**"],
  })) {
    const kindOfFile = /\.(long|interop|soak|kubernetes|kubernetes-long)\.test\.ts$/.exec(file)?.[1] ?? "short";
    if (kindOfFile === kind || (kind === "long" && kindOfFile === "short" && (await triesMore(file)))) found.push(file);
  }
  return found.sort();
}

/** Whether the long suite runs a file of `npm test`, too. */
async function triesMore(file: string): Promise<boolean> {
  return (await readFile(path.join(root, file), "utf8")).includes("tries({ short: ");
}

/** Runs a program of an installed package, by its name in node_modules/.bin. */
function program(name: string, args: readonly string[]): Promise<boolean> {
  // `GOGC`: a sixth of the CPU of those written in Go collected what they are about to leave.
  return execute(path.join(root, "node_modules", ".bin", name), args, { GOGC: "400", ...process.env });
}

function execute(command: string, args: readonly string[], env = process.env): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const child = spawn(command, args, { cwd: root, env, stdio: ["ignore", "inherit", "inherit"] });
  child.once("error", reject);
  child.once("exit", (code) => resolve(code === 0));
  return promise;
}
