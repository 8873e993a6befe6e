// The tarball of `npm pack`, as somebody uses it who has no clone: installed by npm into a folder of its own, run in an
// empty home.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { runCommand, type CommandResult } from "../tools/run-command.ts";
import { helloDeployment, SmallMesh } from "./small-mesh.ts";

const root = path.resolve(import.meta.dirname, "../..");
const npmTimeoutMs = 300_000;

interface Manifest {
  readonly version: string;
  readonly private?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

async function manifestOf(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(path.join(root, folder, "package.json"), "utf8")) as Manifest;
}

describe("the package", () => {
  let parent: string;
  let tarball: string;
  let env: Readonly<Record<string, string | undefined>>;
  const outside = npmFreeEnvironment();

  before(async () => {
    parent = await mkdtemp(path.join(tmpdir(), "tulle-package-"));
    await mkdir(path.join(parent, "home"));
    // How this machine reaches its registry, and what it has from there; npm would look below the prefix and the home.
    const settings = await Promise.all(
      ["cache", "globalconfig", "userconfig"].map(async (name) => {
        const { stdout } = await mustRun("npm", ["config", "get", name], root, outside);
        return [`npm_config_${name}`, stdout.trim()] as const;
      }),
    );
    env = {
      ...outside,
      HOME: path.join(parent, "home"),
      PATH: `${path.join(parent, "prefix", "bin")}:${outside["PATH"]}`,
      ...Object.fromEntries(settings),
    };
    const packed = await mustRun("npm", ["pack", "--pack-destination", parent], root, outside);
    tarball = path.join(parent, packed.stdout.trim().split("\n").at(-1)!);
    const install = ["install", "-g", tarball, "--prefix", path.join(parent, "prefix")];
    await mustRun("npm", [...install, "--prefer-offline", "--no-audit", "--no-fund"], parent, env);
  });
  after(() => rm(parent, { recursive: true, force: true }));

  test("holds JavaScript and what belongs to it, and neither tests nor anything private", async () => {
    const { stdout } = await mustRun("tar", ["tzf", tarball], parent, outside);
    const files = stdout.trim().split("\n");
    const isOfBundle = (file: string): boolean => /^package\/dist\/bundle\/[^/]+\.[cm]js(\.map)?$/.test(file);
    for (const name of ["tulle.mjs", "agent.cjs"]) assert.ok(files.includes(`package/dist/bundle/${name}`), name);
    const others = files.filter((file) => !/\.js$|\/package\.json$/.test(file) && !isOfBundle(file));
    assert.deepEqual(others.toSorted(), [
      "package/LICENSE",
      "package/README.md",
      "package/dist/packages/cli/bin/installed.mjs",
      "package/dist/packages/cli/bin/run-under.mjs",
    ]);
    assert.deepEqual(
      files.filter((file) => /test|node_modules|\.tulle|\.cache/.test(file)),
      [],
    );
  });

  test("runs by its name, under the Node that was installed with it", async () => {
    const { stdout } = await mustRun("tulle", ["version", "-o", "json"], parent, env);
    const { version, node } = JSON.parse(stdout) as { version: string; node: string };
    assert.equal(version, (await manifestOf(".")).version);
    assert.equal(node, process.versions.node);
  });

  test("runs from its bundle, and from the packages where that is missing", async () => {
    const dist = path.join(parent, "prefix/lib/node_modules/tulle/dist");
    for (const hidden of ["packages/cli/src/start.js", "bundle/tulle.mjs"]) {
      const file = path.join(dist, hidden);
      await rename(file, `${file}-`);
      try {
        assert.match((await mustRun("tulle", ["version"], parent, env)).stdout, /^tulle /);
      } finally {
        await rename(`${file}-`, file);
      }
    }
  });

  test("runs a folder of manifests", async () => {
    const deployment = { ...helloDeployment, spec: { ...helloDeployment.spec, replicas: 1 } };
    await using mesh = await SmallMesh.start({ command: ["tulle"], env, deployment });
    await mesh.waitUntilConverged(1);
    assert.match(await mesh.tulle("proxy-status"), /SYNCED/);
  });
});

test("the package brings what its parts need, and is published by nobody by accident", async () => {
  const manifest = await manifestOf(".");
  const parts = await readdir(path.join(root, "packages"));
  const needed = await Promise.all(
    parts.map(async (name) => Object.entries((await manifestOf(`packages/${name}`)).dependencies ?? {})),
  );
  const outside = needed.flat().filter(([name]) => !name.startsWith("@tulle/"));
  assert.deepEqual(manifest.dependencies, Object.fromEntries(outside));
  assert.equal(manifest.private, true);
});

async function mustRun(
  command: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<CommandResult> {
  const ran = await runCommand(command, args, { cwd, env, timeoutMs: npmTimeoutMs });
  assert.equal(ran.code, 0, `${command} ${args.join(" ")}:\n${ran.stdout}${ran.stderr}`);
  return ran;
}

/** What npm tells its scripts is about this test run; and the Node on PATH is to be any, not the one of this clone. */
function npmFreeEnvironment(): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(([name]) => !/^npm_|^NODE_TEST_CONTEXT$|^TULLE_/.test(name));
  const searchPath = (process.env["PATH"] ?? "").split(":").filter((folder) => !folder.startsWith(root));
  return { ...Object.fromEntries(kept), PATH: searchPath.join(":") };
}
