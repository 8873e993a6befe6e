// What lies on disk is read back, and nothing else.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { EndpointsFile, readSavedEndpoints } from "./saved-endpoints.ts";

test("saved, read again, and not believed blindly", async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tulle-providers-"));
  t.after(() => rm(folder, { recursive: true }));
  const name = path.join(folder, "login-providers.json");
  assert.equal((await readSavedEndpoints(name)).size, 0);
  const file = new EndpointsFile(name, (error) => assert.fail(String(error)));
  const endpoints = { authorizationEndpoint: "https://a.test/a", tokenEndpoint: "https://a.test/t" };
  file.save(new Map([["old", endpoints]]));
  file.save(new Map([["older", endpoints]]));
  file.save(new Map([["https://a.test", endpoints]]));
  await file.close();
  assert.deepEqual([...(await readSavedEndpoints(name))], [["https://a.test", endpoints]]);
  await writeFile(name, '{"a":{"tokenEndpoint":"javascript:1","authorizationEndpoint":"https://a.test/a"},"b":1}');
  assert.deepEqual([...(await readSavedEndpoints(name))], [["a", { authorizationEndpoint: "https://a.test/a" }]]);
  for (const text of ["", "null", "[", '"x"']) {
    await writeFile(name, text);
    assert.equal((await readSavedEndpoints(name)).size, 0, text);
  }
});
