// `tulle up --mode namespaces` by a user who is not root: the same shop, in a user namespace; what it says
// where something is missing; and that nothing is left.
import assert from "node:assert/strict";
import { readdir, readFile, readlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { debianTool } from "../tools/debian-tool.ts";
import { startProcess } from "../tools/processes.ts";
import { OrdinaryUser } from "../tools/ordinary-user.ts";
import { assertNothingLeft, machineOf, namespacesOf } from "./machine-traces.ts";
import { assertAttacksFailed, attackScript } from "./state-attacks.ts";
import { ShopInstance, type ShopOptions } from "./shop-instance.ts";

let user: OrdinaryUser;
const args = ["--mode", "namespaces"];
const env = { HOME: "/nonexistent", XDG_RUNTIME_DIR: undefined, NODE_COMPILE_CACHE: undefined };
const begin = (options: ShopOptions = {}): Promise<ShopInstance> => ShopInstance.begin({ args, user, env, ...options });

before(async () => {
  for (const name of ["iproute2", "nftables", "curl", "newuidmap"] as const) await debianTool(name);
  user = await OrdinaryUser.make();
});
after(() => user?.[Symbol.asyncDispose]());

const nobody = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: plain, namespace: shop }
spec:
  replicas: 1
  selector: { matchLabels: { app: plain } }
  template:
    metadata:
      labels: { app: plain }
      annotations: { local.tulle.io/command.plain: '["sleep", "infinity"]' }
    spec: { securityContext: { runAsUser: 65534 }, containers: [{ name: plain }] }
`;

describe("a shop of an ordinary user's", { timeout: 300_000 }, () => {
  let shop: ShopInstance;
  const run = (pod: string, ...command: readonly string[]): Promise<string> =>
    shop.mustTulle("exec", pod, "--", ...command);

  before(async () => {
    shop = await begin({ prepare: (folder) => writeFile(path.join(folder, "plain.yaml"), nobody) });
    await shop.up.waitForOutput(/^Ready\b/m);
  });
  after(() => shop?.[Symbol.asyncDispose]());

  test("the published port leads to all of it, and no process of it is root's", async () => {
    const { status, body } = await shop.get("/productpage");
    assert.equal(status, 200);
    assert.match(body, /<html/);
    for (const [name, pid] of await shop.processes()) {
      const [, uid] = /^Uid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))!;
      assert.notEqual(uid, "0", name);
    }
  });

  test("no program of it is given a namespace", async () => {
    for (const [name, pid] of await shop.processes()) {
      if (name === "supervisor") continue;
      const open = await readdir(`/proc/${pid}/fd`);
      const links = await Promise.all(open.map((each) => readlink(`/proc/${pid}/fd/${each}`).catch(() => "")));
      assert.deepEqual(
        links.filter((each) => /^[a-z]+:\[/.test(each) && !/^(pipe|socket):/.test(each)),
        [],
        name,
      );
    }
  });

  test("commands run in pods, and their calls go through the sidecars", async () => {
    for (const [pod, uid] of [
      ["webapp", "0"],
      ["plain", "65534"],
    ] as const) {
      assert.equal((await run(pod, "id", "-u")).trim(), uid);
      const answer = await run(pod, "curl", "-sS", "-i", "http://catalog/items/1");
      assert.match(answer, /^HTTP\/1\.1 200/);
      assert.match(answer, /^server: envoy/m);
    }
    assert.match(await run("webapp", "cat", "/proc/self/uid_map"), new RegExp(`^ +0 +${user.uid} +1$`, "m"));
    assert.match(await shop.mustTulle("proxy-config", "routes", "webapp"), /catalog\.shop/);
  });

  test("a pod reaches neither the machine's servers nor the rules of its own network", async () => {
    const { code } = await shop.tulle("exec", "webapp", "--", "curl", "-m", "10", `http://127.0.0.1:${shop.port}/`);
    assert.notEqual(code, 0);
    for (const command of [
      "nft delete table inet tulle_capture",
      "setpriv --reuid=1337 --clear-groups -- id",
      "nsenter --net=/proc/1/ns/net -- id",
    ]) {
      const tried = await shop.tulle("exec", "webapp", "--", "sh", "-c", `PATH=$PATH:/usr/sbin:/sbin; ${command}`);
      assert.notEqual(tried.code, 0, tried.stdout);
    }
  });

  for (const [pod, container] of [
    ["webapp", "app"],
    ["webapp", "proxy"],
    ["plain", "app"],
  ] as const) {
    test(`who is in ${pod} as its ${container} finds nothing of the mesh that is not its own`, async (t) => {
      const script = attackScript(path.join(shop.folder, ".tulle"));
      const { stdout } = await shop.tulle("exec", "-c", container, pod, "--", "sh", "-c", script);
      await assertAttacksFailed(t, stdout);
    });
  }

  test("programs outside of pods are in none of them, and go on when one has gone", async () => {
    const home = await readlink(`/proc/${shop.up.pid}/ns/pid_for_children`);
    for (const [name, pid] of await shop.processes()) {
      if (name === "supervisor" || name === "control-plane") continue;
      assert.notEqual(await readlink(`/proc/${pid}/ns/pid`), home, name);
    }
    for (const name of ["catalog-v1", "webapp", "plain"]) {
      await shop.mustTulle("rollout", "restart", `deployment/${name}`);
      await shop.mustTulle("rollout", "status", `deployment/${name}`);
    }
    assert.equal((await shop.get("/productpage")).status, 200);
  });

  test("rule 6: another traffic policy at the published ports", async () => {
    const rule = path.join(shop.folder, "rules", "6-keep-the-client-address.yaml");
    await shop.mustTulle("apply", "-f", rule);
    assert.equal((await shop.get("/productpage")).status, 200);
  });
});

test("nothing is left after tulle down", { timeout: 300_000 }, async () => {
  await using shop = await begin();
  await shop.up.waitForOutput(/^Ready\b/m);
  const machine = await machineOf(shop.folder);
  const namespaces = namespacesOf(shop.folder);
  assert.ok(namespaces.size >= 11, String(namespaces.size));
  await shop.mustTulle("down");
  await assertNothingLeft(shop.folder, namespaces, machine);
});

test("nothing is left after kill -9", { timeout: 300_000 }, async () => {
  await using shop = await begin();
  await shop.up.waitForOutput(/^Ready\b/m);
  const machine = await machineOf(shop.folder);
  await shop.mustTulle("exec", "webapp", "--", "sh", "-c", "setsid sleep 3600 >/dev/null 2>&1 & echo begun");
  const namespaces = namespacesOf(shop.folder);
  process.kill(shop.up.pid, "SIGKILL");
  await shop.up.exited;
  await assertNothingLeft(shop.folder, namespaces, machine);
  // What is left of its state is the user's own.
  const folder = path.join(shop.folder, ".tulle");
  await using removing = await startProcess("rm", ["-r", folder], { user });
  assert.equal((await removing.exited).code, 0, removing.output());
});

test("it says so and ends when the first process of all pods is ended", { timeout: 300_000 }, async () => {
  await using shop = await begin();
  await shop.up.waitForOutput(/^Ready\b/m);
  const machine = await machineOf(shop.folder);
  const namespaces = namespacesOf(shop.folder);
  process.kill(await firstProcessOf(shop.up.pid), "SIGKILL");
  const { code } = await shop.up.exited;
  assert.notEqual(code, null);
  assert.match(shop.up.output(), /the first process of the mesh was ended, and all pods with it: run tulle up again/);
  await assertNothingLeft(shop.folder, namespaces, machine);
});

/** Of the namespace in which the supervisor starts others. */
async function firstProcessOf(supervisor: number): Promise<number> {
  const home = await readlink(`/proc/${supervisor}/ns/pid_for_children`);
  for (const pid of (await readdir("/proc")).filter((each) => /^\d+$/.test(each))) {
    if ((await readlink(`/proc/${pid}/ns/pid`).catch(() => "")) !== home) continue;
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    if (/^NSpid:.*\t1$/m.test(status)) return Number(pid);
  }
  throw new Error("there is no such process");
}

test("who has no range of numbers is told so before anything is made", { timeout: 300_000 }, async (t) => {
  const file = await readFile("/etc/subgid", "utf8");
  const [, start, count] = new RegExp(`^${user.name}:(\\d+):(\\d+)$`, "m").exec(file)!;
  const range = `${start}-${Number(start) + Number(count) - 1}`;
  await user.change("--del-subgids", range);
  t.after(() => user.change("--add-subgids", range));
  await using shop = await begin();
  const { code } = await shop.up.exited;
  assert.equal(code, 1);
  assert.match(shop.up.output(), new RegExp(`/etc/subgid gives user ${user.name} no range of numbers`));
  assert.match(shop.up.output(), new RegExp(`usermod --add-subgids \\d+-\\d+ ${user.name}`));
});
