// The same shop on a stock Envoy, beside every app and as the gateway; and mixed with Tulle's own proxy.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { envoyPath } from "../tools/envoy-path.ts";
import { waitFor } from "../tools/processes.ts";
import { meshTests } from "./mesh-tests.ts";
import { httpRequest, inParallel, ShopInstance } from "./shop-instance.ts";

meshTests({ mode: "loopback", proxy: "envoy" });

async function putEnvoyBesideWebapp(folder: string): Promise<void> {
  const file = path.join(folder, "webapp.yaml");
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace("annotations:\n", "annotations:\n        sidecar.tulle.io/proxy: envoy\n"));
}

test("Envoy beside the web front end, by annotation: the routing rules hold", async () => {
  const env = { TULLE_ENVOY: await envoyPath() };
  await using shop = await ShopInstance.start({ prepare: putEnvoyBesideWebapp, env });
  await assertRulesHold(shop, /^webapp/);
});

/** `envoys` are the pods whose proxy is an Envoy. */
async function assertRulesHold(shop: ShopInstance, envoys: RegExp): Promise<void> {
  for (const pod of await shop.pods()) {
    const { version } = JSON.parse((await httpRequest(`http://${pod.address}:15000/server_info`)).body) as {
      version: string;
    };
    // Envoy's version is `<commit>/<version>/<state>/<build type>/<TLS library>`.
    assert.equal(/^[0-9a-f]{40}\//.test(version), envoys.test(pod.name), `${pod.name}: ${version}`);
  }
  const versions = async (headers: Record<string, string> = {}): Promise<Record<string, number>> => {
    const answers = await inParallel(60, 6, () => shop.get("/api/catalog/items/1", headers));
    return Object.fromEntries(
      Map.groupBy(answers, ({ status, body }) =>
        status === 200 ? (body.includes('"imageUrl"') ? "v2" : "v1") : String(status),
      )
        .entries()
        .map(([key, group]) => [key, group.length]),
    );
  };
  const { v1 = 0, v2 = 0 } = await versions();
  assert.equal(v1 + v2, 60);
  assert.ok(v1 > 0 && v2 > 0);
  // An Envoy may have acknowledged routes that its worker is yet to hear of.
  const become = (expected: Record<string, number>, headers: Record<string, string> = {}): Promise<boolean> =>
    waitFor(async () => isDeepStrictEqual(await versions(headers), expected), { what: JSON.stringify(expected) });
  await shop.applyRule("2-everything-to-v1");
  await become({ v1: 60 });
  await shop.applyRule("3-dark-launch-v2");
  await become({ v2: 60 }, { "x-dark-launch": "v2" });
  assert.deepEqual(await versions(), { v1: 60 });
  assert.equal((await shop.get("/productpage")).status, 200);
  assert.match(await shop.mustTulle("proxy-config", "log", (await shop.pod("webapp")).name), /active loggers:/);
}
