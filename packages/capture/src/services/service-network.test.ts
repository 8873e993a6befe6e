// What becomes of changes that come together, of nodes that cannot be told, and of what is wrong with Services. Nodes
// are networks of their own, without pods.
import assert from "node:assert/strict";
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { NetworkNamespace } from "../../../../tests/tools/network-namespace.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { service, serviceNodes, clusterRanges, slices } from "../testing/services.ts";
import type { ServiceProblem } from "./cluster-objects.ts";
import { ServiceNetwork } from "./service-network.ts";
import { serviceTable } from "./service-rules.ts";

await debianTool("nftables");
await debianTool("conntrack");
const folder = temporaryFolder("tulle-services-");
let made = 0;

/** A node whose commands are counted, and fail as long as a file is there. */
class WatchedNode implements Disposable {
  readonly network: NetworkNamespace;
  readonly #base = path.join(folder, `node-${(made += 1)}`);

  private constructor(network: NetworkNamespace) {
    this.network = network;
    writeFileSync(this.#log, "");
  }

  static async create(): Promise<WatchedNode> {
    return new WatchedNode(await NetworkNamespace.create());
  }

  get #log(): string {
    return `${this.#base}.log`;
  }

  get prefix(): readonly string[] {
    const script = `echo "$0 $1" >> ${this.#log}; test -e ${this.#base}.broken && echo broken >&2 && exit 1; exec "$0" "$@"`;
    return [...this.network.enter, "sh", "-c", script];
  }

  break(): void {
    appendFileSync(`${this.#base}.broken`, "");
  }

  repair(): void {
    rmSync(`${this.#base}.broken`);
  }

  get commands(): readonly string[] {
    return readFileSync(this.#log, "utf8").trim().split("\n");
  }

  rules(): Promise<string> {
    return this.network.mustRun("nft", "list", "ruleset");
  }

  [Symbol.dispose](): void {
    this.network[Symbol.dispose]();
  }
}

const ready = { ready: true };
const catalog = service("catalog", { clusterIPs: ["10.96.0.77", "fd96::77"] });

test("changes of one moment are one transaction, and nothing is done where nothing differs", async () => {
  using node = await WatchedNode.create();
  const services = new ServiceNetwork({
    nodes: [{ ...serviceNodes[0]!, prefix: node.prefix }],
    clusterRanges,
    onFailure: (_, message) => assert.fail(message),
  });
  for (const pods of [{}, { one: ready }, { one: ready, two: ready }]) {
    services.update({ services: [catalog], endpointSlices: slices("catalog", pods) });
  }
  await services.settled();
  assert.deepEqual(node.commands, ["nft -f"]);
  assert.match(await node.rules(), /numgen random mod 2/);
  services.update({ services: [catalog], endpointSlices: slices("catalog", { one: ready, two: ready }) });
  await services.settled();
  assert.deepEqual(node.commands, ["nft -f"]);
  await services.close();
  assert.equal(await node.rules(), "");
});

test("a node that cannot be told is said once, keeps no other one waiting, and has all once it can", async () => {
  using broken = await WatchedNode.create();
  using whole = await WatchedNode.create();
  const said: string[] = [];
  const services = new ServiceNetwork({
    nodes: [broken, whole].map(({ prefix }, index) => ({ ...serviceNodes[index]!, prefix })),
    clusterRanges,
    onFailure: (node, message) => said.push(`${node}: ${message}`),
  });
  broken.break();
  services.update({ services: [catalog], endpointSlices: slices("catalog", { one: ready }) });
  await services.settled();
  assert.match(await whole.rules(), /10\.244\.1\.11:8080/);
  await waitFor(() => broken.commands.length > 3, { what: "more tries" });
  assert.deepEqual(said, ["node1: nft: broken."]);
  services.update({ services: [catalog], endpointSlices: slices("catalog", { two: ready }) });
  broken.repair();
  await waitFor(async () => (await broken.rules()).includes("10.244.2.12:8080"), { what: "the node's rules" });
  await services.settled();
  assert.equal(said.length, 1);
  // It breaks again: that is news.
  broken.break();
  services.update({ services: [catalog], endpointSlices: [] });
  await services.settled();
  assert.equal(said.length, 2);
  broken.repair();
  await services.close();
  assert.equal((await broken.rules()) + (await whole.rules()), "");
});

test("tables of others stay", async () => {
  using node = await WatchedNode.create();
  await node.network.mustRun("nft", "add", "table", "inet", "tulle_capture");
  const services = new ServiceNetwork({
    nodes: [{ ...serviceNodes[0]!, prefix: node.prefix }],
    clusterRanges,
    onFailure: (_, message) => assert.fail(message),
  });
  services.update({ services: [catalog], endpointSlices: [] });
  await services.settled();
  assert.ok((await node.rules()).includes(`table inet ${serviceTable} {`));
  await services.close();
  assert.equal((await node.rules()).trim(), "table inet tulle_capture {\n}");
});

test("what is wrong with Services is told when it changes", () => {
  const told: (readonly ServiceProblem[])[] = [];
  const services = new ServiceNetwork({
    nodes: [],
    clusterRanges,
    onProblems: (problems) => told.push(problems),
    onFailure: (_, message) => assert.fail(message),
  });
  const bad = service("catalog", { clusterIP: "10.96.0.77", externalIPs: ["8.8.4.4"] });
  services.update({ services: [bad], endpointSlices: [] });
  services.update({ services: [bad], endpointSlices: slices("catalog", { one: ready }) });
  services.update({ services: [catalog], endpointSlices: [] });
  assert.deepEqual(
    told.map((problems) => problems.map(({ path: at }) => at)),
    [["spec.externalIPs[0]"], []],
  );
});
