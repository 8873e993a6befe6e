// The script `./tulle` of a clone: found through links and from any folder, whatever the folders are called, with the
// name to type.
import assert from "node:assert/strict";
import { chmod, copyFile, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { runCommand } from "../tools/run-command.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** Says how it was started. */
const echoProgram = `
console.log(JSON.stringify({ script: process.argv[1], args: process.argv.slice(2), as: process.env.TULLE_INVOKED_AS }));
process.exitCode = 3;
`;

describe("a clone in a folder with spaces", () => {
  let folder: string;
  let clone: string;
  before(async () => {
    folder = await realpath(await mkdtemp(path.join(tmpdir(), "tulle launcher ")));
    clone = path.join(folder, "my $clone");
    await mkdir(path.join(clone, "packages", "cli", "bin"), { recursive: true });
    await mkdir(path.join(clone, "node_modules", ".bin"), { recursive: true });
    await mkdir(path.join(folder, "on path"));
    await copyFile(path.join(root, "tulle"), path.join(clone, "tulle"));
    await chmod(path.join(clone, "tulle"), 0o755);
    await symlink(process.execPath, path.join(clone, "node_modules", ".bin", "node"));
    await writeFile(path.join(clone, "packages", "cli", "bin", "tulle.mjs"), echoProgram);
    await symlink("../my $clone/tulle", path.join(folder, "link"));
    await symlink("../link", path.join(folder, "on path", "tulle"));
    await rm(path.join(folder, "link"));
    await symlink("my $clone/tulle", path.join(folder, "link"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const ways = [
    { name: "there", cwd: "my $clone", command: "./tulle", as: "./tulle" },
    { name: "from elsewhere", cwd: "on path", command: "'../my $clone/tulle'", as: "../my $clone/tulle" },
    { name: "by a link of a link", cwd: ".", command: "'on path/tulle'", as: "on path/tulle" },
    { name: "by its name", cwd: ".", command: "tulle", as: "FOLDER/on path/tulle" },
  ];
  for (const { name, cwd, command, as } of ways) {
    test(`runs ${name}`, async () => {
      const ran = await runCommand("/bin/sh", ["-c", `${command} up 'a b' '' '*'`], {
        cwd: path.join(folder, cwd),
        env: { PATH: `${path.join(folder, "on path")}:/usr/bin:/bin` },
      });
      assert.equal(ran.code, 3, ran.stderr);
      assert.deepEqual(JSON.parse(ran.stdout), {
        script: path.join(clone, "packages", "cli", "bin", "tulle.mjs"),
        args: ["up", "a b", "", "*"],
        as: as.replace("FOLDER", folder),
      });
    });
  }

  test("says what is missing where there is no Node at all", async () => {
    await rm(path.join(clone, "node_modules"), { recursive: true });
    const tools = path.join(folder, "tools");
    await mkdir(tools);
    for (const tool of ["dirname", "readlink"]) await symlink(`/usr/bin/${tool}`, path.join(tools, tool));
    const ran = await runCommand("/bin/sh", ["-c", "./tulle up"], { cwd: clone, env: { PATH: tools } });
    assert.equal(ran.code, 1);
    assert.match(ran.stderr, /^tulle: there is no Node on PATH: any version from 18 on/);
  });
});

test("names the command to type next as it was typed", async () => {
  const ran = await runCommand("/bin/sh", ["-c", "./tulle nonsense"], { cwd: root });
  assert.equal(ran.code, 2);
  assert.equal(ran.stderr, "tulle: unknown command 'nonsense'\n'./tulle --help' lists all commands.\n");
});
