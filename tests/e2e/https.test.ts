// HTTPS on one machine: the certificate that `tulle up` makes, believed by its authority alone, and a gateway that
// comes back with it while nobody can hand it out.
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { request } from "node:https";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { runCommand } from "../tools/run-command.ts";
import { waitFor } from "../tools/processes.ts";
import { type Answer, ShopInstance } from "./shop-instance.ts";

/** Verified as a browser that trusts the authority would. */
async function getSecurely(shop: ShopInstance, target: string): Promise<Answer> {
  const ca = await readFile(shop.rootFile);
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const outgoing = request(`https://localhost:${shop.securePort}${target}`, { ca, agent: false, timeout: 10_000 });
  outgoing.once("response", (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    response.once("error", reject);
    response.once("end", () => resolve({ status: response.statusCode!, headers: response.headers, body }));
  });
  outgoing.once("timeout", () => outgoing.destroy(new Error("no answer in time")));
  outgoing.once("error", reject);
  outgoing.end();
  return promise;
}

describe("the shop over HTTPS", () => {
  let shop: ShopInstance;
  before(async () => {
    shop = await ShopInstance.start();
  });
  after(() => shop?.[Symbol.asyncDispose]());

  test("https://localhost works for whoever trusts the authority, and stands in the table of URLs", async () => {
    assert.match(shop.up.stdout(), new RegExp(`^  https://localhost:${shop.securePort} +tulle-ingressgateway`, "m"));
    assert.ok(shop.up.stdout().includes(shop.rootFile), shop.up.stdout());

    const { status, body } = await getSecurely(shop, "/api/catalog");
    assert.equal(status, 200, body);
    assert.match(body, /items|\[/);
    for (const host of ["localhost", "127.0.0.1"]) {
      const url = `https://${host}:${shop.securePort}/productpage`;
      const curl = await runCommand("curl", [
        "-sS",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "--cacert",
        shop.rootFile,
        url,
      ]);
      assert.equal(curl.stdout, "200", curl.stderr);
    }
    const stranger = await runCommand("curl", ["-sS", `https://localhost:${shop.securePort}/`]);
    assert.notEqual(stranger.code, 0, "nobody else believes it");

    const shown = await shop.mustTulle("get", "secret", "localhost-dev", "-n", "tulle-system", "-o", "yaml");
    assert.match(shown, /tls.key: \(hidden\)/);
    assert.doesNotMatch(shown, /BEGIN|LS0t/);
    const authority = path.join(path.dirname(shop.rootFile), "authority.pem");
    assert.equal((await stat(authority)).mode & 0o777, 0o600);
  });

  test("a gateway that starts without a control plane serves TLS with what it had", async () => {
    assert.equal((await getSecurely(shop, "/api/catalog")).status, 200);
    const gateway = await shop.pod("tulle-ingressgateway");
    const stateFile = path.join(shop.folder, ".tulle", "pods", gateway.name, "xds-state");
    await waitFor(async () => (await readFile(stateFile, "utf8").catch(() => "")).includes('"SDS"'), {
      what: "the Secret in the saved state",
    });
    assert.equal((await stat(stateFile)).mode & 0o777, 0o600);
    const processes = await shop.processes();
    // A control plane does not start with an empty token: so it stays away.
    await writeFile(path.join(shop.folder, ".tulle", "token"), "");
    process.kill(processes.get("control-plane")!, "SIGKILL");
    await shop.up.waitForOutput(/control plane ended \(exit status 1: .*token is empty/);
    const earlier = processes.get(`${gateway.name} proxy`)!;
    process.kill(earlier, "SIGKILL");
    await waitFor(async () => ![undefined, earlier].includes((await shop.processes()).get(`${gateway.name} proxy`)), {
      what: "the gateway to be started again",
    });
    await waitFor(async () => (await getSecurely(shop, "/api/catalog").catch(() => undefined))?.status === 200, {
      what: "an answer over TLS",
    });
  });
});
