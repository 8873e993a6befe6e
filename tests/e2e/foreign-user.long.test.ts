// A program under another user's id on the same machine: it knows everything but a workload's token and key, and gets
// neither a certificate nor configuration, nor a word from a workload under STRICT.
import assert from "node:assert/strict";
import { chmod, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { before, describe, test } from "node:test";
import { endpoints, type RolloutView } from "@tulle/config/api";
import { startProcess, waitFor } from "../tools/processes.ts";
import { ToolUnavailable } from "../tools/tool-unavailable.ts";
import type { BlindRequests } from "./blind-sender.ts";
import type { Knowledge, Outcomes } from "./foreign-user-program.ts";
import { RolloutLoad } from "./rollout-load.ts";
import { useRunningShop } from "./running-shop.ts";
import { httpRequest, type ShopInstance } from "./shop-instance.ts";
import { assertRefused, gatherKnowledge, nobody } from "./strict-shop.ts";

function needRoot(): void {
  if (process.getuid?.() === 0) return;
  throw new ToolUnavailable("root", "only root may start a program under another user's id; run this test as root");
}

async function tryAs(knowledge: Knowledge): Promise<Outcomes> {
  const program = path.join(import.meta.dirname, "foreign-user-program.ts");
  await using started = await startProcess(process.execPath, [program], {
    name: "a foreign program",
    input: JSON.stringify(knowledge),
  });
  const [line] = await started.waitForOutput(/^\{.*\}$/m);
  return JSON.parse(line) as Outcomes;
}

/** Sends all of it while the process takes no connection, so that every sender has gone when it looks. */
async function sendBlindly(pid: number, blind: BlindRequests): Promise<void> {
  const program = path.join(import.meta.dirname, "blind-sender.ts");
  process.kill(pid, "SIGSTOP");
  try {
    await using sender = await startProcess(process.execPath, [program], {
      name: "a blind sender",
      input: JSON.stringify(blind),
    });
    const total = blind.requests.reduce((sum, { times }) => sum + times, 0);
    await sender.waitForOutput(new RegExp(`^sent ${total}$`, "m"));
    await sender.exited;
  } finally {
    process.kill(pid, "SIGCONT");
  }
}

describe("another user and a shop that takes plain text", () => {
  let shop: ShopInstance;
  before(needRoot);
  useRunningShop("Tulle's proxy", (running) => (shop = running));

  test("requests of another user that nobody waits for reach nothing in the workload's name, and end no proxy", async () => {
    const caller = await shop.pod("webapp");
    const proxyPid = async (): Promise<number | undefined> => (await shop.processes()).get(`${caller.name} proxy`);
    const pid = await proxyPid();
    assert.ok(pid !== undefined);
    const countOf = async (): Promise<number> => {
      const counts = await shop.requestCounts();
      return counts
        .filter(({ labels }) => labels["destination_service_name"] === "catalog")
        .reduce((sum, { value }) => sum + value, 0);
    };
    const outbound = `${caller.address}:15007`;
    const admin = `${caller.address}:15000`;
    // From here, as the person who runs the mesh, which is both a barrier and the proof that such a request arrives.
    const ask = (): ReturnType<typeof httpRequest> =>
      httpRequest(`http://${outbound}/items`, { headers: { host: "catalog" } });
    assert.equal((await ask()).status, 200);
    const earlier = await countOf();

    await sendBlindly(pid, {
      uid: nobody,
      requests: [
        {
          to: outbound,
          text: "GET http://catalog/items HTTP/1.1\r\nhost: catalog\r\nconnection: close\r\n\r\n",
          times: 120,
        },
        { to: admin, text: "POST /quitquitquit HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n", times: 20 },
      ],
    });

    assert.equal((await ask()).status, 200);
    assert.equal((await httpRequest(`http://${admin}/ready`)).body, "LIVE\n");
    assert.equal(await proxyPid(), pid);
    // Ours alone, which is counted at both ends.
    assert.equal((await countOf()) - earlier, 2);
  });

  test("another user that takes an app's address while the app starts again gets no request, and the pod is not ready", async () => {
    const pod = await shop.pod("catalog-v1");
    const app = pod.app!;
    const target = `http://${pod.address}:${app.port}/items`;
    const headers = { host: "catalog", authorization: "Bearer secret" };
    const ask = async (): Promise<number> => (await httpRequest(target, { headers })).status;
    const readiness = async (): Promise<string> => {
      const { items } = await shop.api().list("Pod");
      const found = items.find(({ metadata }) => metadata.name === pod.name);
      const ready = found?.status?.conditions?.find(({ type }) => type === "Ready");
      return `${ready?.status} ${ready?.message ?? ""}`;
    };
    assert.equal(await ask(), 200);
    const program = path.join(import.meta.dirname, "squatter.ts");
    await using squatter = await startProcess(process.execPath, [
      program,
      String(nobody),
      app.address,
      String(app.port),
    ]);
    await squatter.waitForOutput(/^tries$/m);
    process.kill((await shop.processes()).get(`${pod.name} app`)!, "SIGKILL");
    await squatter.waitForOutput(/^listens$/m);

    for (let time = 0; time < 20; time += 1) assert.equal(await ask(), 503);
    const reason = await waitFor(async () => /^False .*held by user nobody.*$/.exec(await readiness())?.[0], {
      what: "the reason why the pod is not ready",
    });
    assert.match(
      reason,
      new RegExp(`${app.address}:${app.port} is held by user nobody \\(uid ${nobody}\\), process ${squatter.pid} `),
    );
    assert.equal(await ask(), 503);
    assert.doesNotMatch(squatter.output(), /got|asked/);

    await squatter.stop();
    await waitFor(async () => (await readiness()).startsWith("True"), { what: "the pod to be ready" });
    assert.equal(await ask(), 200);
  });

  test("another user that takes an agent's address while it starts again leads no roll-out: its perfect numbers do not count", async () => {
    const pod = await shop.pod("webapp");
    const view = (): Promise<RolloutView> => shop.api().call(endpoints.rollout, { namespace: "shop", name: "catalog" });
    const labels =
      'reporter="source",destination_service="catalog.shop.svc.cluster.local",destination_workload_namespace="shop",destination_workload="catalog-v2",response_code="200"';
    const program = path.join(import.meta.dirname, "squatter.ts");
    const perfect = `istio_requests_total{${labels}} COUNT\n`;
    await using squatter = await startProcess(process.execPath, [
      program,
      String(nobody),
      pod.address,
      "15020",
      perfect,
    ]);
    await squatter.waitForOutput(/^tries$/m);
    process.kill((await shop.processes()).get(`${pod.name} proxy`)!, "SIGKILL");
    await squatter.waitForOutput(/^listens$/m);

    // Nobody asks the catalog for anything: of the canary there are no numbers but the other user's.
    const file = path.join(shop.folder, "..", "squatted-rollout.yaml");
    await writeFile(file, squattedRollout);
    await shop.mustTulle("apply", "-f", file);
    await shop.mustTulle("rollout", "start", "catalog");
    const said = `${RegExp.escape(pod.address)}:15020 is held by process ${squatter.pid} \\(.*\\) of user nobody \\(uid ${nobody}\\), which is not the agent of the pod shop/${pod.name}: what it says is not counted, and no measurement is good. End it,`;
    const paused = await waitFor(
      async () => {
        const now = await view();
        return now.phase !== "Progressing" && now;
      },
      { what: "what is said of the roll-out" },
    );
    assert.equal(paused.phase, "Paused");
    assert.match(paused.message, new RegExp(`^${said}`));
    assert.deepEqual([paused.step, paused.weight], [1, 20]);
    for (const command of ["status", "history"]) {
      assert.match(await shop.mustTulle("rollout", command, "rollout/catalog"), new RegExp(said), command);
    }
    assert.doesNotMatch(squatter.output(), /got|asked/);

    await squatter.stop();
    await waitFor(async () => (await shop.pods()).every(({ ready }) => ready), { what: "the agent to be back" });
    await using _load = new RolloutLoad(shop);
    await waitFor(async () => (await view()).phase === "Completed", { what: "its end, by what the agents say" });
  });
});

/** Measured before more goes to the canary. */
const squattedRollout = `
apiVersion: rollouts.tulle.io/v1alpha1
kind: Rollout
metadata: { name: catalog, namespace: shop }
spec:
  host: catalog
  stable: { subset: version-v1 }
  canary: { subset: version-v2 }
  strategy:
    canary:
      steps:
        - setWeight: 20
        - analysis:
            metrics: [{ name: rate, successRate: {}, thresholdRange: { min: 95 }, interval: 1s, minRequests: 10 }]
        - setWeight: 50
`;

describe("another user and a shop under STRICT", () => {
  let shop: ShopInstance;
  before(needRoot);
  useRunningShop("Tulle's proxy", async (running) => {
    shop = running;
    await shop.mustTulle("apply", "-f", path.join(shop.folder, "policies", "1-strict-mutual-tls.yaml"));
    await shop.waitForSync();
  });

  test("a program of another user gets neither certificate nor configuration nor an answer, and speaks in nobody's name", async (context) => {
    // Tests' own folders are closed to others; what is to keep them out here is the mesh's doing.
    const parent = path.dirname(shop.folder);
    await chmod(parent, 0o755);
    context.after(() => chmod(parent, 0o700));
    const pod = await shop.pod("catalog-v1");
    const knowledge = await gatherKnowledge(shop, pod, await shop.pod("webapp"));

    const outcomes = await tryAs(knowledge);
    assertRefused(outcomes);
    assert.equal(Object.keys(outcomes).length, 5 + 3 + 5 + 3 + 3 + 2, JSON.stringify(outcomes, undefined, 2));

    // At the same moment, whoever has the workload's token is given a certificate, whatever the user's id.
    const own = await readFile(path.join(shop.folder, ".tulle", "pods", pod.name, "token"), "utf8");
    const only = { ...knowledge, files: [], sockets: [], workloads: [], ports: [] };
    const withToken = await tryAs({ ...only, tokens: { "the workload's own token": own.trim() } });
    const [at] = knowledge.xdsAddresses;
    assert.equal(withToken[`certificate for the workload's own token, ${at}`], "issued");
    assert.equal((await shop.get("/api/catalog")).status, 200);
  });
});
