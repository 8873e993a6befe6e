// Pages in Chromium through an ingress gateway of either kind: Google's grpc-web, unchanged, to a server of GRPC-WEB,
// where the gateway makes gRPC of it, and by HTTPS and HTTP/2 to a port named grpc-web, where the application's sidecar
// does; from pages of other origins, too; and WebSockets.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { ParityMesh, proxies, type Proxy } from "../parity/parity-mesh.ts";
import { testCertificate, type TestCertificate } from "../tools/certificates.ts";
import { chromiumArguments, chromiumPath } from "../tools/chromium-path.ts";
import { npmPackages } from "../tools/npm-packages.ts";

const ports = { page: 8090, grpc: 9000, grpcWeb: 9001, gateway: 9080, https: 9443 } as const;
const gatewayHost = (proxy: Proxy): string => `${proxy}.example`;
/** By which a gateway is asked for one application, without a header. */
const applicationHost = (to: Proxy, gateway: Proxy): string => `${to}-at-${gateway}.example`;
const strangerHost = "stranger.example";
const pageOrigin = `http://${gatewayHost("tulle")}:${ports.gateway}`;

function manifests({ certificate, key }: TestCertificate, library: string): string {
  const metadata = (name: string): object => ({ name, namespace: "parity" });
  const networking = "networking.tulle.io/v1";
  const program = path.join(import.meta.dirname, "grpc-web/application.ts");
  const command = JSON.stringify([
    "node",
    program,
    library,
    String(ports.page),
    String(ports.grpc),
    String(ports.grpcWeb),
  ]);
  const application = (proxy: Proxy): readonly object[] => {
    const name = `calls-${proxy}`;
    const servicePorts = [
      { name: "http-page", port: ports.page },
      { name: "grpc", port: ports.grpc },
      { name: "grpc-web", port: ports.grpcWeb },
    ];
    const template = {
      metadata: {
        labels: { app: name },
        annotations: { "sidecar.tulle.io/proxy": proxy, "local.tulle.io/command.app": command },
      },
      spec: {
        containers: [
          { name: "app", ports: servicePorts.map(({ name: each, port }) => ({ name: each, containerPort: port })) },
        ],
      },
    };
    return [
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: metadata(name),
        spec: { selector: { app: name }, ports: servicePorts },
      },
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: metadata(name),
        spec: { replicas: 1, selector: { matchLabels: { app: name } }, template },
      },
    ];
  };
  const destination = (proxy: Proxy, port: number): object => ({
    route: [{ destination: { host: `calls-${proxy}`, port: { number: port } } }],
  });
  const named = (proxy: Proxy): readonly object[] => {
    const authority = { prefix: `${proxy}-at-` };
    return [
      { match: [{ uri: { exact: "/socket" }, authority }], ...destination(proxy, ports.page) },
      {
        match: [{ port: ports.https, authority }],
        ...destination(proxy, ports.grpcWeb),
        corsPolicy: {
          allowOrigins: [{ exact: pageOrigin }],
          allowMethods: ["POST"],
          allowHeaders: ["content-type", "x-grpc-web", "x-user-agent", "grpc-timeout"],
          exposeHeaders: ["grpc-status", "grpc-message", "saw-client-cert"],
          allowCredentials: true,
        },
      },
    ];
  };
  const route = (gatewayPort: number, proxy: Proxy, port: number): object => ({
    match: [{ port: gatewayPort, headers: { "x-to": { exact: proxy } } }],
    ...destination(proxy, port),
  });
  const documents = [
    ...proxies.flatMap(application),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: metadata("gateway-calls"),
      spec: {
        selector: { parity: "gateway" },
        ports: [
          { name: "grpc-web", port: ports.gateway },
          { name: "https", port: ports.https },
        ],
      },
    },
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: metadata("calls"),
      stringData: { "tls.crt": certificate, "tls.key": key },
    },
    {
      apiVersion: networking,
      kind: "Gateway",
      metadata: metadata("calls"),
      spec: {
        selector: { parity: "gateway" },
        servers: [
          { port: { number: ports.gateway, name: "grpc-web", protocol: "GRPC-WEB" }, hosts: ["*"] },
          {
            port: { number: ports.https, name: "https", protocol: "HTTPS" },
            hosts: ["*"],
            tls: { mode: "SIMPLE", credentialName: "calls" },
          },
        ],
      },
    },
    {
      apiVersion: networking,
      kind: "VirtualService",
      metadata: metadata("calls"),
      spec: {
        hosts: ["*"],
        gateways: ["calls"],
        http: [
          {
            match: [{ uri: { prefix: "/page" } }],
            ...destination("tulle", ports.page),
          },
          ...proxies.flatMap(named),
          ...proxies.flatMap((proxy) => [
            route(ports.gateway, proxy, ports.grpc),
            route(ports.https, proxy, ports.grpcWeb),
          ]),
        ],
      },
    },
  ];
  return documents.map((document) => JSON.stringify(document)).join("\n---\n");
}

const portOf = { http: ports.gateway, ws: ports.gateway, https: ports.https, wss: ports.https } as const;
type Scheme = keyof typeof portOf;

const largeBytes = 3_000_000;

interface Seen {
  readonly messages: readonly string[];
  readonly code: number | undefined;
  readonly details: string | undefined;
  readonly head: Readonly<Record<string, string>>;
  readonly trailers: Readonly<Record<string, string>>;
}

type Format = "binary" | "text";

describe("gRPC-Web of Chromium", () => {
  let mesh: ParityMesh;
  let browser: Browser;

  before(
    async () => {
      const modules = await npmPackages(path.join(import.meta.dirname, "javascript"));
      const library = path.join(modules, "grpc-web/index.esm.js");
      const names = [...proxies.map((proxy) => `DNS:${gatewayHost(proxy)}`), "DNS:*.example"];
      mesh = await ParityMesh.start({ "calls.yaml": manifests(await testCertificate({ names }), library) });
      const rules = proxies.flatMap((proxy) =>
        [gatewayHost(proxy), `*-at-${gatewayHost(proxy)}`, ...(proxy === "tulle" ? [strangerHost] : [])].map(
          (host) => `MAP ${host} ${mesh.podOf("gateway", proxy).address}`,
        ),
      );
      browser = await chromium.launch({
        executablePath: await chromiumPath(),
        // A page may open no `wss:` to a host whose certificate it would not take.
        args: [...chromiumArguments, "--ignore-certificate-errors", `--host-resolver-rules=${rules.join(",")}`],
      });
    },
    { timeout: 300_000 },
  );
  after(async () => {
    await browser?.close();
    await mesh?.stop();
  });

  /** Of the gateway's own origin. */
  async function openPage(origin: string): Promise<Page> {
    const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
    await page.goto(`${origin}/page`);
    await page.waitForFunction("window.isReady");
    return page;
  }

  for (const gateway of proxies) {
    for (const [scheme, port, protocol] of [
      ["http", ports.gateway, "http/1.1"],
      ["https", ports.https, "h2"],
    ] as const) {
      test(`${scheme} at the gateway of ${gateway}`, async () => {
        const page = await openPage(`${scheme}://${gatewayHost(gateway)}:${port}`);
        const call = (format: Format, name: string, body: Buffer, metadata: object): Promise<Seen> =>
          page.evaluate(`window.call(...${JSON.stringify([format, name, [...body], metadata])})`);
        for (const to of proxies) {
          const headers = { "x-to": to };
          for (const format of ["binary", "text"] as const) {
            const where = `${format} to ${to}`;
            const unary = await call(format, "Unary", Buffer.from("hello"), headers);
            assert.deepEqual([unary.messages, unary.code], [["hello"], 0], where);
            assert.match(unary.head["saw-client-cert"] ?? "", /ns\/parity\/sa\//, where);
            assert.equal(unary.trailers["x-sum"], "5", where);
            const key = `${scheme} ${gateway} ${where}`;
            const failing = { ...headers, "x-key": key, "x-code": "9", "x-fails": "9" };
            const failed = await call(format, "Fail", Buffer.from("a"), failing);
            assert.deepEqual([failed.messages, failed.code, failed.details], [[], 9, "as asked"], where);
            const late = await call(format, "Hang", Buffer.from("a"), {
              ...headers,
              deadline: String(Date.now() + 300),
            });
            // Or of a proxy, which waits as long, and calls every time-out UNAVAILABLE.
            assert.ok(late.code === 4 || late.code === 14, `${where}: ${late.code}`);
          }
          // This library takes streams as text alone.
          const request = Buffer.alloc(8);
          request.writeUInt32BE(50, 0);
          request.writeUInt32BE(3000, 4);
          const stream = await call("text", "Download", request, headers);
          assert.deepEqual([stream.code, stream.messages.length], [0, 50]);
          assert.ok(stream.messages.every(({ length }) => length === 3000));
        }
        const lost = await call("binary", "Unary", Buffer.from("a"), { "x-to": "nobody" });
        // NOT_FOUND, as this library reads the HTTP status.
        assert.equal(lost.code, 5);
        assert.deepEqual(await page.evaluate("window.protocols()"), [protocol]);
        await page.context().close();
      });
    }
  }

  for (const gateway of proxies) {
    test(`a page of another origin at the gateway of ${gateway}`, async () => {
      const [page, stranger] = [await openPage(pageOrigin), await openPage(`http://${strangerHost}:${ports.gateway}`)];
      for (const to of proxies) {
        const origin = `https://${applicationHost(to, gateway)}:${ports.https}`;
        for (const format of ["binary", "text"] as const) {
          const where = `${format} to ${to}`;
          const ask = (from: Page, name: string, metadata: object, options: object): Promise<Seen> =>
            from.evaluate(
              `window.call(...${JSON.stringify([format, name, [104, 105], metadata, { origin, ...options }])})`,
            );
          for (const withCredentials of [false, true]) {
            const unary = await ask(page, "Unary", {}, { withCredentials });
            assert.deepEqual([unary.messages, unary.code], [["hi"], 0], where);
            // Of what the host tells, scripts see what is exposed.
            assert.ok("saw-client-cert" in unary.head, where);
            assert.equal(unary.trailers["x-sum"], "2", where);
          }
          const failed = await ask(page, "Unimplemented", {}, {});
          assert.equal(failed.code, 12, where);
          const unlisted = await ask(page, "Unary", { "x-unlisted": "1" }, {});
          assert.deepEqual([unlisted.messages, unlisted.code === 0], [[], false], where);
          const refused = await ask(stranger, "Unary", {}, {});
          assert.deepEqual([refused.messages, refused.code === 0], [[], false], where);
        }
      }
      await Promise.all([page.context().close(), stranger.context().close()]);
    });

    test(`WebSockets of pages at the gateway of ${gateway}`, async () => {
      for (const to of proxies) {
        const host = applicationHost(to, gateway);
        const echo = async (pageScheme: Scheme, scheme: Scheme): Promise<unknown> => {
          const page = await openPage(`${pageScheme}://${host}:${portOf[pageScheme]}`);
          const url = `${scheme}://${host}:${portOf[scheme]}/socket`;
          const seen = await page.evaluate(`window.echo(...${JSON.stringify([url, largeBytes])})`);
          await page.context().close();
          return seen;
        };
        const whole = ["héllo", largeBytes, 4000, "done"];
        assert.deepEqual(await echo("http", "ws"), whole, `to ${to}`);
        assert.deepEqual(await echo("http", "wss"), whole, `to ${to}, HTTP/1.1 and TLS`);
        // The page's connection takes it, as an extended CONNECT. Envoy makes no key for an application of HTTP/1.1.
        const expected = to === "envoy" ? [1006, ""] : whole;
        assert.deepEqual(await echo("https", "wss"), expected, `to ${to}, HTTP/2`);
      }
    });
  }

  test("the gateway of Tulle counts messages and statuses of browsers", async () => {
    const text = await mesh.admin("gateway", "tulle", "/stats/prometheus");
    assert.match(text, /^istio_requests_total\{.*request_protocol="grpc".*grpc_response_status="9".*\} \d+$/m);
    assert.match(text, /^istio_response_messages_total\{.*\} \d+$/m);
    assert.match(text, /^envoy_cluster_grpc_web_9\{envoy_grpc_bridge_method="Fail".*\} \d+$/m);
  });
});
