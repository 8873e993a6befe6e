// Every golden xDS file is served to a real Envoy over ADS in each run, and has to be acknowledged whole. One Envoy
// takes all of them in turn, so that each is also a change from the one before.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { EnvoyUnderAds } from "./envoy-under-ads.ts";
import { goldenCaseNames, resourcesFromGolden, storedFiles } from "./golden-cases.ts";

/** Sidecars that are led their connections to listen at all addresses of their pod: here on loopback alone. */
function onLoopback(text: string): string {
  return text
    .replaceAll(/address: 0\.0\.0\.0(\s+port_value: 150(?:01|06)\b)/g, "address: 127.200.9.1$1")
    .replaceAll(/address: "?::"?(\s+port_value: 150(?:01|06)\b)/g, "address: 127.200.9.2$1");
}

describe("a stock Envoy acknowledges every golden file", async () => {
  let envoy: EnvoyUnderAds;

  before(async () => {
    envoy = await EnvoyUnderAds.start();
  });

  after(async () => {
    await envoy?.[Symbol.asyncDispose]();
  });

  for (const name of await goldenCaseNames()) {
    const files = [...(await storedFiles(name))].filter(([file]) => file.endsWith(".xds.yaml"));
    for (const [file, text] of files) {
      test(`${name}/${file}`, async () => {
        assert.deepEqual(await envoy.offer(resourcesFromGolden(envoy.withFiles(onLoopback(text)))), []);
      });
    }
  }

  test("and refuses a broken one", async () => {
    const stored = await storedFiles("rule-3-dark-launch");
    const [text = ""] = [...stored].filter(([file]) => file.endsWith(".xds.yaml")).map(([, content]) => content);
    const broken = resourcesFromGolden(text.replaceAll("exact: v2", "safe_regex: { regex: '(' }"));
    const refused = await envoy.offer(broken);
    assert.deepEqual(
      refused.map(({ name }) => name),
      ["http_proxy"],
    );
  });
});
