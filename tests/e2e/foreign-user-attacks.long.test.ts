// What another user of the machine does to get at a mesh: takes its addresses before it or while it restarts, plants
// instances, crowds the API, reads what it may. It is sent nothing, ends nothing and keeps nobody out. Two real users;
// so this runs as root.
import assert from "node:assert/strict";
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test, type TestContext } from "node:test";
import { processStartTime } from "@tulle/local/instance";
import { type CommandResult, ShopInstance } from "./shop-instance.ts";
import { type StartedProcess, startProcess, waitFor } from "../tools/processes.ts";
import { addressesOf, nobody, requireRoot, Squatter } from "./squatter-process.ts";

const entry = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");

/** Of a token in JSON. Three letters alone stand in the random bytes of a handshake sooner or later. */
const tokenText = /eyJ[\w-]{8,}/;

/**
 * Tokens, keys, manifests and requests: nothing of it may have left. What the agents begin a handshake with is no
 * secret.
 */
async function assertNothingTold(shop: ShopInstance, squatter: Squatter): Promise<void> {
  const received = squatter.received();
  const token = (await readFile(path.join(shop.folder, ".tulle", "token"), "utf8")).trim();
  for (const secret of [token, "Bearer", "authorization", "HTTP/1.1", "apiVersion"]) {
    assert.ok(!received.includes(secret), `it was sent ${secret}`);
  }
  assert.doesNotMatch(received, tokenText);
}

/** Every file, folder and socket below, with its mode. */
async function modesBelow(folder: string): Promise<ReadonlyMap<string, string>> {
  const modes = new Map<string, string>();
  for (const name of await readdir(folder, { recursive: true })) {
    const stats = await lstat(path.join(folder, name)).catch(() => undefined); // a draft may be gone already
    if (stats !== undefined) modes.set(name, (stats.mode & 0o777).toString(8));
  }
  return modes;
}

async function underOpenUmask<T>(work: () => Promise<T>): Promise<T> {
  const earlier = process.umask(0);
  try {
    return await work();
  } finally {
    process.umask(earlier);
  }
}

/** A state folder that everybody may have written to, with a token in it that everybody knows. */
async function leaveOpen(folder: string): Promise<void> {
  const state = path.join(folder, ".tulle");
  await mkdir(path.join(state, "ca"), { recursive: true, mode: 0o777 });
  await writeFile(path.join(state, "token"), "known-to-all\n", { mode: 0o666 });
}

describe("another user and a shop that runs", () => {
  let shop: ShopInstance;
  before(async () => {
    requireRoot();
    // The most open start there is: what is kept must be closed all the same.
    shop = await underOpenUmask(() => ShopInstance.start({ without: ["productpage.yaml"], prepare: leaveOpen }));
  });
  after(() => shop?.[Symbol.asyncDispose]());

  test("under umask 000, in a folder that was open to all, what is kept is its owner's alone", async () => {
    const state = path.join(shop.folder, ".tulle");
    assert.match(shop.up.output(), /other users could reach .*\.tulle: it is closed to them now/);
    await underOpenUmask(() => shop.applyRule("2-everything-to-v1"));
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
  });

  test("an address that another user takes while the control plane restarts is told of, and nothing is sent there", async () => {
    const { api, xds } = await addressesOf(shop);
    const earlier = (await shop.processes()).get("control-plane")!;
    {
      await using squatter = await Squatter.start({ listen: [api, xds] });
      process.kill(earlier, "SIGKILL");
      await squatter.has(api);
      await squatter.has(xds);
      const told = new RegExp(
        `control plane ended .*an address is taken: 127\\S+ is in use by .* of user \\S+ \\(uid ${nobody}\\)`,
      );
      await shop.up.waitForOutput(told);
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
    await waitFor(async () => (await shop.tulle("pods")).code === 0, { what: "the control plane" });
    await shop.waitForSync();
  });

  test("an address of the control plane that another user has stops the start, and nothing is sent there", async () => {
    const { api, xds } = await addressesOf(shop);
    await shop.up.stop({ signal: "SIGINT" });
    for (const at of [api, xds]) {
      await using squatter = await Squatter.start({ listen: [at] });
      await squatter.has(at);
      await using again = await startProcess(process.execPath, [entry, "up", shop.folder], { name: "tulle up" });
      const { code } = await waitFor(() => again.exit, { what: "the start to end" });
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
