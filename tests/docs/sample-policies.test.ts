// The shop's policies on paper: each alone and all together are without a finding, and what two files say is the same
// in both.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { analyze, loadPaths, sameContent, type MeshResource } from "@tulle/config";

const shop = path.resolve(import.meta.dirname, "../../samples/shop");
const policies = path.join(shop, "policies");
const files = (await readdir(policies)).filter((name) => name.endsWith(".yaml"));

/** The later of two with one name counts, as it does when it is applied. */
async function meshWith(...paths: readonly string[]): Promise<{ resources: MeshResource[]; codes: string[] }> {
  const resources = new Map<string, MeshResource>();
  const codes: string[] = [];
  for (const each of paths) {
    const loaded = await loadPaths([each]);
    codes.push(...loaded.findings.filter(({ severity }) => severity !== "info").map(({ code }) => code));
    for (const resource of loaded.resources) {
      resources.set([resource.kind, resource.metadata.namespace, resource.metadata.name].join("/"), resource);
    }
  }
  return { resources: [...resources.values()], codes };
}

test("there are four", () => assert.equal(files.length, 4));

for (const names of [...files.map((name) => [name]), files]) {
  test(`${names.join(", ")}: no finding besides those of the shop`, async () => {
    const shopAlone = await meshWith(shop);
    const applied = await meshWith(shop, ...names.map((name) => path.join(policies, name)));
    assert.deepEqual(applied.codes, shopAlone.codes);
    const codesOf = (resources: readonly MeshResource[]) =>
      analyze(resources).map(({ code, message }) => `${code} ${message}`);
    assert.deepEqual(codesOf(applied.resources), codesOf(shopAlone.resources));
    for (const resource of applied.resources) {
      if (resource.kind !== "RequestAuthentication") continue;
      for (const { audiences = [] } of resource.spec.jwtRules ?? []) assert.notDeepEqual(audiences, []);
    }
  });
}

test("account.yaml and the policy ask people to sign in alike", async () => {
  const [account, policy] = await Promise.all(
    [path.join(shop, "account.yaml"), path.join(policies, "4-sign-in-for-account.yaml")].map(async (file) =>
      (await loadPaths([file])).resources.find(({ kind }) => kind === "BrowserLogin"),
    ),
  );
  assert.ok(sameContent(account!, policy!));
});
