// kill -9 of `tulle up --mode namespaces` at many moments of a start and of an end: whatever it was doing, nothing of
// it is left on the machine.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { debianTool } from "../tools/debian-tool.ts";
import { OrdinaryUser } from "../tools/ordinary-user.ts";
import { waitFor } from "../tools/processes.ts";
import { assertNothingLeft, machineOf, namespacesOf } from "./machine-traces.ts";
import { ShopInstance } from "./shop-instance.ts";

let user: OrdinaryUser;
before(async () => {
  for (const name of ["iproute2", "nftables", "newuidmap"] as const) await debianTool(name);
  user = await OrdinaryUser.make();
});
after(() => user?.[Symbol.asyncDispose]());

/** One that leaves its process group, as daemons do, before it listens. */
const daemon = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: daemon, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: daemon } }
  template:
    metadata:
      labels: { app: daemon }
      annotations: { local.tulle.io/command.daemon: '["sh", "-c", "setsid sleep 3600 & exec sleep 3600"]' }
    spec: { containers: [{ name: daemon }] }
`;

type Moment = (shop: ShopInstance) => Promise<unknown>;

const said =
  (pattern: RegExp): Moment =>
  (shop) =>
    shop.up.waitForOutput(pattern);
const namespaces =
  (count: number): Moment =>
  (shop) =>
    waitFor(() => namespacesOf(shop.folder).size >= count, { what: `${count} namespaces`, intervalMs: 1 });
const file =
  (...words: readonly string[]): Moment =>
  (shop) =>
    waitFor(() => existsSync(path.join(shop.folder, ".tulle", ...words)), { what: words.join("/"), intervalMs: 1 });
const ending =
  (then: Moment): Moment =>
  async (shop) => {
    await shop.up.waitForOutput(/^Ready\b/m);
    process.kill(shop.up.pid, "SIGINT");
    await then(shop);
  };
const gone =
  (left: number): Moment =>
  (shop) =>
    waitFor(() => namespacesOf(shop.folder).size <= left, { what: `${left} namespaces to be left`, intervalMs: 1 });

const moments: readonly { readonly name: string; readonly until: Moment }[] = [
  { name: "its state is locked", until: file("lock") },
  { name: "its first network is there", until: namespaces(1) },
  { name: "the control plane has made the mesh's authority", until: file("ca", "root-cert.pem") },
  { name: "a pod's proxy is to start", until: said(/starting its proxy/) },
  { name: "the first namespaces of pods are there", until: namespaces(4) },
  { name: "half of them are there", until: namespaces(9) },
  { name: "an app is to start", until: said(/: starting$/m) },
  { name: "a pod is ready", until: said(/: ready$/m) },
  { name: "all is ready", until: said(/^Ready\b/m) },
  { name: "it begins to end", until: ending(() => Promise.resolve()) },
  { name: "some pods have gone", until: ending(gone(10)) },
  { name: "nearly all have gone", until: ending(gone(3)) },
];

for (const [index, { name, until }] of moments.entries()) {
  for (const who of index % 3 === 0 ? (["root", "an ordinary user"] as const) : (["root"] as const)) {
    test(`killed when ${name}, run by ${who}`, { timeout: 300_000 }, async () => {
      await using shop = await ShopInstance.begin({
        args: ["--mode", "namespaces"],
        without: ["productpage.yaml", "gateway.yaml", "webapp.yaml", "account.yaml"],
        prepare: (folder) => writeFile(path.join(folder, "daemon.yaml"), daemon),
        ...(who === "root" ? {} : { user, env: { HOME: "/nonexistent", XDG_RUNTIME_DIR: undefined } }),
      });
      const machine = await machineOf(shop.folder);
      await until(shop);
      const found = namespacesOf(shop.folder);
      process.kill(shop.up.pid, "SIGKILL");
      const { signal } = await shop.up.exited;
      assert.equal(signal, "SIGKILL", "it had not ended by itself");
      await assertNothingLeft(shop.folder, found, machine);
    });
  }
}
