// A Service that speaks its own protocol: reached through a tunnel of the caller's sidecar, with the mesh's
// certificates between the sidecars and policies of connections at the far end.
import assert from "node:assert/strict";
import { readFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { envoyPath } from "../tools/envoy-path.ts";
import { waitFor } from "../tools/processes.ts";
import { callThrough, writeEchoService } from "./echo-service.ts";
import { ShopInstance } from "./shop-instance.ts";

const onlyCatalog = `
apiVersion: security.tulle.io/v1
kind: AuthorizationPolicy
metadata: { name: echo, namespace: shop }
spec:
  selector: { matchLabels: { app: echo } }
  action: DENY
  rules:
    - from: [{ source: { principals: [cluster.local/ns/shop/sa/webapp] } }]
`;

for (const proxy of ["tulle", "envoy"] as const) {
  describe(`a TCP Service behind ${proxy}`, () => {
    let shop: ShopInstance;
    before(async () => {
      shop = await ShopInstance.start({
        args: ["--proxy", proxy],
        without: ["productpage.yaml"],
        env: { TULLE_ENVOY: await envoyPath() },
        async prepare(folder) {
          await writeEchoService(folder);
        },
      });
    });
    after(() => shop[Symbol.asyncDispose]());

    async function counter(address: string, name: string): Promise<number> {
      const answer = await fetch(`http://${address}:15000/stats`);
      const line = (await answer.text()).split("\n").find((each) => each.startsWith(`${name}: `));
      return Number(line?.split(": ")[1]);
    }

    test("is reached by every name through the caller's sidecar", async () => {
      const webapp = await shop.pod("webapp");
      const echo = await shop.pod("echo");
      for (const name of ["echo", "echo.shop", "echo.shop.svc.cluster.local"]) {
        const received = await callThrough(webapp.address, `${name}:7`, "ping");
        assert.match(received, /^HTTP\/1\.1 200 [^]*\r\n\r\nping$/, name);
      }
      assert.match(await callThrough(webapp.address, "echo:8", ""), /^HTTP\/1\.1 404 /);
      // An HTTP port has rules for requests, which a tunnel would go past.
      assert.match(await callThrough(webapp.address, "catalog:80", ""), /^HTTP\/1\.1 404 /);
      await waitFor(
        async () => (await counter(echo.address, "tcp.inbound|7007||.downstream_cx_rx_bytes_total")) === 12,
        {
          what: "the bytes in the callee's counters",
        },
      );
    });

    // Ours alone: Envoy leaves out what asks for it.
    if (proxy === "tulle")
      test("counts connections by who calls whom", async () => {
        const echo = await shop.pod("echo");
        const page = await waitFor(
          async () => {
            const answer = await fetch(`http://${echo.address}:15000/stats/prometheus`);
            const text = await answer.text();
            return /^istio_tcp_connections_closed_total\{.* 3$/m.test(text) && text;
          },
          { what: "three connections that have ended" },
        );
        const [opened] = page.split("\n").filter((line) => line.startsWith("istio_tcp_connections_opened_total{"));
        for (const label of [
          'reporter="destination"',
          'source_principal="spiffe://cluster.local/ns/shop/sa/webapp"',
          'destination_service="echo.shop.svc.cluster.local"',
          'destination_workload="echo"',
          'request_protocol="tcp"',
          'connection_security_policy="mutual_tls"',
        ]) {
          assert.ok(opened?.includes(label), `${label} in ${opened}`);
        }
        assert.match(opened!, / 3$/);
        const webapp = await shop.pod("webapp");
        const callers = await waitFor(
          async () => {
            const text = await (await fetch(`http://${webapp.address}:15000/stats/prometheus`)).text();
            return /^istio_tcp_connections_closed_total\{.*destination_workload="echo".* 3$/m.test(text) && text;
          },
          { what: "three connections that have ended at the caller" },
        );
        const of = (name: string): readonly string[] =>
          callers.split("\n").filter((line) => line.startsWith(name) && line.includes('destination_workload="echo"'));
        // To who asks for it a tunnel is a connection, whatever his sidecar is asked it by.
        assert.deepEqual(of("istio_requests_total"), []);
        for (const [name, count] of [
          ["connections_opened", 3],
          ["connections_closed", 3],
          ["received_bytes", 12],
          ["sent_bytes", 12],
        ] as const) {
          const [line = ""] = of(`istio_tcp_${name}_total{`);
          for (const label of [
            'reporter="source"',
            'source_workload="webapp"',
            'source_principal="spiffe://cluster.local/ns/shop/sa/webapp"',
            'destination_principal="spiffe://cluster.local/ns/shop/sa/echo"',
            'destination_service="echo.shop.svc.cluster.local"',
            'request_protocol="tcp"',
            'connection_security_policy="unknown"',
          ])
            assert.ok(line.includes(label), `${label} in ${line}`);
          assert.ok(line.endsWith(`} ${count}`), line);
        }
        for (const name of ["received_bytes", "sent_bytes"]) {
          assert.match(page, new RegExp(`^istio_tcp_${name}_total\\{.* 12$`, "m"), name);
        }
      });

    test("refuses those whom a policy denies, and says so in the log", async () => {
      const file = path.join(shop.folder, "..", "deny.yaml");
      await writeFile(file, onlyCatalog);
      await shop.mustTulle("apply", "-f", file);
      await shop.waitForSync();
      const [webapp, catalog, echo] = [await shop.pod("webapp"), await shop.pod("catalog-v1"), await shop.pod("echo")];
      // An Envoy may have acknowledged a listener that its worker is yet to hear of.
      await waitFor(async () => !(await callThrough(webapp.address, "echo:7", "ping")).endsWith("ping"), {
        what: "the caller to be refused",
      });
      assert.match(await callThrough(catalog.address, "echo:7", "pong"), /pong$/);
      assert.equal(await counter(echo.address, "tcp.rbac.denied"), 1);
      assert.equal(await counter(echo.address, "tcp.rbac.allowed"), 1);
      const logs = path.join(shop.folder, ".tulle", "logs");
      await waitFor(
        async () => {
          const files = (await readdir(logs, { recursive: true })).filter((each) => each.includes("echo"));
          const texts = await Promise.all(files.map((each) => readFile(path.join(logs, each), "utf8").catch(() => "")));
          return texts.some((text) =>
            text.includes("rbac_access_denied_matched_policy[ns[shop]-policy[echo]-rule[0]]"),
          );
        },
        // Envoy gathers lines for up to ten seconds.
        { what: "the refusal in the access log" },
      );
    });
  });
}
