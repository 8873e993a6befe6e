// A hundred thousand requests, each with a host, a path and a header of its own, through a gateway and a sidecar whose
// metrics have all three as labels; half of them lead nowhere. A real Prometheus scrapes the two meanwhile.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { holdingsOf } from "../soak/inspected-process.ts";
import { MeshedProxies } from "../tools/meshed-proxies.ts";
import { freePort, waitFor } from "../tools/processes.ts";
import { Prometheus } from "../tools/prometheus.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const requestCount = 100_000;
const connectionCount = 16;
/** `defaultMaxSeriesOfFamily` and `defaultMaxValuesOfLabel` of @tulle/telemetry's label-limits.ts. */
const maxSeriesOfFamily = 4096;
const maxValuesOfLabel = 1000;
/** What the second half may add to the heap after a collection: it has no series of its own. It has added 0.2 MB. */
const heapNoiseBytes = 6 * 1024 * 1024;

const gatewayPort = 8080;
const appPort = 8081;
/** Who counts which requests: the gateway all of them, the sidecar those that lead to it. */
const counted = { gateway: requestCount, app: requestCount / 2 } as const;
type Pod = keyof typeof counted;
const pods = Object.keys(counted) as readonly Pod[];

const manifests = `
apiVersion: networking.tulle.io/v1
kind: Gateway
metadata: { name: gateway, namespace: shop }
spec:
  selector: { app: gateway }
  servers: [{ port: { number: ${gatewayPort}, name: http, protocol: HTTP }, hosts: ["*"] }]
---
apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata: { name: app, namespace: shop }
spec:
  hosts: ["*"]
  gateways: [gateway]
  http: [{ match: [{ uri: { prefix: /app/ } }], route: [{ destination: { host: app, port: { number: ${appPort} } } }] }]
---
apiVersion: telemetry.tulle.io/v1
kind: Telemetry
metadata: { name: shop, namespace: shop }
spec:
  accessLogging: [{ disabled: true }]
  metrics:
    - providers: [{ name: prometheus }]
      overrides:
        - tagOverrides:
            request_host: { value: request.host }
            request_path: { value: request.url_path }
            tenant: { value: "request.headers['x-tenant']" }
`;

/** Answers requests one after the other, without looking at them: the proxies are what is measured. */
async function startApplication(address: string): Promise<AsyncDisposable> {
  const answer = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  const server = net.createServer((socket) => {
    let rest = "";
    socket
      .on("error", () => undefined)
      .on("data", (chunk) => {
        const heads = (rest + chunk.toString("latin1")).split("\r\n\r\n");
        rest = heads.pop()!;
        for (const _head of heads) socket.write(answer);
      });
  });
  server.listen(appPort, address);
  await once(server, "listening");
  return { [Symbol.asyncDispose]: async () => void server.close() };
}

/** On one connection, each request behind the answer to the one before it, which has `ok` for a body or none. */
async function ask(address: string, first: number, end: number): Promise<void> {
  const socket = net.connect(gatewayPort, address);
  await once(socket, "connect");
  let next = first;
  let answered = 0;
  const send = (): void => {
    const where = next % 2 === 0 ? "app" : "nowhere";
    socket.write(`GET /${where}/${next} HTTP/1.1\r\nhost: h${next}.test\r\nx-tenant: t${next}\r\n\r\n`);
    next += connectionCount;
  };
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.on("error", reject).on("close", () => reject(new Error(`closed after ${answered} answers`)));
  socket.on("data", (chunk) => {
    const text = chunk.toString("latin1");
    answered += text.split("HTTP/1.1 ").length - 1;
    // An answer of this size arrives whole, or its body behind its head: the next request may then be sent too early.
    if (!/\r\n\r\n(ok)?$/.test(text)) return;
    if (next < end) send();
    else resolve();
  });
  send();
  await promise;
  socket.removeAllListeners("close").destroy();
}

describe("a hundred thousand hosts, paths and headers", () => {
  const open = new AsyncDisposableStack();
  const inspectors = new Map<string, string>();
  let mesh: MeshedProxies;
  let prometheus: Prometheus;

  const load = async (first: number, end: number): Promise<void> => {
    const { address } = mesh.pod("gateway");
    const starts = Array.from({ length: connectionCount }, (_, index) => first + index);
    await Promise.all(starts.map((start) => ask(address, start, end)));
  };

  const number = async (expression: string): Promise<number> => (await prometheus.number(expression)) ?? 0;

  before(async () => {
    for (const pod of pods) inspectors.set(pod, `127.0.0.1:${await freePort()}`);
    mesh = open.use(
      await MeshedProxies.start({
        pods: [
          { name: "gateway", namespace: "shop", proxy: "tulle", isGateway: true },
          { name: "app", namespace: "shop", proxy: "tulle" },
        ],
        ports: [appPort],
        manifests,
        startApplication: ({ appAddress }) => startApplication(appAddress),
        wrapCommand: ({ name }, command, args) => [command, [`--inspect=${inspectors.get(name)}`, ...args]],
      }),
    );
    const job = {
      job_name: "proxies",
      metrics_path: "/stats/prometheus",
      scrape_interval: "3s",
      scrape_timeout: "3s",
      static_configs: pods.map((pod) => ({ targets: [`${mesh.pod(pod).address}:15000`], labels: { pod } })),
    };
    const config = path.join(temporaryFolder("prometheus-config-"), "prometheus.yml");
    await writeFile(config, JSON.stringify({ scrape_configs: [job] }));
    prometheus = open.use(await Prometheus.start(config));
  });
  after(() => open.disposeAsync());

  test("series and heap stay within the limits, and nothing is lost", async () => {
    await load(0, requestCount / 2);
    const half = new Map<Pod, number>();
    for (const pod of pods) half.set(pod, await heapOf(pod));
    await load(requestCount / 2, requestCount);
    for (const pod of pods) {
      const total = `sum(istio_requests_total{pod="${pod}"})`;
      await waitFor(async () => (await number(total)) === counted[pod], {
        what: `all requests of ${pod} to be counted`,
        details: () => prometheus.output(),
      });
      const grown = (await heapOf(pod)) - half.get(pod)!;
      assert.ok(grown < heapNoiseBytes, `${pod}: the heap has grown by ${grown} bytes`);
    }
  });

  for (const pod of pods) {
    const requests = `istio_requests_total{pod="${pod}"}`;

    test(`${pod}: series, values and \`other\``, async () => {
      const series = await number(`count(${requests})`);
      assert.ok(series >= maxValuesOfLabel && series <= maxSeriesOfFamily + 1, `${series} series`);
      for (const label of ["request_host", "request_path", "tenant"]) {
        const values = await number(`count(count by (${label}) (${requests}))`);
        assert.ok(values > 100 && values <= maxValuesOfLabel + 1, `${values} values of ${label}`);
      }
      const others = `sum(istio_requests_total{pod="${pod}", request_host="other", request_path="other", tenant="other"})`;
      assert.ok((await number(others)) > counted[pod] / 2);
      assert.ok((await number(`sum(tulle_metrics_folded_label_sets_total{pod="${pod}"})`)) > 0);
      assert.equal(await number(`tulle_metrics_dropped_series_total{pod="${pod}"}`), 0);
    });

    test(`${pod}: it is said once for each metric`, () => {
      const told = [...mesh.output(pod).matchAll(/too many label sets.*?(istio_\w+)/g)].map(([, metric]) => metric!);
      assert.ok(told.includes("istio_requests_total"), mesh.output(pod));
      assert.equal(new Set(told).size, told.length, told.join());
    });
  }

  async function heapOf(pod: Pod): Promise<number> {
    return (await holdingsOf(inspectors.get(pod)!, mesh.processId(pod))).heapBytes;
  }
});
