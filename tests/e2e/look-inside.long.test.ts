// The commands that tell what holds for a pod: the same on Tulle's proxy and on a stock Envoy, of the shop's own
// policies.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { checkCommandsOnTerminals } from "@tulle/cli/commands-on-terminals";
import { envoyPath } from "../tools/envoy-path.ts";
import { runCommand } from "../tools/run-command.ts";
import { waitFor } from "../tools/processes.ts";
import { commandEntry, httpRequest, ShopInstance } from "./shop-instance.ts";

/** Version 1 of the catalog has Tulle's proxy, version 2 an Envoy. */
async function putEnvoyBesideVersion2(folder: string): Promise<void> {
  const file = path.join(folder, "catalog.yaml");
  const [before, after] = (await readFile(file, "utf8")).split(/(?=^ {2}name: catalog-v2$)/m);
  await writeFile(
    file,
    before + after!.replace("annotations:\n", "annotations:\n        sidecar.tulle.io/proxy: envoy\n"),
  );
}

/** What a terminal of the kernel's shows of the pods. */
async function onTerminal(shop: ShopInstance, columns: number): Promise<string> {
  const { stdout, code } = await runCommand(
    "script",
    ["--quiet", "--return", "--command", `stty cols ${columns}; exec "$NODE" "$ENTRY" pods`, "/dev/null"],
    { env: { ...process.env, NODE: process.execPath, ENTRY: commandEntry, TULLE_DIR: shop.folder, TERM: "xterm" } },
  );
  assert.equal(code, 0, stdout);
  return stdout;
}

test("certificates, policies and descriptions of both proxies", async () => {
  await using shop = await ShopInstance.start({
    without: ["productpage.yaml"],
    args: ["--join-address", "127.0.0.1:0"],
    prepare: putEnvoyBesideVersion2,
    env: { TULLE_ENVOY: await envoyPath() },
  });
  const pods = [await shop.pod("catalog-v1"), await shop.pod("catalog-v2")];
  for (const [index, { address }] of pods.entries()) {
    const { version } = JSON.parse((await httpRequest(`http://${address}:15000/server_info`)).body) as {
      version: string;
    };
    assert.equal(/^[0-9a-f]{40}\//.test(version), index === 1, version);
  }
  // The sample's tokens would need its authorization server, which these tests leave out.
  for (const policy of ["1-strict-mutual-tls", "2-only-the-web-front-end-reads"]) {
    await shop.mustTulle("apply", "-f", path.join(shop.folder, "policies", `${policy}.yaml`));
  }
  await shop.waitForSync();

  for (const { name, namespace } of pods) {
    const data = async (...args: readonly string[]): Promise<unknown> =>
      JSON.parse(await shop.mustTulle(...args, "-o", "json"));
    const secrets = (await data("proxy-config", "secret", name)) as Record<string, unknown>[];
    const shown = secrets.map(({ name: secret, type, status, valid, trustDomain }) => [
      secret,
      [type, status, valid, trustDomain],
    ]);
    assert.deepEqual(
      new Map(shown as [string, unknown][]),
      new Map([
        ["default", ["Cert Chain", "ACTIVE", true, "cluster.local"]],
        ["ROOTCA", ["CA", "ACTIVE", true, undefined]],
      ]),
    );
    const reads = { action: "DENY", dryRun: false, name: "only-the-web-front-end-reads", namespace: "shop", rules: 1 };
    // Everything is acknowledged; a listener that changes may still be on its way in.
    await waitFor(async () => ((await data("authz", "check", name)) as unknown[]).length > 0, { what: "the policy" });
    assert.deepEqual(await data("authz", "check", name), [reads]);
    assert.deepEqual(await data("x", "authz", "check", name), [reads]);
    const described = (await data("x", "describe", "pod", `${name}.${namespace}`)) as Record<string, unknown>;
    assert.deepEqual(described["policies"], [reads]);
    assert.deepEqual(described["mutualTls"], {
      mode: "STRICT",
      ports: {},
      applied: [{ name: "default", namespace: "shop" }],
    });
  }
  const [one, other] = pods.map(({ name }) => name);
  assert.match(
    await shop.mustTulle("proxy-config", "rootca-compare", one!, other!),
    /trust the same root, and each one/,
  );
  assert.match(
    await shop.mustTulle("x", "describe", "service", "webapp.shop"),
    new RegExp(
      `^Exposed on Ingress Gateway shop-gateway.shop at http://localhost:${shop.port} and https://localhost:`,
      "m",
    ),
  );
  const missing = await shop.tulle("authz", "check", "nobody");
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /^tulle: there is no pod nobody\nPods:\n/);

  await checkCommandsOnTerminals({ folder: shop.folder, pod: one!, other: other! });
  const [unknown, usual, narrow] = await Promise.all([0, 80, 40].map((columns) => onTerminal(shop, columns)));
  assert.equal(unknown, usual, "a terminal that does not know its width counts as 80 columns wide");
  assert.notEqual(unknown, narrow);
});
