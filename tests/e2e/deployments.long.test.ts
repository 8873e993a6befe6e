// Deployments that change while requests run: scaled, replaced, deleted; and those that cannot run here.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { Agent } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { waitFor } from "../tools/processes.ts";
import { ShopInstance } from "./shop-instance.ts";

/** Between two requests of one client: some hundred requests a second in all. */
const pauseMs = 5;

describe("a Deployment that changes", () => {
  let shop: ShopInstance;
  before(async () => {
    shop = await ShopInstance.start();
  });
  after(() => shop[Symbol.asyncDispose]());

  /** Sends requests until `work` is done, and gives the statuses by count. */
  async function statusesDuring(work: () => Promise<void>): Promise<Record<string, number>> {
    const statuses: Record<string, number> = {};
    const done = new AbortController();
    const caller = async (agent?: Agent): Promise<void> => {
      while (!done.signal.aborted) {
        const status = await shop.get("/api/catalog", {}, agent).then(
          (answer) => String(answer.status),
          (error: Error) => error.message,
        );
        statuses[status] = (statuses[status] ?? 0) + 1;
        // The change itself needs the machine too.
        await pause(pauseMs);
      }
    };
    // Two clients that connect anew each time, and one that keeps its connection as long as it may.
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    const callers = [caller(), caller(), caller(kept)];
    try {
      await work();
    } finally {
      done.abort();
      await Promise.all(callers);
      kept.destroy();
    }
    assert.ok((statuses["200"] ?? 0) > 20, `only ${statuses["200"]} requests`);
    return statuses;
  }

  async function edit(file: string, from: string | RegExp, to: string): Promise<void> {
    const whole = path.join(shop.folder, file);
    await writeFile(whole, (await readFile(whole, "utf8")).replace(from, to));
  }

  async function podsOf(prefix: string): Promise<readonly string[]> {
    return (await shop.pods()).filter(({ name, ready }) => ready && name.startsWith(prefix)).map(({ name }) => name);
  }

  test("is scaled up and down without a lost request", async () => {
    const statuses = await statusesDuring(async () => {
      await edit("catalog.yaml", "replicas: 1", "replicas: 3");
      await waitFor(async () => (await podsOf("catalog-v1")).length === 3, { what: "three pods" });
      await edit("catalog.yaml", "replicas: 3", "replicas: 1");
      await waitFor(async () => (await shop.pods()).length === 5, { what: "one pod" });
    });
    assert.deepEqual(Object.keys(statuses), ["200"]);
  });

  const replacements = [
    { pod: "catalog-v2", file: "catalog.yaml", from: "app: catalog\n        version: v2\n      annotations:" },
    { pod: "webapp", file: "webapp.yaml", from: "app: webapp\n        version: v1\n      annotations:" },
    { pod: "tulle-ingressgateway", file: "gateway.yaml", from: 'inject: "true"\n      annotations:' },
  ];
  for (const { pod, file, from } of replacements) {
    test(`is replaced without a lost request: ${pod}`, async () => {
      const [replaced] = await podsOf(pod);
      const statuses = await statusesDuring(async () => {
        await edit(file, from, `${from}\n        example.com/edition: "2"`);
        await waitFor(
          async () => {
            const pods = (await shop.pods()).filter(({ name }) => name.startsWith(pod));
            return pods.length === 1 && pods[0]!.ready && pods[0]!.name !== replaced;
          },
          { what: "the new pod alone", details: () => shop.up.output() },
        );
      });
      assert.deepEqual(Object.keys(statuses), ["200"]);
    });
  }

  test("is deleted with its pods", async () => {
    await edit("productpage.yaml", /^---\napiVersion: apps\/v1\nkind: Deployment\n[^]*?(?=^---$)/m, "");
    await waitFor(async () => (await podsOf("productpage")).length === 0, { what: "no pod" });
    await waitFor(async () => (await shop.get("/productpage")).status === 503, { what: "no endpoint" });
  });

  test("is applied from elsewhere, with commands relative to its manifest", async () => {
    const folder = path.join(shop.folder, "..");
    await writeFile(path.join(folder, "late.mjs"), lateProgram);
    await writeFile(path.join(folder, "late.yaml"), lateManifest);
    await shop.mustTulle("apply", "-f", path.join(folder, "late.yaml"));
    await waitFor(async () => (await podsOf("late")).length === 1, {
      what: "the pod",
      details: () => shop.up.output(),
    });
    await waitFor(async () => (await shop.get("/late")).body === "late", { what: "its answer" });
    await shop.mustTulle("delete", "-f", path.join(folder, "late.yaml"));
    await waitFor(async () => (await podsOf("late")).length === 0, { what: "no pod" });
  });
});

const lateProgram = `
import { createServer } from "node:http";
createServer((_request, response) => response.end("late")).listen(process.env.PORT_WEB, process.env.HOST);
`;
const lateManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: late, namespace: shop }
spec:
  selector: { matchLabels: { app: late } }
  template:
    metadata:
      labels: { app: late }
      annotations: { local.tulle.io/command.late: '["node", "late.mjs"]' }
    spec:
      containers:
        - name: late
          ports: [{ name: web, containerPort: 7000 }]
---
apiVersion: v1
kind: Service
metadata: { name: late, namespace: shop }
spec:
  selector: { app: late }
  ports: [{ name: http, port: 80, targetPort: web }]
---
apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata: { name: late, namespace: shop }
spec:
  hosts: ["*"]
  gateways: [shop-gateway]
  http:
    - match: [{ uri: { exact: /late } }]
      route: [{ destination: { host: late } }]
`;

/** A Deployment that nobody can run here, a field that nobody knows, and a file that is no YAML. */
async function makeMistakes(folder: string): Promise<void> {
  const replace = async (from: string, to: string, shown: string, wrong: string): Promise<void> =>
    writeFile(path.join(folder, to), (await readFile(path.join(folder, from), "utf8")).replace(shown, wrong));
  await replace("productpage.yaml", "productpage.yaml", "local.tulle.io/command.productpage", "example.com/other");
  await replace(path.join("rules", "3-dark-launch-v2.yaml"), "rule.yaml", "route:", "rout:");
  await writeFile(path.join(folder, "broken.yaml"), "kind: [\n");
}

describe("a folder with mistakes", () => {
  let shop: ShopInstance;
  before(async () => {
    shop = await ShopInstance.start({ prepare: makeMistakes });
  });
  after(() => shop?.[Symbol.asyncDispose]());

  test("a Deployment without a command names the pod and the annotation it needs", () => {
    const output = shop.up.output();
    assert.match(
      output,
      /Deployment shop\/productpage, pod productpage-\w+-\w+: container "productpage" has no local command/,
    );
    assert.match(output, /local\.tulle\.io\/command\.productpage: '\["node", "productpage\/main\.js"\]'/);
    assert.match(output, /^Ready, except for 1 of 5 pods\n +shop\/productpage-\S+ cannot run here/m);
  });

  test("a file with mistakes is pointed at", () => {
    const output = shop.up.output();
    assert.match(output, /rule\.yaml:\d+/);
    assert.match(output, /rout\b[^]*route/);
    assert.match(output, /broken\.yaml:\d+/);
  });

  test("the rest runs", async () => {
    assert.equal((await shop.get("/api/catalog")).status, 200);
  });
});

test("a published port in use says which one, by whom, and what to do", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen({ host: "127.0.0.1", port: 0 }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  try {
    await using shop = await ShopInstance.begin({ args: ["--publish", `${port}:8080`] });
    const exit = await shop.up.exited;
    assert.equal(exit.code, 1);
    const text = shop.up.stderr();
    assert.match(text, new RegExp(`port 127\\.0\\.0\\.1:${port} is in use by process ${process.pid} \\(`));
    assert.match(text, /--publish \d+:8080/);
    assert.deepEqual([...(await shop.processes())], []);
  } finally {
    server.close();
  }
});
