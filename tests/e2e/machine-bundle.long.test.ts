// The one file for a machine, on a system that has nothing but its C library and a shell: unpacked into a root of its
// own, it joins by one command, its programs are captured, and names of the mesh are theirs.
import assert from "node:assert/strict";
import { chmod, cp, mkdir, realpath, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { debianTool } from "../tools/debian-tool.ts";
import { waitFor } from "../tools/processes.ts";
import { runCommand } from "../tools/run-command.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { answerOf, MachineStage } from "./machine-stage.ts";

const repository = path.resolve(import.meta.dirname, "../..");

async function mustRun(command: string, ...args: readonly string[]): Promise<string> {
  const result = await runCommand(command, args, { timeoutMs: 300_000 });
  assert.equal(result.code, 0, result.stderr);
  return result.stdout;
}

/** Files of the C library that a program needs, the loader among them. */
async function systemLibraries(program: string): Promise<readonly string[]> {
  const listed = await mustRun("ldd", program);
  const files = [...listed.matchAll(/(?:=> )?(\/\S+) \(/g)].map(([, file = ""]) => file);
  return files.filter((file) => /\/(?:ld-linux|lib(?:c|m|dl|pthread|rt)\.so)/.test(file));
}

async function bareSystem(): Promise<string> {
  const root = temporaryFolder("tulle-bare-");
  const bundle = path.join(root, "tulle-vm.tar.gz");
  await mustRun(process.execPath, path.join(repository, "tools/machine-bundle.ts"), "-o", bundle);
  for (const folder of ["opt", "bin", "proc", "dev", "etc", "tmp", "var/lib"]) {
    await mkdir(path.join(root, folder), { recursive: true });
  }
  await mustRun("tar", "-C", path.join(root, "opt"), "-xzf", bundle);
  const node = path.join(root, `opt/tulle/node_modules/node-${process.platform}-${process.arch}/bin/node`);
  for (const file of new Set([...(await systemLibraries(node)), ...(await systemLibraries("/bin/sh"))])) {
    const target = path.join(root, file);
    await mkdir(path.dirname(target), { recursive: true });
    await cp(await realpath(file), target);
  }
  await cp(await realpath("/bin/sh"), path.join(root, "bin/sh"));
  await chmod(root, 0o755);
  for (const device of ["null", "urandom"]) await writeFile(path.join(root, "dev", device), "");
  return root;
}

const root = await bareSystem();

test("a machine with nothing but the file joins, and is called by name over mutual TLS", async (t) => {
  const mounts = ["/proc", "/dev/null", "/dev/urandom"].map((file) => `mount --rbind ${file} ${root}${file}`);
  const enter = `${mounts.join(" && ")} && exec chroot ${root} /opt/tulle/tulle "$@"`;
  const bare = ["env", "-i", `PATH=${process.env["PATH"]}`, "unshare", "--mount", "sh", "-c", enter, "tulle"];
  const stage = await MachineStage.open();
  t.after(() => stage[Symbol.asyncDispose]());
  const ledger = await stage.machine("ledger");
  const payroll = await stage.machine("payroll");
  await writeFile(path.join(root, "tmp/token"), await stage.token("ledger"));
  await ledger.joinBy(bare, "--token-file", "/tmp/token", "--state", "/var/lib/tulle");
  await payroll.join(await stage.token("payroll"));
  await ledger.waitUntil("healthy");
  await payroll.waitUntil("healthy");
  const answers = async (): Promise<boolean> => (await payroll.call("http://ledger.internal/")).endsWith(" 200");
  await waitFor(answers, { what: "ledger by name" });
  assert.equal(answerOf(await payroll.call("http://ledger.internal/")).name, "ledger");
  await waitFor(async () => (await ledger.call("http://payroll.internal/")).endsWith(" 200"), { what: "payroll" });
  const { caller } = answerOf(await ledger.call("http://payroll.internal/"));
  assert.equal(caller, "spiffe://cluster.local/ns/shop/sa/ledger");
});

test("programs of a captured machine know nothing of the mesh, and call and are called by name", async (t) => {
  await debianTool("nftables");
  const stage = await MachineStage.open();
  t.after(() => stage[Symbol.asyncDispose]());
  const ledger = await stage.machine("ledger");
  const payroll = await stage.machine("payroll", { appAddress: "0.0.0.0" });
  await ledger.join(await stage.token("ledger"));
  await writeFile(path.join(root, "tmp/token"), await stage.token("payroll"));
  const tulle = ["env", `PATH=${process.env["PATH"]}:/usr/sbin:/sbin`, path.join(root, "opt/tulle/tulle")];
  const state = path.join(root, "var/lib/captured");
  await payroll.joinBy(tulle, "--token-file", path.join(root, "tmp/token"), "--state", state, "--capture");
  await ledger.waitUntil("healthy");
  await payroll.waitUntil("healthy");
  const asNobody = async (url: string): Promise<string> => {
    const who = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    const result = await payroll.run("setpriv", ...who, "curl", "-sS", "-m", "20", "-w", " %{http_code}", url);
    return result.stdout + result.stderr;
  };
  await waitFor(async () => (await asNobody("http://ledger.internal/")).endsWith(" 200"), {
    what: "ledger by a name that the agent answers",
    details: () => payroll.agent?.output() ?? "",
  });
  const outward = answerOf(await asNobody("http://ledger.internal/"));
  assert.deepEqual(outward, { name: "ledger", caller: "spiffe://cluster.local/ns/shop/sa/payroll" });
  await waitFor(async () => (await ledger.call("http://payroll.internal/")).endsWith(" 200"), { what: "payroll" });
  const inward = answerOf(await ledger.call("http://payroll.internal/"));
  assert.deepEqual(inward, { name: "payroll", caller: "spiffe://cluster.local/ns/shop/sa/ledger" });
  // In the clear, to the program itself: STRICT is its proxy's word.
  const plain = await ledger.run("curl", "-sS", "-m", "20", `http://${payroll.address}:9080/`);
  assert.notEqual(plain.code, 0);
  await payroll.agent!.stop();
  const rules = await payroll.run("nft", "list", "ruleset");
  assert.doesNotMatch(rules.stdout, /tulle_capture/);
});
