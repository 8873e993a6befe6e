// Google's grpc-web in Chromium, unchanged, through a gateway of either kind: to a server of GRPC-WEB, where the
// gateway makes gRPC of it, and by HTTPS and HTTP/2 to a port named grpc-web, where the application's sidecar does.
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
  const route = (gatewayPort: number, proxy: Proxy, port: number): object => ({
    match: [{ port: gatewayPort, headers: { "x-to": { exact: proxy } } }],
    route: [{ destination: { host: `calls-${proxy}`, port: { number: port } } }],
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
            route: [{ destination: { host: "calls-tulle", port: { number: ports.page } } }],
          },
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
      const names = proxies.map((proxy) => `DNS:${gatewayHost(proxy)}`);
      mesh = await ParityMesh.start({ "calls.yaml": manifests(await testCertificate({ names }), library) });
      const rules = proxies.map((proxy) => `MAP ${gatewayHost(proxy)} ${mesh.podOf("gateway", proxy).address}`);
      browser = await chromium.launch({
        executablePath: await chromiumPath(),
        args: [...chromiumArguments, `--host-resolver-rules=${rules.join(",")}`],
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

  test("the gateway of Tulle counts messages and statuses of browsers", async () => {
    const text = await mesh.admin("gateway", "tulle", "/stats/prometheus");
    assert.match(text, /^istio_requests_total\{.*request_protocol="grpc".*grpc_response_status="9".*\} \d+$/m);
    assert.match(text, /^istio_response_messages_total\{.*\} \d+$/m);
    assert.match(text, /^envoy_cluster_grpc_web_9\{envoy_grpc_bridge_method="Fail".*\} \d+$/m);
  });
});
