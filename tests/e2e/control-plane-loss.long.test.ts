// Without its control plane a proxy goes on with what it has, across a restart of its own too.
import assert from "node:assert/strict";
import { readFile, rename, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { getSecurely, httpRequest, inParallel, ShopInstance } from "./shop-instance.ts";

const spoiledStates = [
  ["cut short", (bytes: Buffer) => bytes.subarray(0, bytes.length - 100)],
  ["edited", (bytes: Buffer) => Buffer.from(bytes.toString("latin1").replace("catalog", "gatalog"), "latin1")],
] as const;

test("traffic and restarts survive the loss of the control plane", async (t) => {
  await using shop = await ShopInstance.start({ without: ["productpage.yaml"] });
  const fromV1 = async (count: number): Promise<number> => {
    const answers = await inParallel(count, 4, () => shop.get("/api/catalog/items/1"));
    return answers.filter(({ status, body }) => status === 200 && !body.includes('"imageUrl"')).length;
  };
  const webapp = await shop.pod("webapp");
  const pidOf = async (what: string): Promise<number | undefined> => (await shop.processes()).get(what);
  const token = path.join(shop.folder, ".tulle", "token");

  const { name: gatewayName } = await shop.pod("tulle-ingressgateway");
  const pidOfGateway = (): Promise<number | undefined> => pidOf(`${gatewayName} proxy`);
  const gatewayState = path.join(shop.folder, ".tulle", "pods", gatewayName, "xds-state");

  await t.test("a change that was just made is in effect when the control plane dies", async () => {
    await shop.applyRule("2-everything-to-v1");
    await waitFor(async () => (await readFile(gatewayState, "utf8").catch(() => "")).includes('"SDS"'), {
      what: "the gateway's Secret in its saved state",
    });
    // A control plane does not start with an empty token: so it stays away for as long as this test wants.
    await rename(token, `${token}.kept`);
    await writeFile(token, "");
    process.kill((await pidOf("control-plane"))!, "SIGKILL");
    await shop.up.waitForOutput(/control plane ended \(exit status 1: .*token is empty/);
    assert.equal(await fromV1(50), 50);
  });

  await t.test("a sidecar that is restarted meanwhile serves from its saved state", async () => {
    const before = (await pidOf(`${webapp.name} proxy`))!;
    process.kill(before, "SIGKILL");
    const restarted = await waitFor(
      async () => {
        const pid = await pidOf(`${webapp.name} proxy`);
        return pid !== before && pid;
      },
      { what: "the sidecar to be started again" },
    );
    await waitFor(async () => (await httpRequest(`http://${webapp.address}:15021/healthz/ready`)).status === 200, {
      what: "the sidecar to be ready",
    });
    assert.notEqual(restarted, before);
    await waitFor(async () => (await shop.get("/api/catalog")).status === 200, { what: "the way through the sidecar" });
    assert.equal(await fromV1(50), 50);
  });

  await t.test("a gateway that is restarted meanwhile serves TLS with what it had", async () => {
    assert.equal((await getSecurely(shop, "/api/catalog")).status, 200);
    const gateway = await pidOfGateway();
    assert.equal((await stat(gatewayState)).mode & 0o777, 0o600);
    process.kill(gateway!, "SIGKILL");
    await waitFor(async () => ![undefined, gateway].includes(await pidOfGateway()), {
      what: "the gateway to be started again",
    });
    await waitFor(async () => (await getSecurely(shop, "/api/catalog").catch(() => undefined))?.status === 200, {
      what: "an answer over TLS",
    });
  });

  await t.test("a control plane that comes back is found again", async () => {
    await rename(`${token}.kept`, token);
    await waitFor(async () => (await shop.tulle("pods")).code === 0, { what: "the control plane" });
    await waitFor(async () => (await shop.syncRows()).length === 4, { what: "four proxies" });
    await waitFor(async () => (await shop.pods()).every((pod) => pod.ready), { what: "all pods" });
    await shop.applyRule("1-spread-over-versions");
    const v1 = await fromV1(100);
    assert.ok(v1 > 0 && v1 < 100, `${v1} of 100 from v1`);
    assert.equal((await shop.pod("webapp")).restarts, 1);
  });

  for (const [what, spoil] of spoiledStates) {
    await t.test(`a saved state that was ${what} is set aside, and the start goes on`, async () => {
      const folder = path.join(shop.folder, ".tulle", "pods", webapp.name);
      const file = path.join(folder, "xds-state");
      const before = (await pidOf(`${webapp.name} proxy`))!;
      const { restarts } = await shop.pod("webapp");
      // Stopped, it cannot write the state anew.
      process.kill(before, "SIGSTOP");
      const spoiled = spoil(await readFile(file));
      await writeFile(file, spoiled);
      process.kill(before, "SIGKILL");
      await waitFor(
        async () => {
          const pod = await shop.pod("webapp");
          return pod.restarts === restarts + 1 && pod.ready;
        },
        { what: "the pod to be ready again" },
      );
      assert.deepEqual(await readFile(`${file}.refused`), spoiled);
      const log = await readFile(path.join(shop.folder, ".tulle", "logs", webapp.name, "proxy.log"), "utf8");
      assert.match(
        log,
        what === "cut short" ? /saved state is not used: it was cut/ : /saved state is not used: its checksum/,
      );
      await waitFor(async () => (await shop.get("/api/catalog")).status === 200, { what: "the way through it" });
      assert.equal((await stat(file)).mode & 0o777, 0o600);
    });
  }
});
