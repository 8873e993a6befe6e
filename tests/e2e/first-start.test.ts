// What a newcomer sees: one command, Ready, and requests that travel through gateway and sidecars.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { httpRequest, type Pod, ShopInstance } from "./shop-instance.ts";

describe("a shop that has just started", () => {
  let shop: ShopInstance;
  before(async () => {
    shop = await ShopInstance.start();
  });
  after(() => shop[Symbol.asyncDispose]());

  test("says Ready last, with a table of URLs", async () => {
    await shop.up.waitForOutput(
      new RegExp(`\\nReady\\n\\n +http://localhost:${shop.port} +tulle-ingressgateway\\.tulle-system\\n`),
    );
    const pods = JSON.parse(await shop.mustTulle("pods", "-o", "json")) as Pod[];
    assert.ok(pods.every((pod) => pod.ready && pod.restarts === 0));
    assert.deepEqual(new Set(pods), new Set(await shop.pods()), "what the tests go by");
  });

  const paths = [
    { path: "/api/catalog", status: 200, body: /^\[\{"id":1,/ },
    { path: "/api/catalog/items/1", status: 200, body: /^\{"id":1,.*"price":"282\.00"/ },
    { path: "/api/catalog/items/99", status: 404, body: /^\{"error":/ },
    { path: "/other", status: 404, body: /^\{"error":/ },
    { path: "/productpage", status: 200, body: /^<!doctype html>[^]*Lighthouse Glasses/ },
    { path: "/static/shop.css", status: 200, body: /:root/ },
    { path: "/login", status: 200, body: /<form/ },
    { path: "/logout", status: 303, body: /^$/ },
    { path: "/api/v1/products", status: 200, body: /^\[\{"id":1,/ },
    { path: "/api/v1/products/2", status: 200, body: /^\{"id":2,/ },
  ];
  for (const { path: target, status, body } of paths) {
    test(`${target} answers ${status}`, async () => {
      const answer = await shop.get(target);
      assert.equal(answer.status, status);
      assert.match(answer.body, body);
      assert.equal(answer.headers["server"], "istio-envoy");
    });
  }

  test("every hop is seen by the proxies on the way", async () => {
    const counts = await shop.requestCounts();
    const hops = [
      { pod: "tulle-ingressgateway", reporter: "source", service: "webapp" },
      { pod: "webapp", reporter: "destination", service: "webapp" },
      { pod: "webapp", reporter: "source", service: "catalog" },
      { pod: "catalog", reporter: "destination", service: "catalog" },
      { pod: "productpage", reporter: "source", service: "catalog" },
    ];
    for (const { pod, reporter, service } of hops) {
      const sum = counts
        .filter(
          (each) =>
            each.pod.startsWith(pod) &&
            each.labels["reporter"] === reporter &&
            each.labels["destination_service_name"] === service,
        )
        .reduce((total, { value }) => total + value, 0);
      assert.ok(sum > 0, `${pod} has counted no request to ${service} as ${reporter}`);
    }
  });

  test("a proxy's log level changes while it runs", async () => {
    const { name, address } = await shop.pod("webapp");
    const log = path.join(shop.folder, ".tulle", "logs", name, "proxy.log");
    const debugLines = async (): Promise<number> =>
      (await readFile(log, "utf8")).match(/\[debug\]\[http\]/g)?.length ?? 0;
    await shop.get("/api/catalog");
    assert.equal(await debugLines(), 0);
    const answer = await httpRequest(`http://${address}:15000/logging?http=debug`, { method: "POST" });
    assert.equal(answer.status, 200);
    assert.match(answer.body, /^active loggers:\n[^]* {2}http: debug\n[^]* {2}router: info\n/);
    await shop.get("/api/catalog");
    await waitFor(debugLines, { what: "debug lines in the proxy's log" });
    await httpRequest(`http://${address}:15000/logging?http=info`, { method: "POST" });
  });

  test("logs of app and proxy are shown by the start of a pod's name", async () => {
    assert.match(await shop.mustTulle("logs", "catalog-v1"), /catalog listens on http:\/\/127\./);
    const { name } = await shop.pod("tulle-ingressgateway");
    await waitFor(async () => (await shop.mustTulle("logs", name)).includes('"GET /productpage HTTP/1.1" 200'), {
      what: "the gateway's access log",
    });
    const { code, stderr } = await shop.tulle("logs", "catalog");
    assert.equal(code, 1);
    assert.match(stderr, /there is more than one pod catalog\nSay which:\n {2}catalog-v[12]-/);
  });

  test("a second start in the same folder is refused", async () => {
    const { code, stdout, stderr } = await shop.tulle("up", shop.folder);
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /is already running \(process \d+\)\nEnd it first: tulle down /);
  });

  test("tulle down ends it, and nothing of it runs on", async () => {
    assert.match(await shop.mustTulle("down", shop.folder), /is down/);
    const exit = await shop.up.exited;
    assert.deepEqual(exit, { code: 0, signal: null });
    assert.deepEqual([...(await shop.processes())], []);
    const { code, stderr } = await shop.tulle("pods");
    assert.equal(code, 3);
    assert.match(stderr, /nothing runs in /);
  });
});
