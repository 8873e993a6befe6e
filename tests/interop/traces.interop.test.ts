// A request of the shop as one tree in a real Jaeger, sent there straight and by a real OpenTelemetry collector:
// gateway, web front end and catalog with each of the two proxies, by HTTP/1.1 and gRPC, with a try that fails. And the
// same in Zipkin's format, of a client that knows nothing but B3.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { createCatalog } from "../../samples/shop/catalog/catalog.ts";
import { serveGrpc } from "../../samples/shop/catalog/serve-grpc.ts";
import { Stock } from "../../samples/shop/catalog/stock.ts";
import { createAppServer } from "../../samples/shop/serve.ts";
import { MeshedProxies, type ProxyKind, type RunningPod } from "../tools/meshed-proxies.ts";
import { freePort, startProcess, waitFor } from "../tools/processes.ts";
import {
  inOrder,
  Jaeger,
  type OtlpPorts,
  startCollector,
  type Span,
  type SpanPorts,
  tracingProgram,
  treeOf,
} from "./tracing/stage.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const gatewayPort = 8080;
const outboundPort = 15_007;
/** The web front end's: one reads the catalog by HTTP, the other by gRPC. */
const webappPorts = { http: 8081, grpc: 8082 } as const;
const collectorPorts = { grpc: 4317, http: 4318 } as const;
const catalogPorts = { http: 3000, grpc: 9090 } as const;
type Protocol = keyof typeof webappPorts;
const protocols = Object.keys(webappPorts) as readonly Protocol[];

/** Where spans are sent, by OTLP or in Zipkin's format: a Service of the mesh, or an address outside of it. */
interface Sink {
  readonly protocol: Protocol | "zipkin";
  readonly host: string;
  readonly port: number;
}

/** Which proxy each of the three has. */
interface Chain {
  readonly gateway: ProxyKind;
  readonly webapp: ProxyKind;
  readonly catalog: ProxyKind;
}

const chains: readonly Chain[] = kinds.flatMap((gateway) =>
  kinds.flatMap((webapp) => kinds.map((catalog) => ({ gateway, webapp, catalog }))),
);

/** Each role's proxies have a provider of their own. */
function telemetry(sinks: Readonly<Record<keyof Chain, Sink>>): readonly object[] {
  const roles = Object.entries(sinks);
  const mesh = {
    extensionProviders: roles.map(([role, { protocol, host, port }]) => {
      const at = { service: host, port };
      if (protocol === "zipkin") return { name: role, zipkin: at };
      const http = protocol === "http" ? { http: { path: "/v1/traces", timeout: "10s" } } : {};
      return { name: role, opentelemetry: { ...at, ...http } };
    }),
  };
  return [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "tulle", namespace: "tulle-system" },
      data: { mesh: JSON.stringify(mesh) },
    },
    ...roles.flatMap(([role]) =>
      kinds.map((kind) => ({
        apiVersion: "telemetry.tulle.io/v1",
        kind: "Telemetry",
        metadata: { name: `${role}-${kind}`, namespace: "shop" },
        spec: {
          selector: { matchLabels: { app: `${role}-${kind}` } },
          tracing: [{ providers: [{ name: role }], randomSamplingPercentage: 100 }],
        },
      })),
    ),
  ];
}

function manifests(sinks: Readonly<Record<keyof Chain, Sink>>): string {
  const networking = "networking.tulle.io/v1";
  const gateways = kinds.map((kind) => ({
    apiVersion: networking,
    kind: "Gateway",
    metadata: { name: `gateway-${kind}`, namespace: "shop" },
    spec: {
      selector: { app: `gateway-${kind}` },
      servers: [{ port: { number: gatewayPort, name: "http", protocol: "HTTP" }, hosts: ["*"] }],
    },
  }));
  const webapps = {
    apiVersion: networking,
    kind: "VirtualService",
    metadata: { name: "webapps", namespace: "shop" },
    spec: {
      hosts: ["*"],
      gateways: kinds.map((kind) => `gateway-${kind}`),
      http: kinds.flatMap((kind) =>
        protocols.map((protocol) => ({
          match: [{ headers: { "x-webapp": { exact: `${kind}-${protocol}` } } }],
          route: [{ destination: { host: `webapp-${kind}`, port: { number: webappPorts[protocol] } } }],
        })),
      ),
    },
  };
  // All web front ends ask for one catalog; a header that they pass on says whose proxy it has.
  const catalogs = {
    apiVersion: networking,
    kind: "VirtualService",
    metadata: { name: "catalogs", namespace: "shop" },
    spec: {
      hosts: [`catalog-${kinds[0]}`],
      http: kinds.flatMap((kind) =>
        protocols.map((protocol) => ({
          match: [{ port: catalogPorts[protocol], headers: { "x-dark-launch": { exact: kind } } }],
          route: [{ destination: { host: `catalog-${kind}`, port: { number: catalogPorts[protocol] } } }],
          retries: { attempts: 2, retryOn: "5xx,internal", perTryTimeout: "30s" },
        })),
      ),
    },
  };
  return [...telemetry(sinks), ...gateways, webapps, catalogs]
    .map((document) => JSON.stringify(document))
    .join("\n---\n");
}

/** The catalog fails each request's first try. */
async function startCatalog({ appAddress }: RunningPod, open: AsyncDisposableStack): Promise<void> {
  let asked = 0;
  const stock = new Stock({ showImage: false, imageBaseUrl: "", random: () => asked++ % 2 });
  stock.faultPercentage = 50;
  const grpc = await serveGrpc(stock, `${appAddress}:${catalogPorts.grpc}`);
  open.defer(() => grpc.end());
  const server = createAppServer(createCatalog(stock)).listen(catalogPorts.http, appAddress);
  await once(server, "listening");
  open.defer(async () => {
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  });
}

async function startWebapps({ address, appAddress }: RunningPod, open: AsyncDisposableStack): Promise<void> {
  const main = path.resolve(import.meta.dirname, "../../samples/shop/webapp/main.ts");
  const catalog = `catalog-${kinds[0]}.shop`;
  for (const protocol of protocols) {
    const env = {
      HOST: appAddress,
      PORT: String(webappPorts[protocol]),
      HTTP_PROXY: `http://${address}:${outboundPort}`,
      NODE_USE_ENV_PROXY: "1",
      CATALOG_URL: `http://${catalog}:${catalogPorts.http}`,
      CATALOG_GRPC: protocol === "grpc" ? `${catalog}:${catalogPorts.grpc}` : "",
    };
    const webapp = open.use(await startProcess(process.execPath, [main], { name: `webapp by ${protocol}`, env }));
    await webapp.waitForOutput(/listens on/);
  }
}

interface Arrangement {
  readonly name: string;
  /** What a client has of its own trace: nothing, or B3 in one header or in several. */
  readonly clients: readonly ClientContext[];
  /** Where each role's proxies send their spans. */
  readonly sinks: (places: Places) => Readonly<Record<keyof Chain, Sink>>;
}

type ClientContext = "none" | "b3" | "x-b3-*";

interface Places {
  readonly jaeger: SpanPorts;
  readonly collectorOutside: OtlpPorts;
}

const inside = (protocol: Protocol): Sink => ({
  protocol,
  host: "collector.shop.svc.cluster.local",
  port: collectorPorts[protocol],
});
const outside = <P extends Sink["protocol"]>(
  protocol: P,
  at: Readonly<Record<P, number>> & { address: string },
): Sink => ({
  protocol,
  host: at.address,
  port: at[protocol],
});

const arrangements: readonly Arrangement[] = [
  {
    name: "a collector outside by HTTP, one inside by gRPC, and Jaeger itself",
    clients: ["none"],
    sinks: ({ jaeger, collectorOutside }) => ({
      gateway: outside("grpc", jaeger),
      webapp: outside("http", collectorOutside),
      catalog: inside("grpc"),
    }),
  },
  {
    name: "a collector outside by gRPC, one inside by HTTP, and Jaeger itself",
    clients: ["none"],
    sinks: ({ jaeger, collectorOutside }) => ({
      gateway: inside("http"),
      webapp: outside("grpc", collectorOutside),
      catalog: outside("http", jaeger),
    }),
  },
  {
    name: "Jaeger's port of Zipkin",
    clients: ["b3", "x-b3-*"],
    sinks: ({ jaeger }) => {
      const sink = outside("zipkin", jaeger);
      return { gateway: sink, webapp: sink, catalog: sink };
    },
  },
];

/** A request of the shop, by what its gateway's span holds of it: of queries an Envoy's holds nothing. */
interface Request {
  readonly chain: Chain;
  readonly protocol: Protocol;
  readonly client: ClientContext;
  readonly key: string;
}

/** Both tries reach the catalog's sidecar, whose answers the web front end's has as one. */
function expectedTree({ chain: { gateway, webapp, catalog }, protocol, client }: Request): readonly string[] {
  const front = `webapp-${webapp}.shop.svc.cluster.local:${webappPorts[protocol]}/*`;
  const cluster = `outbound|${webappPorts[protocol]}||webapp-${webapp}.shop.svc.cluster.local`;
  const served = `catalog-${catalog}.shop.svc.cluster.local:${catalogPorts[protocol]}/*`;
  const tree = [
    `gateway-${gateway}.shop server ${front}`,
    `  gateway-${gateway}.shop client router ${cluster} egress`,
    `    webapp-${webapp}.shop server ${front}`,
    `      webapp-${webapp}.shop client ${served}`,
    `        catalog-${catalog}.shop server ${served}`,
    `        catalog-${catalog}.shop server ${served}`,
  ];
  return client === "none" ? tree : ["client client get", ...tree.map((line) => `  ${line}`)];
}

for (const { name: places, clients, sinks } of arrangements) {
  describe(`the shop's requests in Jaeger, through ${places}`, () => {
    const open = new AsyncDisposableStack();
    const requests: Request[] = [];
    let jaeger: Jaeger;

    before(async () => {
      const program = await tracingProgram();
      jaeger = open.use(await Jaeger.start(program));
      const collector = { address: "127.0.0.1", grpc: await freePort(), http: await freePort() };
      open.use(await startCollector(program, collector, jaeger.ports));
      const mesh = open.use(await startShop(program, jaeger, collector, sinks));
      for (const chain of chains) {
        for (const protocol of protocols) {
          for (const client of clients) requests.push(await request(mesh, jaeger, { chain, protocol, client }));
        }
      }
    });
    after(() => open.disposeAsync());

    const spansOf = async (made: Request): Promise<readonly Span[]> => {
      const count = expectedTree(made).length;
      let spans: readonly Span[] = [];
      const isThere = async (): Promise<boolean> => {
        const traces = await jaeger.traces(`gateway-${made.chain.gateway}.shop`);
        spans = traces.find((each) => each.some(({ tags }) => String(tags["user_agent"]).endsWith(made.key))) ?? [];
        return spans.length >= count;
      };
      const details = (): string => treeOf(spans).join("\n");
      await waitFor(isThere, { what: `${count} spans`, intervalMs: 500, timeoutMs: 30_000, details });
      return spans;
    };

    test("name, kind and attributes of each span are those of an Envoy, but for what the docs list", async () => {
      const differing = new Set<string>();
      for (const protocol of protocols) {
        const [ofTulle = [], ofEnvoy = []] = await Promise.all(
          kinds.map(async (kind) => {
            const made = requests.find(({ chain, ...each }) => {
              return each.protocol === protocol && Object.values(chain).every((proxy) => proxy === kind);
            })!;
            return inOrder(await spansOf(made)).map(comparable);
          }),
        );
        assert.deepEqual(headsOf(ofTulle), headsOf(ofEnvoy));
        for (const [index, { name, tags }] of ofTulle.entries()) {
          const keys = differingKeys(tags, ofEnvoy[index]!.tags);
          for (const key of keys) differing.add(key);
          assert.ok(!keys.includes("http.url") || name.startsWith("router "), name);
        }
      }
      assert.deepEqual([...differing].sort(), await listedDifferences(clients.includes("none") ? "OTLP" : "Zipkin"));
    });

    for (const chain of chains) {
      for (const protocol of protocols) {
        for (const client of clients) {
          const of = client === "none" ? "" : `, of a client with ${client}`;
          test(`${chain.gateway} → ${chain.webapp} → ${chain.catalog} by ${protocol}${of}`, async () => {
            const made = requests.find(
              (each) => each.chain === chain && each.protocol === protocol && each.client === client,
            )!;
            assert.deepEqual(treeOf(await spansOf(made)), expectedTree(made));
          });
        }
      }
    }
  });
}

type Comparable = Pick<Span, "name" | "kind" | "tags">;

/** Without what tells two trees apart, whoever wrote them: their pods, addresses, what each request has anew. */
function comparable({ name, kind, tags }: Span): Comparable {
  return {
    name: withoutOwn(name),
    kind,
    tags: Object.fromEntries(Object.entries(tags).map(([key, value]) => [key, withoutOwn(String(value))])),
  };
}

function withoutOwn(text: string): string {
  return text
    .replaceAll(/-(tulle|envoy)\b/g, "")
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "id")
    .replaceAll(/127\.\d+\.\d+\.\d+/g, "address")
    .replace(/^\d+m$/, "milliseconds left");
}

const headsOf = (spans: readonly Comparable[]) => spans.map(({ name, kind }) => `${kind} ${name}`);

function differingKeys(ofTulle: Comparable["tags"], ofEnvoy: Comparable["tags"]): readonly string[] {
  return Object.keys({ ...ofTulle, ...ofEnvoy }).filter((key) => ofTulle[key] !== ofEnvoy[key]);
}

/** Of the page's table: the names in its first column, where the second has that format. */
async function listedDifferences(format: "OTLP" | "Zipkin"): Promise<readonly string[]> {
  const page = await readFile(path.resolve(import.meta.dirname, "../../docs/tracing.md"), "utf8");
  const table = page.split("<!-- attributes that differ -->\n")[1]?.split("\n\n")[0] ?? "";
  const rows = table.split("\n").map((row) => row.split("|"));
  const listed = rows.filter(([, , formats]) => formats?.includes(format));
  return listed.flatMap(([, names]) => [...names!.matchAll(/`(.+?)`/g)].map(([, name]) => name!)).sort();
}

async function request(mesh: MeshedProxies, jaeger: Jaeger, asked: Omit<Request, "key">): Promise<Request> {
  const { chain, protocol, client } = asked;
  const made = { ...asked, key: crypto.randomUUID() };
  const { address } = mesh.pod(`gateway-${chain.gateway}`);
  const answer = await fetch(`http://${address}:${gatewayPort}/api/catalog/items/1`, {
    headers: {
      "x-webapp": `${chain.webapp}-${protocol}`,
      "x-dark-launch": chain.catalog,
      "user-agent": `test key=${made.key}`,
      ...(client === "none" ? {} : await traceClient(jaeger, client)),
    },
  });
  assert.equal(answer.status, 200, await answer.text());
  return made;
}

/** Sends the client's own span, and returns its headers. */
async function traceClient(
  jaeger: Jaeger,
  client: Exclude<ClientContext, "none">,
): Promise<Readonly<Record<string, string>>> {
  const traceId = randomBytes(16).toString("hex");
  const id = randomBytes(8).toString("hex");
  const localEndpoint = { serviceName: "client" };
  await jaeger.addZipkinSpan({
    traceId,
    id,
    name: "get",
    kind: "CLIENT",
    localEndpoint,
    timestamp: Date.now() * 1000,
    duration: 1000,
  });
  return client === "b3"
    ? { b3: `${traceId}-${id}-1` }
    : { "x-b3-traceid": traceId, "x-b3-spanid": id, "x-b3-sampled": "1" };
}

function startShop(
  program: string,
  jaeger: Jaeger,
  collectorOutside: OtlpPorts,
  sinks: Arrangement["sinks"],
): Promise<MeshedProxies> {
  return MeshedProxies.start({
    pods: [
      { name: "collector", namespace: "shop", proxy: kinds[0]! },
      ...kinds.flatMap((proxy) => [
        { name: `gateway-${proxy}`, namespace: "shop", proxy, isGateway: true as const },
        ...["webapp", "catalog"].map((role) => ({ name: `${role}-${proxy}`, namespace: "shop", proxy })),
      ]),
    ],
    ports: [gatewayPort, ...[webappPorts, catalogPorts, collectorPorts].flatMap((ports) => Object.values(ports))],
    protocols: { [catalogPorts.grpc]: "grpc", [collectorPorts.grpc]: "grpc" },
    // The collector's own proxy writes none: it would tell of each batch that it brings, in the next one.
    manifests: manifests(sinks({ jaeger: jaeger.ports, collectorOutside })),
    startApplication: async (pod) => {
      await using started = new AsyncDisposableStack();
      if (pod.name.startsWith("catalog")) await startCatalog(pod, started);
      if (pod.name.startsWith("webapp")) await startWebapps(pod, started);
      if (pod.name === "collector") {
        const own = { address: pod.appAddress, ...collectorPorts };
        started.use(await startCollector(program, own, jaeger.ports));
      }
      return started.move();
    },
  });
}
