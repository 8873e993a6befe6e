// Numbers of two packages that have to agree: the control plane hears of an issuer's key twice before anything is
// signed with it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { keySetLifeMs, loadConfig } from "@tulle/authorization-server";
import { defaultJwksTimes } from "@tulle/control-plane/stages";

for (const [name, argv] of [
  ["by default", []],
  ["at the shortest that is allowed", ["--key-publish-ahead", "10m"]],
] as const) {
  test(`a key is published for two refreshes before it signs, ${name}`, () => {
    const { config, problems } = loadConfig({ argv, environment: {} });
    assert.ok(config, problems?.join() ?? "help");
    assert.ok(config.keyPublishAheadMs >= 2 * defaultJwksTimes.refreshMs);
    assert.ok(keySetLifeMs >= defaultJwksTimes.refreshMs);
  });
}
