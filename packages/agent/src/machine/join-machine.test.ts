// A machine that is led to somebody else than the control plane which made its token: nothing is said there.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { test } from "node:test";
import { createServer } from "node:tls";
import { generateKey, joinTokenText, privateKeyPem } from "@tulle/identity";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { controlPlaneName } from "../identity/client-tls.ts";
import { testAuthority } from "../testing/test-authority.ts";
import { joinMachine } from "./join-machine.ts";

test("a control plane that shows none of the pinned roots gets no secret and no request", async (t) => {
  const { authority } = await testAuthority(t);
  const key = await generateKey();
  const { chainPem } = authority.issueServing({ key, hosts: [controlPlaneName] });
  const server = createServer({
    key: privateKeyPem(key),
    cert: chainPem + authority.trustBundlePem,
    ALPNProtocols: ["h2"],
  });
  let received = "";
  server.on("secureConnection", (socket) => {
    socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1"))).on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const at = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const token = joinTokenText({ controlPlanes: [at], rootPins: ["a".repeat(43)], id: "one", secret: "the secret" });
  const stateFolder = path.join(temporaryFolder("tulle-join-"), "state");
  const joined = await joinMachine({ token, stateFolder, hostname: "box", address: "10.9.0.4" });
  assert.equal(joined.ok, false);
  assert.match(joined.ok ? "" : joined.reason, /shows none of the roots that the token is for/);
  assert.equal(received, "");
  assert.equal(existsSync(path.join(stateFolder, "machine.json")), false);
});
