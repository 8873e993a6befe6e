// Several instances side by side, and what is left of one whose supervisor is killed: nothing.
import assert from "node:assert/strict";
import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { freePort, startProcess, waitFor } from "../tools/processes.ts";
import { inParallel, ShopInstance } from "./shop-instance.ts";

/** What asks the catalog is enough here. */
const without = ["productpage.yaml"];

describe("an instance that runs", () => {
  let shop: ShopInstance;
  before(async () => {
    shop = await ShopInstance.start({ without });
  });
  after(() => shop?.[Symbol.asyncDispose]());

  test("two instances run side by side and do not know each other", async () => {
    await using second = await ShopInstance.start({ without });
    await shop.applyRule("2-everything-to-v1");
    await second.mustTulle("apply", "-f", path.join(second.folder, "rules", "3-dark-launch-v2.yaml"));
    await second.waitForSync();
    const dark = { "x-dark-launch": "v2" };
    assert.doesNotMatch((await shop.get("/api/catalog/items/1", dark)).body, /imageUrl/);
    assert.match((await second.get("/api/catalog/items/1", dark)).body, /imageUrl/);
    const addresses = [...(await shop.pods()), ...(await second.pods())].map(({ address }) => address);
    assert.equal(new Set(addresses).size, 8);
  });

  test("logs are followed while they grow", async () => {
    const entry = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");
    const args = [entry, "logs", "tulle-ingressgateway", "--dir", shop.folder, "-f", "--tail", "0"];
    await using follower = await startProcess(process.execPath, args, { name: "tulle logs -f" });
    // Whether it has reached the present end cannot be seen from outside: ask until a line shows.
    await waitFor(
      async () => {
        await shop.get("/api/catalog?followed");
        return follower.stdout().includes("GET /api/catalog?followed");
      },
      { what: "the line", intervalMs: 200 },
    );
    // What stood there before the command began is not shown.
    assert.doesNotMatch(follower.stdout(), /the agent runs/);
  });

  test("processes that die are started again, and requests succeed again", async () => {
    const processes = await shop.processes();
    const gateway = await shop.pod("tulle-ingressgateway");
    const catalog = await shop.pod("catalog-v1");
    for (const name of [`${gateway.name} proxy`, `${catalog.name} app`]) process.kill(processes.get(name)!, "SIGKILL");
    await waitFor(async () => (await shop.pods()).filter(({ restarts }) => restarts === 1).length === 2, {
      what: "two restarts",
    });
    await waitFor(async () => (await shop.pods()).every(({ ready }) => ready), { what: "all pods" });
    await shop.waitForSync();
    assert.equal((await shop.get("/api/catalog")).status, 200);
    assert.match(shop.up.output(), /proxy ended \(signal SIGKILL/);
  });

  test("kill -9 of the supervisor leaves no process and no lock behind", async () => {
    const earlier = await shop.processes();
    assert.equal(earlier.size, 8, [...earlier.keys()].join(", "));
    shop.up.kill("SIGKILL");
    await waitFor(async () => (await shop.processes()).size === 0, {
      what: "all processes to end",
      details: () => shop.up.output(),
    });
    // Whether it may start again is asked here, not what: the gateway alone is enough.
    for (const name of ["catalog.yaml", "webapp.yaml"]) await rm(path.join(shop.folder, name));
    const entry = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");
    const publish = `${await freePort()}:8080,${await freePort()}:8443`;
    await using again = await startProcess(process.execPath, [entry, "up", shop.folder, "--publish", publish]);
    await again.waitForOutput(/^Ready$/m);
    const exit = await again.stop({ signal: "SIGINT" });
    assert.deepEqual(exit, { code: 0, signal: null });
  });
});

/** One catalog, which will not end by itself. */
async function makeStubborn(folder: string): Promise<void> {
  const manifest = path.join(folder, "catalog.yaml");
  const parts = (await readFile(manifest, "utf8")).split(/^---$/m);
  await writeFile(manifest, parts.filter((part) => !part.includes("  name: catalog-v2\n")).join("---"));
  await appendFile(
    path.join(folder, "catalog", "main.ts"),
    '\nprocess.removeAllListeners("SIGTERM").on("SIGTERM", () => {});\n',
  );
}

/** As `tulle up` has it. */
const sameSignalMs = 500;

test("a second Ctrl-C ends at once what the first one waits for", async () => {
  await using shop = await ShopInstance.start({ without: [...without, "webapp.yaml"], prepare: makeStubborn });
  shop.up.kill("SIGINT");
  await shop.up.waitForOutput(/^Stopping; once more Ctrl-C ends everything at once\.$/m);
  const stoppingAtMs = performance.now();
  await waitFor(async () => (await shop.processes()).size <= 3, { what: "all but the stubborn pod to end" });
  assert.equal(shop.up.exit, undefined);
  // One that comes right after the first is the same Ctrl-C, handed on by a parent. And one that comes while the
  // process exits would end it by the signal: so it is sent once, and late enough.
  await waitFor(() => performance.now() - stoppingAtMs > sameSignalMs, { what: "a Ctrl-C to be another one" });
  shop.up.kill("SIGINT");
  await waitFor(() => shop.up.exit, { what: "the end" });
  assert.deepEqual(shop.up.exit, { code: 130, signal: null });
  await waitFor(async () => (await shop.processes()).size === 0, { what: "all processes to end" });
});

test("tulle down gives up waiting when it is told to", async () => {
  await using shop = await ShopInstance.start({ without: [...without, "webapp.yaml"], prepare: makeStubborn });
  assert.match(await shop.mustTulle("down", "--timeout", "1"), /was ended by force/);
  await waitFor(async () => (await shop.processes()).size === 0, { what: "all processes to end" });
});

describe("an instance in a folder whose path is too long for a socket", () => {
  let shop: ShopInstance;
  let runtime: string;
  before(async () => {
    runtime = await mkdtemp(path.join(tmpdir(), "tulle-run-"));
    shop = await ShopInstance.start({ without, folderName: "deep".repeat(40), env: { XDG_RUNTIME_DIR: runtime } });
  });
  after(async () => {
    await shop?.[Symbol.asyncDispose]();
    await rm(runtime, { recursive: true });
  });

  test("what was applied survives a restart, until it is to be forgotten", async () => {
    const versions = async (): Promise<number> => {
      const answers = await inParallel(40, 4, () => shop.get("/api/catalog/items/1"));
      return new Set(answers.map(({ body }) => body.includes('"imageUrl"'))).size;
    };
    assert.equal(await versions(), 2);
    await shop.applyRule("2-everything-to-v1");
    assert.equal(await versions(), 1);
    await shop.restart();
    assert.equal(await versions(), 1);
    await shop.restart("--fresh");
    assert.equal(await versions(), 2);
  });

  test("it runs, and its sockets go with it", async () => {
    await shop.applyRule("2-everything-to-v1");
    assert.equal((await shop.get("/api/catalog")).status, 200);
    // One folder for the instance, and one for each of its four pods.
    assert.equal((await readdir(path.join(runtime, "tulle"))).length, 5);
    assert.match(await shop.mustTulle("down"), /is down/);
    assert.deepEqual(await readdir(path.join(runtime, "tulle")), []);
  });
});
