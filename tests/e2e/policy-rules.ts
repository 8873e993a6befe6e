// Who may call whom, by policies of the sample and by others: over mutual TLS the caller's certificate says who it is.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { type MeshVariant, untilTaken } from "./mesh-variant.ts";
import { statOf } from "./requests-on-their-way.ts";
import { useRunningShop } from "./running-shop.ts";
import { inParallel, type ShopInstance } from "./shop-instance.ts";

/** Of the web front end: what comes through the gateway, and of that what only reads. */
const readersAtTheGateway = `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: readers-at-the-gateway, namespace: shop }
spec:
  selector: { matchLabels: { app: webapp } }
  action: ALLOW
  rules:
    - from: [{ source: { namespaces: [tulle-system] } }]
      to: [{ operation: { methods: [GET], paths: [/api/*] } }]
`;

const denied = "RBAC: access denied";

/** The tests of a suite. */
export function policyTests(variant: MeshVariant): void {
  let shop: ShopInstance;
  useRunningShop(variant, (running) => (shop = running));

  const policy = (name: string): string => path.join(shop.folder, "policies", `${name}.yaml`);
  const apply = async (file: string): Promise<void> => {
    await shop.mustTulle("apply", "-f", file);
    await shop.waitForSync();
  };
  const takeBack = async (file: string): Promise<void> => {
    await shop.mustTulle("delete", "-f", file);
    await shop.waitForSync();
  };

  /** What the catalog answers a program of that pod; its status and, where that is refused, who says so. */
  async function read(caller: string, method = "GET"): Promise<string> {
    const catalog = { host: "catalog.shop", port: 80 };
    const { status, body } = await shop.reach.from(await shop.pod(caller), catalog, "/items/1", { method });
    return status === 403 ? `403 ${body}` : String(status);
  }

  /** Of a program that is no part of the mesh. */
  const readOutside = async (): Promise<string> => {
    const answer = shop.reach.fromOutside(await shop.pod("catalog-v1"), "/items/1");
    return answer.then(
      ({ status, body }) => (status === 403 ? `403 ${body}` : String(status)),
      (error: NodeJS.ErrnoException) => error.code ?? error.message,
    );
  };

  /** Of both versions of the catalog, and on connections of before, which an Envoy asks to leave. */
  const becomes = (ask: () => Promise<string>, expected: string): Promise<void> =>
    untilTaken(variant, async () => {
      const answers = await inParallel(12, 2, ask);
      return answers.every((answer) => answer === expected);
    });
  const statusOf = (target: string) => async (): Promise<string> => String((await shop.get(target)).status);

  test("without a policy everybody is answered", async () => {
    for (const caller of ["webapp", "productpage"]) assert.equal(await read(caller), "200", caller);
    assert.equal(await readOutside(), "200");
  });

  test("STRICT: who is no part of the mesh is refused before a word is said, and the mesh goes on", async () => {
    await apply(policy("1-strict-mutual-tls"));
    await becomes(readOutside, "ECONNRESET");
    for (let time = 0; time < 5; time += 1) assert.equal(await readOutside(), "ECONNRESET");
    for (const caller of ["webapp", "productpage"]) assert.equal(await read(caller), "200", caller);
    assert.equal((await shop.get("/api/catalog/items/1")).status, 200);
    await takeBack(policy("1-strict-mutual-tls"));
    await becomes(readOutside, "200");
    assert.equal(await readOutside(), "200");
  });

  test("a caller is denied by what its certificate says, and who shows none is nobody", async () => {
    const file = policy("2-only-the-web-front-end-reads");
    await apply(file);
    await becomes(() => read("productpage"), `403 ${denied}`);
    await becomes(() => read("webapp"), "200");
    await becomes(readOutside, `403 ${denied}`);
    const refused = `^http\\.inbound_.*rbac\\..*denied$`;
    const before = (await statOf(shop, "catalog-v1", refused)) + (await statOf(shop, "catalog-v2", refused));
    for (let time = 0; time < 6; time += 1) {
      assert.equal(await read("productpage"), `403 ${denied}`);
      assert.equal(await read("webapp"), "200");
    }
    assert.equal(await readOutside(), `403 ${denied}`);
    const after = (await statOf(shop, "catalog-v1", refused)) + (await statOf(shop, "catalog-v2", refused));
    assert.equal(after - before, 7);
    assert.equal((await shop.get("/api/catalog/items/1")).status, 200);
    // The rule is about reading: what else it asks is for the catalog to answer.
    assert.doesNotMatch(await read("productpage", "DELETE"), /^(403|5)/);
    await takeBack(file);
    await becomes(() => read("productpage"), "200");
    assert.equal(await read("productpage"), "200");
  });

  test("what is allowed by namespace, method and path passes, and nothing else", async () => {
    const file = path.join(temporaryFolder("tulle-policy-"), "policy.yaml");
    await writeFile(file, readersAtTheGateway);
    await apply(file);
    const webapp = { host: "webapp.shop", port: 80 };
    const beside = async (): Promise<string> => {
      const { status, body } = await shop.reach.from(await shop.pod("productpage"), webapp, "/api/catalog");
      return `${status} ${status === 403 ? body : ""}`.trim();
    };
    await becomes(beside, `403 ${denied}`);
    assert.equal(await beside(), `403 ${denied}`);
    await becomes(statusOf("/health"), "403");
    assert.equal((await shop.get("/api/catalog")).status, 200);
    const other = await shop.get("/health");
    assert.deepEqual([other.status, other.body], [403, denied]);
    await takeBack(file);
    await becomes(beside, "200");
    assert.equal(await beside(), "200");
    await becomes(statusOf("/health"), "200");
    assert.equal((await shop.get("/health")).status, 200);
  });
}
