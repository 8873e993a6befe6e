// HTTPS on one machine: the certificate that `tulle up` makes, believed by its authority alone.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import http2 from "node:http2";
import path from "node:path";
import { describe, test } from "node:test";
import { runCommand } from "../tools/run-command.ts";
import { useRunningShop } from "./running-shop.ts";
import { getSecurely, type ShopInstance } from "./shop-instance.ts";

describe("the shop over HTTPS", () => {
  let shop: ShopInstance;
  useRunningShop("Tulle's proxy", (running) => (shop = running));

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

  test("HTTP/2 is offered, and hosts that the certificate is not for are sent elsewhere", async () => {
    const session = http2.connect(`https://localhost:${shop.securePort}`, { ca: await readFile(shop.rootFile) });
    try {
      const statusOf = async (authority: string): Promise<number | undefined> => {
        const stream = session.request({ ":path": "/productpage", ":authority": authority }).resume();
        const [headers] = (await once(stream, "response")) as [http2.IncomingHttpHeaders & { ":status"?: number }];
        return headers[":status"];
      };
      assert.equal(await statusOf(`localhost:${shop.securePort}`), 200);
      assert.equal(session.alpnProtocol, "h2");
      assert.equal(await statusOf("elsewhere.example"), 421);
      assert.equal(await statusOf(`localhost:${shop.securePort}`), 200, "the connection goes on");
    } finally {
      session.destroy();
    }
  });
});
