// What `tulle proxy-status` says of proxies that are up to date, behind, or refuse something.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import type { Finding } from "@tulle/config";
import { freePort, waitFor } from "../tools/processes.ts";
import { useRunningShop } from "./running-shop.ts";
import { httpRequest, type ShopInstance } from "./shop-instance.ts";

describe("tulle proxy-status", () => {
  let shop: ShopInstance;
  useRunningShop("Tulle's proxy", (running) => (shop = running));

  /** The row of a proxy as columns. */
  async function row(prefix: string): Promise<Record<string, string>> {
    const lines = (await shop.mustTulle("proxy-status")).split("\n");
    const header = lines[0]!.split(/ {2,}/);
    const line = lines.find((each) => each.startsWith(prefix));
    return Object.fromEntries((line ?? "").split(/ {2,}/).map((cell, index) => [header[index]!, cell]));
  }

  test("shows SYNCED and NOT SENT by kind for every proxy", async () => {
    const lines = (await shop.mustTulle("proxy-status")).trim().split("\n");
    assert.match(lines[0]!, /^NAME +CLUSTER +CDS +LDS +EDS +RDS +ECDS +TULLED +VERSION$/);
    assert.equal(lines.length, 6);
    const names = (await shop.pods()).map(({ name, namespace }) => `${name}.${namespace}`).sort();
    assert.deepEqual(
      lines.slice(1).map((line) => line.split(" ")[0]),
      names,
    );
    for (const line of lines.slice(1)) {
      assert.match(line, /^\S+ +local +SYNCED +SYNCED +SYNCED +SYNCED +NOT SENT +tulled-[a-z0-9]{5} +\d+\.\d+\.\d+$/);
    }
  });

  test("a stopped proxy is STALE after a push, and SYNCED once it goes on", async () => {
    const { name } = await shop.pod("webapp");
    const pid = (await shop.processes()).get(`${name} proxy`)!;
    process.kill(pid, "SIGSTOP");
    try {
      await shop.mustTulle("apply", "-f", path.join(shop.folder, "rules", "2-everything-to-v1.yaml"));
      await waitFor(async () => (await row("webapp"))["RDS"]?.startsWith("STALE"), { what: "STALE" });
      assert.equal((await row("catalog-v1"))["RDS"], "SYNCED");
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await waitFor(async () => (await row("webapp"))["RDS"] === "SYNCED", { what: "SYNCED" });
    const answer = await waitFor(
      async () => {
        const each = await shop.get("/api/catalog/items/1");
        return each.status === 200 && each;
      },
      { what: "an answer through the proxy" },
    );
    assert.doesNotMatch(answer.body, /imageUrl/);
  });

  test("a refused resource is ERROR with its reason, and the rest of the push is in effect", async () => {
    const { address } = await shop.pod("tulle-ingressgateway");
    const occupied = createServer();
    await new Promise<void>((resolve) => {
      occupied.listen({ host: address, port: 9999, exclusive: true }, resolve);
    });
    try {
      const file = path.join(shop.folder, "..", "second-gateway.yaml");
      await writeFile(file, secondGateway);
      await shop.tulle("apply", "-f", file);
      await waitFor(async () => (await row("tulle-ingressgateway"))["LDS"]?.startsWith("ERROR"), { what: "ERROR" });
      const text = await shop.mustTulle("proxy-status");
      assert.match(text, /9999/);
      const yaml = await shop.mustTulle("get", "gateway", "occupied", "-n", "shop", "-o", "yaml");
      assert.match(
        yaml,
        /rejections:\s+- proxy: tulle-ingressgateway-\S+\s+type: LDS\s+resource: 0\.0\.0\.0_9999\s+message: .*9999/,
      );
      const analyzed = await shop.tulle("analyze", "-o", "json");
      const findings = (JSON.parse(analyzed.stdout) as Finding[]).filter(({ code }) => code === "TUL0011");
      assert.equal(analyzed.code, 4);
      assert.deepEqual(
        findings.map(({ resource, place }) => [resource?.kind, resource?.name, path.basename(place?.file ?? "")]),
        [["Gateway", "occupied", "second-gateway.yaml"]],
      );
      assert.match(findings[0]!.message, /^tulle-ingressgateway-\S+ refused LDS 0\.0\.0\.0_9999: .*9999.*in use/);
      const answer = await waitFor(
        async () => {
          const each = await shop.get("/items");
          return each.status === 200 && each;
        },
        { what: "the other route of the same push" },
      );
      assert.match(answer.body, /Lighthouse Glasses/);
      assert.equal((await shop.get("/api/catalog")).status, 200);
    } finally {
      occupied.close();
    }
    // Mended where it was wrong, and nothing is started again for it.
    const port = await freePort(address);
    await writeFile(path.join(shop.folder, "..", "second-gateway.yaml"), secondGateway.replace("9999", String(port)));
    await shop.tulle("apply", "-f", path.join(shop.folder, "..", "second-gateway.yaml"));
    await waitFor(async () => (await row("tulle-ingressgateway"))["LDS"] === "SYNCED", { what: "SYNCED again" });
    await shop.waitForSync();
    const mended = await httpRequest(`http://${address}:${port}/items`);
    assert.equal(mended.status, 200);
    assert.doesNotMatch(await shop.mustTulle("get", "gateway", "occupied", "-n", "shop", "-o", "yaml"), /rejections/);
    assert.doesNotMatch((await shop.tulle("analyze")).stdout, /TUL0011/);
    assert.equal((await shop.pod("tulle-ingressgateway")).restarts, 0);
  });
});

const secondGateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata:
  name: occupied
  namespace: shop
spec:
  selector:
    istio: ingressgateway
  servers:
    - port:
        number: 9999
        name: http
        protocol: HTTP
      hosts:
        - "*"
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: items
  namespace: shop
spec:
  hosts:
    - "*"
  gateways:
    - shop-gateway
    - occupied
  http:
    - match:
        - uri:
            exact: /items
      route:
        - destination:
            host: catalog
            port:
              number: 80
`;
