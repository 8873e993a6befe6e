// `tulle up --mode namespaces` beyond its main road (namespaces.test.ts): both families, clients outside and nodes, the
// walk-through's commands, and that nothing is left however an instance ends or fails to start.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, readlinkSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { listProcesses } from "@tulle/capture";
import { freePort, waitFor } from "../tools/processes.ts";
import { assertNothingLeft, machineOf, namespacesOf } from "./machine-traces.ts";
import { namespacesArgs, plain, requireNamespaces, startWithPlain } from "./namespaces-stage.ts";
import { OutsideClient, outsideAddresses } from "./outside-client.ts";
import { type CommandResult, httpRequest, ShopInstance } from "./shop-instance.ts";

/** Listens at both families, as programs do that name no address; the first caller is the last one. */
const dualStackServer = `
  const server = require("node:http").createServer((request, response) => {
    response.end("called from " + request.socket.remoteAddress, () => process.exit());
  });
  server.listen(3055, "::");`;

const publishing = (port: number): string => `
apiVersion: v1
kind: Service
metadata: { name: published, namespace: shop, annotations: { local.tulle.io/publish: "${port}:3000" } }
spec: { selector: { app: catalog }, ports: [{ name: http, port: 80, targetPort: 3000 }] }
`;

describe("both families, nodes and the commands of the walk-through", { timeout: 300_000 }, () => {
  let shop: ShopInstance;
  /** A port of the machine that leads to the catalog, past the gateway. */
  let catalogPort: number;
  const exec = (...words: readonly string[]): Promise<CommandResult> => shop.tulle("exec", ...words);
  async function run(pod: string, ...command: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await exec(pod, "--", ...command);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  before(async () => {
    await requireNamespaces();
    catalogPort = await freePort();
    shop = await startWithPlain(publishing(catalogPort));
  });
  after(() => shop?.[Symbol.asyncDispose]());

  test("a published port of an app leads through its sidecar, from its node", async () => {
    const ask = () => httpRequest(`http://127.0.0.1:${catalogPort}/items/1`);
    const answer = await ask();
    assert.equal(answer.status, 200);
    assert.notEqual(answer.headers["x-envoy-upstream-service-time"], undefined);
    const file = path.join(shop.folder, "policies", "1-strict-mutual-tls.yaml");
    await shop.mustTulle("apply", "-f", file);
    await shop.waitForSync();
    await assert.rejects(ask(), { code: "ECONNRESET" });
    await shop.mustTulle("delete", "-f", file);
    await shop.waitForSync();
    assert.equal((await ask()).status, 200);
  });

  test("the walk-through's commands do in a pod what they do in a container", async () => {
    const header = ["-H", "Content-Type: application/json"];
    const body = (active: boolean): readonly string[] => ["-d", JSON.stringify({ active, type: "500" })];
    assert.match(await run("catalog-v1", "curl", ...header, ...body(true), "localhost:3000/blowup"), /^blowups on/);
    const status = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}"];
    assert.equal(await run("catalog-v1", ...status, "localhost:3000/items/1"), "500");
    assert.equal(await run("catalog-v2", ...status, "localhost:3000/items/1"), "200");
    assert.match(await run("catalog-v1", "curl", ...header, ...body(false), "localhost:3000/blowup"), /^blowups off/);
    assert.match(
      await run("catalog-v1", "curl", "-sS", "-X", "POST", "localhost:15000/logging?http=debug"),
      /http: debug/,
    );
    assert.match(
      await run("catalog-v1", "curl", "-sS", "-X", "POST", "localhost:15000/logging?http=warning"),
      /http: w/,
    );
    for (const port of [15_020, 15_021])
      assert.match(await run("catalog-v1", ...status, `localhost:${port}/healthz/ready`), /^(200|404)$/);
  });

  test("a Service of both families is called over IPv6, too, by its name and by mutual TLS", async () => {
    const service = (await shop.api().list("Service")).items.find(({ metadata }) => metadata.name === "catalog-both")!;
    const [ipv4 = "", ipv6 = ""] = service.spec.clusterIPs ?? [];
    assert.match(ipv4, /^10\.96\./);
    assert.match(ipv6, /^fd00:10:96::/);
    assert.deepEqual(service.spec.ipFamilies, ["IPv4", "IPv6"]);
    const slices = (await shop.api().list("EndpointSlice")).items.filter(
      ({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === "catalog-both",
    );
    const told = slices.map(({ addressType, endpoints }) => `${addressType} ${endpoints[0]!.addresses[0]}`).toSorted();
    assert.match(told.join(), /^IPv4 10\.244\.[12]\.\d+,IPv6 fd00:10:244:[12]::[0-9a-f]+$/);
    for (const pod of ["webapp", "plain"]) {
      const addresses = await run(pod, "getent", "ahosts", "catalog-both");
      for (const address of [ipv4, ipv6]) assert.ok(addresses.includes(`${address} `), `${pod}: ${addresses}`);
    }
    const calling = ["curl", "-sS", "-i", "-w", "%{remote_ip}", "http://catalog-both/items/1"] as const;
    for (const family of ["-4", "-6"]) {
      const answer = await run("webapp", ...calling, family);
      assert.match(answer, /^HTTP\/1\.1 200/, family);
      assert.match(answer, /^server: envoy/m);
      assert.ok(answer.endsWith(family === "-4" ? ipv4 : ipv6), answer);
    }
    const page = await run("webapp", "curl", "-sS", "localhost:15000/stats/prometheus");
    const isToIt = /^istio_requests_total\{.*destination_service_name="catalog-both".*\} 2$/m;
    assert.match(isToIt.exec(page)?.[0] ?? page, /response_code="200"/);
    const served = await run("catalog-v1", "curl", "-sS", "localhost:15000/stats/prometheus");
    assert.match(served, /^istio_requests_total\{.*source_app="webapp".*connection_security_policy="mutual_tls".*\} /m);
    // The nodes lead a program without a sidecar there, and the sidecar leads on over IPv6.
    const serving = exec("catalog-v1", "--", process.execPath, "-e", dualStackServer);
    await waitFor(
      async () => (await run("plain", "curl", "-sS", "-6", "http://catalog-both:81")) === "called from ::6",
      {
        what: "an answer over IPv6",
        details: () => shop.up.output(),
      },
    );
    assert.equal((await serving).code, 0);
  });

  test("a client outside: with Cluster the gateway sees a node's address, with Local the client's", async () => {
    const name = "tulle-ingressgateway";
    const nodes = { "node-1": "172.31.255.11", "node-2": "172.31.255.12" } as const;
    const { items } = await shop.api().list("Pod");
    const gateway = items.find(({ metadata }) => metadata.name.startsWith(name))!;
    const home = gateway.spec.nodeName as keyof typeof nodes;
    const log = path.join(shop.folder, ".tulle", "logs", gateway.metadata.name, "proxy.log");
    /** What the line about that request says in its field `X-FORWARDED-FOR`. */
    const forwardedFor = async (asked: string): Promise<string> => {
      const line = new RegExp(`"GET ${asked} HTTP[^"]*" .*? \\d+ \\d+ \\d+ \\S+ "(.*?)"`);
      return waitFor(async () => line.exec(await readFile(log, "utf8"))?.[1], {
        what: `the line about ${asked}`,
        details: () => shop.up.output(),
      });
    };
    const port = (await shop.api().list("Service")).items.find(({ metadata }) => metadata.name === name)!.spec.ports[0]!
      .nodePort!;
    using outside = await OutsideClient.connect(shop.up.pid);
    for (const [node, address] of Object.entries(nodes)) {
      const asked = `/cluster-${node}`;
      assert.equal(await outside.get(address, port, asked, 60_000), 404);
      assert.match(await forwardedFor(asked), /^(172\.31\.255\.1[12]|10\.244\.[12]\.1)$/, node);
    }
    const [service] = (await readFile(path.join(shop.folder, "gateway.yaml"), "utf8"))
      .split(/^---$/m)
      .filter((document) => /^kind: Service$/m.test(document));
    const file = path.join(shop.folder, "rules", "local-gateway.yaml");
    await writeFile(file, service!.replace("type: LoadBalancer", "type: LoadBalancer\n  externalTrafficPolicy: Local"));
    await shop.mustTulle("apply", "-f", file);
    let asked = "";
    await waitFor(
      async () => {
        asked = `/local-${home}-${performance.now()}`;
        await outside.get(nodes[home], port, asked, 60_000);
        return (await forwardedFor(asked)) === outsideAddresses.ipv4;
      },
      { what: "the client's own address", details: () => asked },
    );
    const away = home === "node-1" ? "node-2" : "node-1";
    assert.equal(await outside.get(nodes[away], port, "/local-away", 1500), "silence");
    await shop.mustTulle("delete", "-f", file);
    await waitFor(async () => (await outside.get(nodes[away], port, "/cluster-again", 1500)) === 404, {
      what: "the way by the other node",
    });
  });
});

test("a pod whose first process is ended has another one in its place", { timeout: 300_000 }, async () => {
  await requireNamespaces();
  await using shop = await ShopInstance.start({ args: namespacesArgs });
  const { name } = await shop.pod("catalog-v1");
  process.kill(firstProcessOf((await shop.processes()).get(`${name} app`)!), "SIGKILL");
  await shop.up.waitForOutput(new RegExp(`the first process of ${name} was ended`));
  const isReplaced = async (): Promise<boolean> => {
    const pods = (await shop.pods()).filter((pod) => pod.name.startsWith("catalog-v1"));
    return pods.length === 1 && pods[0]!.name !== name && pods[0]!.ready;
  };
  await waitFor(isReplaced, { what: "another catalog to be ready" });
  await shop.waitForSync();
  for (let count = 0; count < 10; count += 1) assert.equal((await shop.get("/api/catalog")).status, 200);
});

/** Of the namespace that a process of a pod is in. */
function firstProcessOf(pid: number): number {
  const space = readlinkSync(`/proc/${pid}/ns/pid`);
  const first = listProcesses().find((each) => {
    try {
      const isThere = readlinkSync(`/proc/${each.pid}/ns/pid`) === space;
      return isThere && /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${each.pid}/status`, "utf8"));
    } catch {
      return false;
    }
  });
  assert.ok(first !== undefined);
  return first.pid;
}

describe("what is left", { timeout: 300_000 }, () => {
  before(requireNamespaces);

  test("nothing, when the supervisor is killed, daemons included", async () => {
    await using shop = await ShopInstance.start({ args: namespacesArgs });
    const machine = await machineOf(shop.folder);
    const daemon = "setsid sleep 3600 >/dev/null 2>&1 & echo begun";
    assert.match(await shop.mustTulle("exec", "webapp", "--", "sh", "-c", daemon), /begun/);
    const namespaces = namespacesOf(shop.folder);
    process.kill(shop.up.pid, "SIGKILL");
    await shop.up.exited;
    await assertNothingLeft(shop.folder, namespaces, machine);
  });

  test("nothing, when the start fails for a port that is taken", async (t) => {
    const server = createServer().listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await using shop = await ShopInstance.begin({
      args: namespacesArgs,
      prepare: (folder) => writeFile(path.join(folder, "taken.yaml"), publishing(port)),
    });
    const machine = await machineOf(shop.folder);
    const { code } = await shop.up.exited;
    assert.equal(code, 1, shop.up.output());
    assert.match(shop.up.output(), new RegExp(`port 127\\.0\\.0\\.1:${port} is in use`));
    await assertNothingLeft(shop.folder, new Set(), machine);
  });

  test("a pod whose connections cannot be captured does not start, and says why", async () => {
    await using shop = await ShopInstance.begin({
      args: namespacesArgs,
      without: ["productpage.yaml", "gateway.yaml"],
      prepare: async (folder) => {
        const file = path.join(folder, "webapp.yaml");
        const text = await readFile(file, "utf8");
        const annotation = 'traffic.sidecar.istio.io/includeOutboundPorts: "no-port"';
        await writeFile(file, text.replace("\n      annotations:\n", `\n      annotations:\n        ${annotation}\n`));
        const transparent = "annotations: { sidecar.istio.io/interceptionMode: TPROXY, ";
        const asking = plain.replace(', sidecar.istio.io/inject: "false"', "").replace("annotations: { ", transparent);
        await writeFile(path.join(folder, "plain.yaml"), asking);
      },
    });
    for (const [name, reason] of [
      ["webapp", /includeOutboundPorts.*no-port/],
      ["plain", /interceptionMode TPROXY is not carried here/],
    ] as const) {
      await waitFor(
        async () => {
          const pod = await shop
            .api()
            .list("Pod")
            .then(
              ({ items }) => items.find(({ metadata }) => metadata.name.startsWith(name)),
              () => undefined,
            );
          return pod?.status?.conditions?.some(({ message = "" }) => reason.test(message));
        },
        { what: `the reason at ${name}`, details: () => shop.up.output() },
      );
    }
    assert.deepEqual(
      [...(await shop.processes()).keys()].filter((name) => /^(webapp|plain)/.test(name)),
      [],
    );
    const machine = await machineOf(shop.folder);
    const namespaces = namespacesOf(shop.folder);
    await shop.mustTulle("down");
    await assertNothingLeft(shop.folder, namespaces, machine);
  });
});
