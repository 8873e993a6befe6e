// Parameters of queries that a mesh itself calls secrets stand in no span, label or debug line either, of listeners
// that write no access log.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { stringify } from "yaml";
import { TraceCollector } from "../../packages/proxy/src/testing/trace-collector.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { waitFor } from "../tools/processes.ts";
import { exchangeBytes } from "../tools/raw-client.ts";
import { serviceManifests, telemetry } from "./telemetry/telemetry-stage.ts";

const namespace = "shop";
const appPort = 3000;
const outboundPort = 15_007;
const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const secret = "Zq9Zq9Zq9";
const collectorHost = "collector.observability.svc.cluster.local";
const spec = {
  tracing: [
    {
      providers: [{ name: "spans" }],
      randomSamplingPercentage: 100,
      customTags: { asked: { header: { name: ":path" } }, pin: { formatter: { value: "%QUERY_PARAM(pin)%" } } },
    },
  ],
  metrics: [
    {
      providers: [{ name: "prometheus" }],
      overrides: [{ tagOverrides: { asked: { value: "request.path" }, query: { value: "request.query" } } }],
    },
  ],
  accessLogging: [{ disabled: true }],
};

describe("the mesh's own redacted parameters", () => {
  const open = new AsyncDisposableStack();
  const collector = new TraceCollector();
  let proxies: MeshedProxies;

  before(async () => {
    const ports = await collector.start();
    open.defer(() => collector.close());
    const mesh = {
      redactedQueryParameters: ["Pin"],
      extensionProviders: [
        { name: "spans", opentelemetry: { service: collectorHost, port: 4318, http: { path: "/v1/traces" } } },
      ],
    };
    const manifests = [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "tulle", namespace: "tulle-system" },
        data: { mesh: stringify(mesh) },
      },
      ...serviceManifests("collector", { "http-otlp": [4318, ports.httpPort] }),
      telemetry("all", namespace, spec),
    ];
    proxies = open.use(
      await MeshedProxies.start({
        pods: kinds.map((proxy) => ({ name: `server-${proxy}`, namespace, proxy })),
        ports: [appPort],
        manifests: manifests.map((each) => JSON.stringify(each)).join("\n---\n"),
      }),
    );
  });
  after(() => open.disposeAsync());

  for (const kind of kinds) {
    test(kind, async () => {
      const name = `server-${kind}`;
      await proxies.admin(name, "/logging?http=debug", "POST");
      const host = `${name}.${namespace}.svc.cluster.local:${appPort}`;
      const { received } = await exchangeBytes({
        host: proxies.pod(name).address,
        port: outboundPort,
        from: "127.0.0.1",
        bytes: `GET http://${host}/a?pin=${secret}&code=${secret}&q=1 HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`,
      });
      assert.match(received, /^HTTP\/1\.1 200 /);
      const isOurs = (span: string): boolean => span.includes(host);
      const spans = (): readonly string[] => collector.spans.map((span) => JSON.stringify(span)).filter(isOurs);
      await waitFor(() => spans().length >= 2, { what: "the spans of client and server" });
      for (const span of spans()) assert.ok(!span.includes(secret), span);
      if (kind === "envoy") return;
      const metrics = await proxies.admin(name, "/stats/prometheus");
      assert.match(metrics, /istio_requests_total\{[^}]*asked="\/a\?pin=redacted&code=redacted&q=1"/);
      assert.ok(!metrics.includes(secret));
      const debug = proxies.output(name);
      assert.match(debug, /pin=redacted&code=redacted&q=1/);
      assert.ok(!debug.includes(secret));
    });
  }
});
