// The shop's own manifests on two nodes, with Tulle installed by Helm and its namespace's label: each pod has its
// proxy, and the rules hold with counted answers.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { countRequests, type RequestsOnTheirWay } from "../e2e/requests-on-their-way.ts";
import { inParallel } from "../e2e/shop-instance.ts";
import { type NodePlace, nodes, outside } from "../tools/cluster/addresses.ts";
import { kubectl } from "../tools/cluster/kubectl.ts";
import { waitFor } from "../tools/processes.ts";
import { ClusterShop, installByHelm, shopFolder, uninstallByHelm } from "./cluster-shop.ts";
import { policyTests } from "./shop-policies.ts";
import { rolloutTests } from "./shop-rollouts.ts";

const calls = 100;
let shop: ClusterShop;

/** `proxy` is beside every app, and the gateway. */
export function shopTests(proxy: "tulle" | "envoy"): void {
  before(async () => {
    await installByHelm([`global.proxy.kind=${proxy}`]);
    shop = await ClusterShop.apply();
  });
  after(async () => {
    await shop?.[Symbol.asyncDispose]();
    await kubectl(["delete", "namespace", "shop", "--ignore-not-found"]);
    await uninstallByHelm();
  });

  test("every pod of the shop has its proxy, as a native sidecar", async () => {
    const pods = (await shop.pods()).filter(({ metadata }) => metadata.namespace === "shop");
    assert.equal(pods.length, 7);
    for (const { metadata, spec } of pods) {
      const sidecar = spec.initContainers?.find(({ name }) => name === "tulle-proxy");
      assert.equal(sidecar?.restartPolicy, "Always", metadata.name);
      assert.match(sidecar.image, proxy === "envoy" ? /^tulle\/proxy-envoy:/ : /^tulle\/proxy:/);
    }
  });

  test("rule 1: requests are spread over both versions", async () => {
    const result = await tally(calls);
    assertWholeWay(result, calls);
    assert.deepEqual(Object.keys(result.answers).sort(), ["v1", "v2"]);
  });

  test("rule 2: everything goes to version 1", async () => {
    await applyRule("2-everything-to-v1");
    await answersBecome({ v1: 20 });
    assertWholeWay(await tally(calls), calls);
  });

  test("rule 3: a header reaches version 2, all else version 1", async () => {
    await applyRule("3-dark-launch-v2");
    await answersBecome({ v2: 20 }, { "x-dark-launch": "v2" });
    assert.deepEqual((await tally(20, { "x-dark-launch": "V2" })).answers, { v1: 20 });
  });

  test("rules 4 and 5: faults are retried", async () => {
    await applyRule("4-retries");
    await waitFor(async () => Object.keys((await tally(20)).answers).length === 2, { what: "the rule to be taken" });
    await shop.blowup(100);
    const failed = await tally(20);
    assert.deepEqual(failed.answers, { 500: 20 });
    assert.equal(failed.counted.toCatalog.v1 + failed.counted.toCatalog.v2, 20 * 4);
    await shop.blowup(0);
    assert.equal((await tally(20)).answers["500"], undefined);
    await kubectl(["delete", "virtualservice", "catalog", "-n", "shop"]);
  });

  if (proxy === "tulle") rolloutTests(() => shop);
  policyTests(() => shop);

  test("rule 6: with Local the gateway sees the client's address, and a node without it refuses", async () => {
    const { status } = await shop.pod("tulle-ingressgateway");
    const home = nodes.find(({ addresses }) => addresses[0] === status.hostIP)!;
    const other = nodes.find((node) => node !== home)!;
    /** What the gateway's log says of a request that comes by the node. */
    const lineOf = async (agent: string, node: NodePlace): Promise<string> => {
      const answer = await shop.getBy(node, "/api/catalog", { "user-agent": agent });
      assert.equal(answer.status, 200);
      const find = async (): Promise<string | undefined> => {
        const log = await kubectl(["logs", "-n", "tulle-system", "deploy/tulle-ingressgateway", "--tail", "50"]);
        return log.split("\n").findLast((each) => each.includes(`"${agent}"`));
      };
      return waitFor(find, { what: "the request in the gateway's log" });
    };
    assert.ok(
      !(await lineOf("by-cluster", other)).includes(`"${outside[0]}"`),
      "with Cluster a node's address is seen",
    );
    await applyRule("6-keep-the-client-address");
    const isRefused = (): Promise<boolean> =>
      shop.getBy(other, "/api/catalog").then(
        () => false,
        () => true,
      );
    await waitFor(isRefused, { what: "the node without the gateway to refuse" });
    const line = await lineOf("by-local", home);
    assert.ok(line.includes(`"${outside[0]}"`), line);
  });
}

interface Tally {
  readonly answers: Readonly<Record<string, number>>;
  readonly counted: RequestsOnTheirWay;
}

async function tally(count: number, headers: Readonly<Record<string, string>> = {}): Promise<Tally> {
  const counted = await countRequests(shop);
  const answers: Record<string, number> = {};
  await inParallel(count, 32, async () => {
    const { status, body } = await shop.get("/api/catalog/items/1", headers);
    const from = status !== 200 ? String(status) : body.includes('"imageUrl"') ? "v2" : "v1";
    answers[from] = (answers[from] ?? 0) + 1;
  });
  return { answers, counted: await counted() };
}

function assertWholeWay({ answers: { v1 = 0, v2 = 0 }, counted }: Tally, count: number): void {
  const expected = { fromGateway: count, toWebapp: count, fromWebapp: count, retried: 0, toCatalog: { v1, v2 } };
  assert.deepEqual(counted, expected);
}

async function answersBecome(expected: object, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  let last: Tally["answers"] = {};
  const isTaken = async (): Promise<boolean> =>
    isDeepStrictEqual((last = (await tally(20, headers)).answers), expected);
  await waitFor(isTaken, { what: "the rule to be taken", details: () => JSON.stringify(last) });
}

const applyRule = (name: string): Promise<string> =>
  kubectl(["apply", "-f", path.join(shopFolder, "rules", `${name}.yaml`)]);
