// A person signs in to the shop, whose proxies and own servers all write spans to a real Jaeger: each visit is
// one tree from the gateway to the authorization server and back, and nobody's secret stands in any of it.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { ShopBrowser } from "../e2e/shop-browser.ts";
import { ShopInstance } from "../e2e/shop-instance.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { waitFor } from "../tools/processes.ts";
import { Jaeger, type Span, tracingProgram, treeOf } from "./tracing/stage.ts";

/** As docs/tracing.md has it. */
const traceEverything = (jaegerPort: number): readonly object[] => [
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "tulle", namespace: "tulle-system" },
    data: {
      mesh: JSON.stringify({
        extensionProviders: [{ name: "jaeger", opentelemetry: { service: "127.0.0.1", port: jaegerPort } }],
      }),
    },
  },
  {
    apiVersion: "telemetry.tulle.io/v1",
    kind: "Telemetry",
    metadata: { name: "traces", namespace: "tulle-system" },
    spec: { tracing: [{ providers: [{ name: "jaeger" }], randomSamplingPercentage: 100 }] },
  },
];

/** What a thief would look for: values of these in addresses and forms. */
const secretNames = ["code", "state", "nonce", "code_verifier", "password", "access_token", "client_secret", "csrf"];

/** All that this page's browser sends as a secret. */
function collectSecrets(page: Page, secrets: Set<string>): void {
  page.on("request", (request) => {
    const fields = [...new URL(request.url()).searchParams, ...new URLSearchParams(request.postData() ?? "")];
    for (const [name, value] of fields) if (secretNames.includes(name)) secrets.add(value);
  });
}

for (const proxy of ["tulle", "envoy"] as const) {
  describe(`signing in through proxies of ${proxy}, as Jaeger is told of it`, () => {
    const open = new AsyncDisposableStack();
    const secrets = new Set<string>();
    let jaeger: Jaeger;
    let shop: ShopInstance;

    before(async () => {
      jaeger = open.use(await Jaeger.start(await tracingProgram()));
      const { address, grpc, http } = jaeger.ports;
      shop = open.use(
        await ShopInstance.start({
          isWhole: true,
          without: ["catalog.yaml", "webapp.yaml", "productpage.yaml"],
          args: proxy === "envoy" ? ["--proxy", "envoy"] : [],
          env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${address}:${http}`, TULLE_ENVOY: await envoyPath() },
          prepare: async (folder) => {
            const documents = traceEverything(grpc).map((document) => JSON.stringify(document));
            await writeFile(path.join(folder, "traces.yaml"), documents.join("\n---\n"));
          },
        }),
      );
      const demo = await readFile(path.join(shop.folder, ".tulle", "oauth2", "demo.json"), "utf8");
      for (const [, name, value] of demo.matchAll(/"(\w*(?:password|secret)\w*)": *"([^"]+)"/gi)) {
        assert.ok(name);
        secrets.add(value!);
      }
      await signIn();
    });
    after(() => open.disposeAsync());

    async function signIn(): Promise<void> {
      const base = `http://localhost:${shop.port}`;
      // Until the gateway knows the provider's addresses, it answers 503.
      const isKnown = async (): Promise<boolean> => (await shop.get("/account")).status === 302;
      await waitFor(isKnown, { what: "the way to the sign-in page" });
      await using browser = await ShopBrowser.open(shop);
      const page = await browser.newPage();
      collectSecrets(page, secrets);
      await page.goto(`${base}/client/login`);
      await browser.signIn(page);
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByText("Signed in as Demo User").waitFor();
      // The orders' sidecar knows the keys of the authorization server, as the control plane has fetched them.
      assert.equal(await page.getByRole("row").count(), 4, "a heading and three orders");
      // And the gateway as a client: its own call for the token goes to the authorization server, too.
      await page.goto(`${base}/account`);
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByText("Signed in as Demo User").waitFor();
      for (const { value } of await page.context().cookies()) secrets.add(value);
    }

    /** The trace that has a span of the gateway with that path, once it is whole. */
    async function assertTree(pathname: string, expected: readonly string[]): Promise<void> {
      let tree: readonly string[] = [];
      const isThere = async (): Promise<boolean> => {
        const traces = await jaeger.traces("authorization-server");
        const spans = traces.find((each) => each.some((span) => urlOf(span)?.pathname === pathname)) ?? [];
        tree = treeOf(spans);
        return tree.length >= expected.length;
      };
      const details = (): string => tree.join("\n");
      await waitFor(isThere, { what: `${expected.length} spans`, intervalMs: 500, timeoutMs: 30_000, details });
      assert.deepEqual(tree, expected);
    }

    const gateway = "tulle-ingressgateway.tulle-system";
    const oauth2 = "oauth2.shop.svc.cluster.local:80/*";
    const client = "client.shop.svc.cluster.local:80/*";

    test("the page that asks who is there", () =>
      assertTree("/oauth2/authorize", [
        `${gateway} server ${oauth2}`,
        `  ${gateway} client router outbound|80||oauth2.shop.svc.cluster.local egress`,
        `    oauth2.shop server ${oauth2}`,
        "      authorization-server server GET /oauth2/authorize",
      ]));

    test("the visit that brings the code, and the client's calls for its token and for the orders", () =>
      assertTree("/client/callback", [
        `${gateway} server ${client}`,
        `  ${gateway} client router outbound|80||client.shop.svc.cluster.local egress`,
        `    client.shop server ${client}`,
        `      client.shop client ${oauth2}`,
        `        oauth2.shop server ${oauth2}`,
        "          authorization-server server POST /oauth2/token",
        `      client.shop client ${oauth2}`,
        `        oauth2.shop server ${oauth2}`,
        "          authorization-server server GET /oauth2/userinfo",
      ]));

    test("no code, token, password, secret or cookie is in any span", async () => {
      const text = await jaeger.everything();
      // A shorter one may be part of anything: when a session ends, a yes.
      const sought = [...secrets].filter((secret) => secret.length >= 12);
      assert.ok(sought.length > 10, `${sought.length} to look for`);
      const found = sought.filter((secret) => text.includes(secret) || text.includes(encodeURIComponent(secret)));
      assert.deepEqual(found, []);
      // Tokens that no page has seen: those of the client's program.
      assert.doesNotMatch(text, /eyJ[\w-]{10}|[Bb]earer /);
    });
  });
}

function urlOf({ tags }: Span): URL | null {
  const url = tags["http.url"];
  return typeof url === "string" ? URL.parse(url) : null;
}
