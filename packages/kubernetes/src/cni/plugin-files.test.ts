// A runtime's folders on a node, as they are, as others change them, and as somebody would misuse them.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { Logging } from "@tulle/telemetry";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { withoutPlugin, withPlugin } from "./network-list.ts";
import { PluginFiles } from "./plugin-files.ts";

const settings = { socket: "/run/tulle-cni/cni.sock", excludeNamespaces: ["kube-system"] };
const bridge = { cniVersion: "1.0.0", name: "pods", plugins: [{ type: "bridge", mtu: 1400 }, { type: "portmap" }] };
const ours = { type: "tulle-cni", ...settings };

test("the plug-in is the last of the list, once, and leaves what it found", () => {
  const text = JSON.stringify(bridge);
  const added = withPlugin(text, settings)!;
  assert.deepEqual(JSON.parse(added), { ...bridge, plugins: [...bridge.plugins, ours] });
  assert.equal(withPlugin(added, settings), undefined);
  const other = { ...settings, socket: "/run/b" };
  assert.deepEqual((JSON.parse(withPlugin(added, other)!) as typeof bridge).plugins.at(-1), {
    ...ours,
    socket: "/run/b",
  });
  assert.deepEqual(JSON.parse(withoutPlugin(added)!), bridge);
  assert.equal(withoutPlugin(text), undefined);
  const single = withPlugin('{"cniVersion":"0.3.1","name":"a","type":"bridge","mtu":1}', settings)!;
  assert.deepEqual(JSON.parse(single), { cniVersion: "0.3.1", name: "a", plugins: [{ type: "bridge", mtu: 1 }, ours] });
  for (const bad of ["[", "null", "{}", '{"plugins":[]}', '{"plugins":[1]}']) {
    assert.throws(() => withPlugin(bad, settings), SyntaxError, bad);
  }
});

async function node(t: TestContext) {
  const folder = temporaryFolder("cni-node-");
  const [configuration, programs] = ["net.d", "bin"].map((name) => path.join(folder, name)) as [string, string];
  for (const each of [configuration, programs]) await mkdir(each);
  const program = path.join(folder, "program");
  await writeFile(program, "a program");
  const lines: string[] = [];
  const log = new Logging({ level: "info", sink: ({ message }) => lines.push(message) }).logger("cni");
  const make = (): PluginFiles =>
    new PluginFiles({ configurationFolder: configuration, programFolder: programs, program, settings, log });
  const keep = (): Promise<void> => {
    const stop = new AbortController();
    const kept = make().keep(stop.signal);
    t.after(async () => {
      stop.abort();
      await kept;
    });
    return kept;
  };
  return { configuration, programs, lines, make, keep };
}

test("it comes back whatever another program writes, and is taken out", async (t) => {
  const { configuration, programs, make, keep } = await node(t);
  const file = path.join(configuration, "10-pods.conflist");
  await writeFile(file, JSON.stringify(bridge));
  void keep();
  const isThere = (): Promise<boolean> => readFile(file, "utf8").then((text) => text.includes("tulle-cni"));
  await waitFor(isThere, { what: "the plug-in" });
  await writeFile(`${file}.new`, JSON.stringify({ ...bridge, name: "upgraded" }));
  await rename(`${file}.new`, file);
  await waitFor(isThere, { what: "the plug-in after an upgrade" });
  assert.match(await readFile(file, "utf8"), /upgraded/);
  assert.deepEqual(await readdir(programs), ["tulle-cni"]);
  assert.deepEqual(await readdir(configuration), ["10-pods.conflist"]);
  await make().remove();
  assert.deepEqual(await readdir(programs), []);
});

test("what others may write is not touched", async (t) => {
  const { configuration, lines, keep } = await node(t);
  const file = path.join(configuration, "05-pods.conflist");
  await writeFile(file, JSON.stringify(bridge));
  await chmod(file, 0o666);
  void keep();
  await waitFor(() => lines.some((line) => line.includes("can be written by others")), { what: "the refusal" });
  assert.deepEqual(JSON.parse(await readFile(file, "utf8")), bridge);
});

test("what is a link is not followed", async (t) => {
  const { configuration, lines, keep } = await node(t);
  const target = path.join(configuration, "target");
  await writeFile(target, JSON.stringify(bridge));
  await symlink(target, path.join(configuration, "10-pods.conflist"));
  void keep();
  await waitFor(() => lines.some((line) => line.includes("is a symbolic link")), { what: "the refusal" });
  assert.deepEqual(JSON.parse(await readFile(target, "utf8")), bridge);
});
