// What another user of the machine does to get at a mesh: takes its addresses before it or while it restarts, plants instances, crowds
// the API, reads what it may. It is sent nothing, ends nothing and keeps nobody out. Two real users; so this runs as root.
import assert from "node:assert/strict";
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { processStartTime } from "@tulle/local/instance";
import { type CommandResult, ShopInstance, httpRequest } from "./shop-instance.ts";
import { type StartedProcess, startProcess, waitFor } from "../tools/processes.ts";
import { ToolUnavailable } from "../tools/tool-unavailable.ts";
import type { SquatterTask } from "./squatter-program.ts";

const nobody = 65_534;
const entry = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");

function requireRoot(): void {
  if (process.getuid?.() === 0) return;
  throw new ToolUnavailable("root", "only root may start a program under another user's id; run this test as root");
}

class Squatter implements AsyncDisposable {
  readonly #process: StartedProcess;

  private constructor(started: StartedProcess) {
    this.#process = started;
  }

  static async start(task: Omit<SquatterTask, "uid">): Promise<Squatter> {
    const program = path.join(import.meta.dirname, "squatter-program.ts");
    const input = JSON.stringify({ uid: nobody, ...task });
    const started = await startProcess(process.execPath, [program], { name: "another user's program", input });
    await started.waitForOutput(/"ready"/);
    return new Squatter(started);
  }

  has(at: string): Promise<unknown> {
    return this.#process.waitForOutput(new RegExp(`"listening":"${at}"`), { timeoutMs: 30_000 });
  }

  crowded(): Promise<unknown> {
    return this.#process.waitForOutput(/"crowded"/, { timeoutMs: 30_000 });
  }

  /** All that was sent to it. */
  received(): string {
    return this.#process
      .stdout()
      .split("\n")
      .filter((line) => line.includes('"received"'))
      .map((line) => (JSON.parse(line) as { readonly text: string }).text)
      .join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stop({ signal: "SIGKILL" });
  }
}

async function addressesOf(shop: ShopInstance): Promise<{ readonly api: string; readonly xds: string }> {
  const text = await readFile(path.join(shop.folder, ".tulle", "instance.json"), "utf8");
  const { apiUrl, xdsAddress } = JSON.parse(text) as { readonly apiUrl: string; readonly xdsAddress: string };
  return { api: new URL(apiUrl).host, xds: xdsAddress };
}

/** Tokens, keys, manifests and requests: nothing of it may have left. What the agents begin a handshake with is no secret. */
async function assertNothingTold(shop: ShopInstance, squatter: Squatter): Promise<void> {
  const received = squatter.received();
  const token = (await readFile(path.join(shop.folder, ".tulle", "token"), "utf8")).trim();
  for (const secret of [token, "Bearer", "authorization", "HTTP/1.1", "apiVersion", "eyJ"]) {
    assert.ok(!received.includes(secret), `it was sent ${secret}`);
  }
}

test("an address of the control plane that another user has stops the start, and nothing is sent there", async () => {
  requireRoot();
  await using shop = await ShopInstance.start();
  const { api, xds } = await addressesOf(shop);
  await shop.up.stop({ signal: "SIGINT", timeoutMs: 30_000 });
  for (const at of [api, xds]) {
    await using squatter = await Squatter.start({ listen: [at] });
    await squatter.has(at);
    await using again = await startProcess(process.execPath, [entry, "up", shop.folder], { name: "tulle up" });
    const { code } = await waitFor(() => again.exit, { what: "the start to end", timeoutMs: 30_000 });
    assert.equal(code, 1);
    assert.match(
      again.stderr(),
      new RegExp(
        `cannot listen on ${at}: it is in use by .* of user \\S+ \\(uid ${nobody}\\)\\s+Have that program ended`,
      ),
    );
    await assertNothingTold(shop, squatter);
  }
});

test("an address that another user takes while the control plane restarts is told of, and nothing is sent there", async () => {
  requireRoot();
  await using shop = await ShopInstance.start();
  const { api, xds } = await addressesOf(shop);
  const before = (await shop.processes()).get("control-plane")!;
  {
    await using squatter = await Squatter.start({ listen: [api, xds] });
    process.kill(before, "SIGKILL");
    await squatter.has(api);
    await squatter.has(xds);
    const told = new RegExp(
      `control plane ended .*an address is taken: 127\\S+ is in use by .* of user \\S+ \\(uid ${nobody}\\)`,
    );
    await shop.up.waitForOutput(told, { timeoutMs: 30_000 });
    const rule = path.join(shop.folder, "rules", "2-everything-to-v1.yaml");
    const lines = [
      ["pods"],
      ["get", "svc"],
      ["apply", "-f", rule],
      ["proxy-status"],
      ["x", "wait"],
      ["analyze"],
      ["ca", "show"],
    ];
    for (const line of lines) {
      const { code, stderr } = await shop.tulle(...line);
      assert.equal(code, 3, `${line.join(" ")}: ${stderr}`);
      assert.match(stderr, /control-plane\.sock cannot be reached/);
    }
    assert.equal((await shop.get("/api/catalog")).status, 200, "traffic goes on");
    await assertNothingTold(shop, squatter);
  }
  await waitFor(async () => (await shop.tulle("pods")).code === 0, { what: "the control plane", timeoutMs: 60_000 });
  await shop.waitForSync();
});

test("1,100 idle connections and 300 watches of another user keep nobody out, and are told nothing", async () => {
  requireRoot();
  await using shop = await ShopInstance.start();
  const { api } = await addressesOf(shop);
  const host = `host: ${api}\r\n`;
  const watch = `GET /api/v1/watch HTTP/1.1\r\n${host}\r\n`;
  await using idle = await Squatter.start({ listen: [], crowd: { at: api, count: 1100, text: "" } });
  await using watchers = await Squatter.start({ listen: [], crowd: { at: api, count: 300, text: watch } });
  await idle.crowded();
  await watchers.crowded();
  await shop.applyRule("2-everything-to-v1");
  assert.equal((await shop.pods()).length, 5);
  const pages = [
    "debug/config_dump?proxyID=webapp.shop",
    "debug/configz",
    "debug/syncz",
    "api/v1/resources/Pod",
    "api/v1/resources/Deployment",
  ];
  for (const page of pages) {
    const { status, body } = await httpRequest(`http://${api}/${page}`);
    assert.equal(status, 403, page);
    assert.match(body, /only \/ready, \/version and \/metrics/);
  }
  assert.match((await httpRequest(`http://${api}/metrics`)).body, /^pilot_services \d/m);
});

interface Planted {
  readonly uid: number;
  readonly mode: number;
  readonly fileUid: number;
  readonly fileMode: number;
}

/** A folder in which another user has planted what looks like an instance, and a folder of ours in it. */
class PlantedFolder {
  readonly root: string;
  readonly work: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly victim: StartedProcess;
  readonly instance: string;

  private constructor(root: string, victim: StartedProcess, instance: string) {
    this.root = root;
    this.work = path.join(root, "work");
    this.#env = { XDG_STATE_HOME: path.join(root, "state"), TULLE_DIR: "" };
    this.victim = victim;
    this.instance = instance;
  }

  static async make(context: TestContext, at: string): Promise<PlantedFolder> {
    const root = await mkdtemp(path.join(tmpdir(), "tulle-planted-"));
    context.after(() => rm(root, { recursive: true, force: true }));
    await chmod(root, 0o755);
    await mkdir(path.join(root, "work"));
    const token = path.join(root, "work", "token");
    await writeFile(token, "the owner's secret\n", { mode: 0o600 });
    const victim = await startProcess("sleep", ["600"], { name: "somebody's process" });
    context.after(() => victim.stop({ signal: "SIGKILL" }));
    const instance = {
      dir: root,
      stateDir: path.join(root, ".tulle"),
      pid: victim.pid,
      pidStartTime: await processStartTime(victim.pid),
      apiUrl: `http://${at}`,
      xdsAddress: at,
      tokenFile: token,
      publishedPorts: [],
      ready: true,
    };
    return new PlantedFolder(root, victim, JSON.stringify(instance));
  }

  /** `.tulle` below `folder`, with the instance in it. */
  async plant(
    folder: string,
    { uid = nobody, mode = 0o755, fileUid = nobody, fileMode = 0o644 }: Partial<Planted> = {},
  ): Promise<void> {
    const state = path.join(folder, ".tulle");
    const file = path.join(state, "instance.json");
    await rm(state, { recursive: true, force: true });
    await mkdir(state, { recursive: true });
    await writeFile(file, this.instance);
    await chown(file, fileUid, fileUid);
    await chmod(file, fileMode);
    await chown(state, uid, uid);
    await chmod(state, mode);
  }

  async tulle(...args: readonly string[]): Promise<CommandResult> {
    const command = await startProcess(process.execPath, [entry, ...args], { env: this.#env, cwd: this.work });
    const { code } = await command.exited;
    await waitFor(() => command.child.stderr?.closed === true, { what: "the command's output" });
    return { code, stdout: command.stdout(), stderr: command.stderr() };
  }
}

test("an instance that another user has planted is told of, sent nothing, and its process is not ended", async (context) => {
  requireRoot();
  const at = "127.251.77.1:15014";
  await using squatter = await Squatter.start({ listen: [at] });
  await squatter.has(at);
  const planted = await PlantedFolder.make(context, at);
  const { root } = planted;
  const manifest = path.join(planted.work, "account.yaml");
  await writeFile(manifest, "apiVersion: v1\nkind: ServiceAccount\nmetadata: { name: secret-plan, namespace: shop }\n");
  const link = async (): Promise<void> => {
    await planted.plant(path.join(root, "elsewhere"), { uid: 0, fileUid: 0 });
    await rm(path.join(root, ".tulle"), { recursive: true, force: true });
    await symlink(path.join(root, "elsewhere", ".tulle"), path.join(root, ".tulle"));
  };
  const rows: readonly { readonly name: string; readonly plant: () => Promise<void>; readonly why: RegExp }[] = [
    { name: "their folder", plant: () => planted.plant(root), why: /\.tulle belongs to user .*65534/ },
    {
      name: "a folder to which all may write",
      plant: () => planted.plant(root, { uid: 0, mode: 0o777 }),
      why: /may be written by other users \(mode 777\)/,
    },
    {
      name: "their file in a folder of ours",
      plant: () => planted.plant(root, { uid: 0 }),
      why: /instance\.json belongs to user .*65534/,
    },
    {
      name: "a file to which a group may write",
      plant: () => planted.plant(root, { uid: 0, fileUid: 0, fileMode: 0o664 }),
      why: /instance\.json may be written by other users \(mode 664\)/,
    },
    { name: "a link to a folder of ours", plant: link, why: /\.tulle is a symbolic link/ },
  ];
  // Found upwards, and named.
  const lines = [
    ["pods"],
    ["down", "--force"],
    ["get", "svc", "--dir", root],
    ["apply", "-f", manifest, "--dir", root],
    ["down", "--dir", root],
    ["logs", "control-plane", "--dir", root],
  ];
  for (const { name, plant, why } of rows) {
    await context.test(name, async () => {
      await plant();
      for (const line of lines) {
        const { code, stderr } = await planted.tulle(...line);
        assert.equal(code, 3, stderr);
        assert.match(stderr.replaceAll(/\s+/g, " "), why);
      }
      assert.equal(planted.victim.exit, undefined, "nobody's process was ended");
    });
  }
  await context.test("one in the list of instances", async () => {
    await planted.plant(path.join(root, "elsewhere"));
    await rm(path.join(root, ".tulle"), { recursive: true, force: true });
    const list = path.join(root, "state", "tulle", "instances");
    await mkdir(list, { recursive: true });
    await writeFile(path.join(list, "a.json"), JSON.stringify({ dir: path.join(root, "elsewhere") }));
    const { code, stderr } = await planted.tulle("down", "--force");
    assert.equal(code, 3);
    assert.match(stderr, /passed over: .*belongs to user .*\n.*no instance is running/);
    await chown(list, nobody, nobody);
    assert.match((await planted.tulle("pods")).stderr, /instances belongs to user/);
  });
  await context.test("a file of ours that names a process which is no supervisor", async () => {
    await planted.plant(root, { uid: 0, fileUid: 0, mode: 0o700, fileMode: 0o600 });
    for (const line of [["down"], ["down", "--force"]]) {
      const { code, stderr } = await planted.tulle(...line);
      assert.equal(code, 3);
      assert.match(stderr, /nobody answers for .*nothing is ended/s);
    }
    assert.equal((await planted.tulle("apply", "-f", manifest)).code, 3);
    assert.equal(planted.victim.exit, undefined);
  });
  assert.equal(squatter.received(), "", "nothing was sent");
});

/** Every file, folder and socket below, with its mode. */
async function modesBelow(folder: string): Promise<ReadonlyMap<string, string>> {
  const modes = new Map<string, string>();
  for (const name of await readdir(folder, { recursive: true })) {
    const stats = await lstat(path.join(folder, name)).catch(() => undefined); // a draft may be gone already
    if (stats !== undefined) modes.set(name, (stats.mode & 0o777).toString(8));
  }
  return modes;
}

test("under umask 000, in a folder that was open to all, what is kept is its owner's alone", async () => {
  requireRoot();
  const before = process.umask(0);
  try {
    let state = "";
    await using shop = await ShopInstance.start({
      prepare: async (folder) => {
        state = path.join(folder, ".tulle");
        await mkdir(path.join(state, "ca"), { recursive: true, mode: 0o777 });
        await writeFile(path.join(state, "token"), "known-to-all\n", { mode: 0o666 });
      },
    });
    assert.match(shop.up.output(), /other users could reach .*\.tulle: it is closed to them now/);
    await shop.applyRule("2-everything-to-v1");
    assert.notEqual((await readFile(path.join(state, "token"), "utf8")).trim(), "known-to-all");
    assert.equal(((await lstat(state)).mode & 0o777).toString(8), "700");
    const home = path.dirname(path.dirname(shop.rootFile));
    for (const folder of [state, home]) {
      for (const [name, mode] of await modesBelow(folder)) {
        // Node keeps compiled code there by itself; roots are for everyone to read.
        if (name.startsWith("compile-cache") || name.endsWith("root-cert.pem")) continue;
        assert.match(mode, /00$/, `${name} has mode ${mode}`);
      }
    }
  } finally {
    process.umask(before);
  }
});
