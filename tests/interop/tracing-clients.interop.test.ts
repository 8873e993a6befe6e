// Applications with OpenTelemetry's own SDKs for Node, Python, Go and Java, behind sidecars of both kinds: with their
// default propagators and samplers, their spans and the proxies' are one tree, whoever begins it.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { httpRequest } from "../e2e/shop-instance.ts";
import { mavenJar } from "../tools/maven-project.ts";
import { MeshedProxies, type ProxyKind, type RunningPod } from "../tools/meshed-proxies.ts";
import { npmPackages } from "../tools/npm-packages.ts";
import { startProcess, waitFor } from "../tools/processes.ts";
import { pythonEnvironment } from "../tools/python-environment.ts";
import { Jaeger, tracingProgram, treeOf } from "./tracing/stage.ts";

const port = 8080;
const outboundPort = 15_007;

/** Each asks the next one, and the last the first. */
const proxies = { node: "tulle", python: "envoy", go: "tulle", java: "envoy" } as const satisfies Record<
  string,
  ProxyKind
>;
type Language = keyof typeof proxies;
const languages = Object.keys(proxies) as readonly Language[];

/** What spans of an application are called: its SDK's own business. */
const spanNames: Readonly<Record<Language, { readonly server: string; readonly client: string }>> = {
  node: { server: "GET", client: "GET" },
  python: { server: "GET /", client: "GET" },
  go: { server: "GET", client: "HTTP GET" },
  java: { server: "GET", client: "GET" },
};

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

async function programs(): Promise<Readonly<Record<Language, (pod: RunningPod) => Program>>> {
  const folder = path.join(import.meta.dirname, "tracing-clients");
  const [modules, python, go, jar] = await Promise.all([
    npmPackages(path.join(folder, "node")),
    pythonEnvironment("python/tracing.txt"),
    tracingProgram(),
    mavenJar(path.join(folder, "java"), "tracing-client-1.jar"),
  ]);
  const java = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", path.join(path.dirname(jar), "*")];
  return {
    node: () => ({
      command: process.execPath,
      args: [path.join(folder, "node", "application.cjs")],
      env: { NODE_PATH: modules, NODE_USE_ENV_PROXY: "1" },
    }),
    python: () => ({ command: python, args: [path.join(folder, "python", "application.py")] }),
    go: () => ({ command: go, args: ["application"] }),
    java: ({ address }) => ({
      command: "java",
      args: [...java, `-Dhttp.proxyHost=${address}`, `-Dhttp.proxyPort=${outboundPort}`, "io.tulle.Application"],
      // Of signals that are exported by default Jaeger takes one.
      env: { OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" },
    }),
  };
}

function manifests({ ports }: Jaeger): string {
  const mesh = {
    extensionProviders: [{ name: "jaeger", opentelemetry: { service: ports.address, port: ports.grpc } }],
  };
  const documents = [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "tulle", namespace: "tulle-system" },
      data: { mesh: JSON.stringify(mesh) },
    },
    {
      apiVersion: "telemetry.tulle.io/v1",
      kind: "Telemetry",
      metadata: { name: "traces", namespace: "tulle-system" },
      spec: { tracing: [{ providers: [{ name: "jaeger" }], randomSamplingPercentage: 100 }] },
    },
  ];
  return documents.map((document) => JSON.stringify(document)).join("\n---\n");
}

/** From each of the languages on. */
const chains = languages.map((_, at): readonly Language[] => [...languages.slice(at), ...languages.slice(0, at)]);

/** Of a request to the first one's application itself, or one that a sidecar was asked to pass on to it. */
function expectedTree(chain: readonly Language[], sidecar: Language | undefined): readonly string[] {
  const lines: string[] = [];
  const add = (line: string): void => void lines.push(`${"  ".repeat(lines.length)}${line}`);
  let caller = sidecar;
  for (const [index, language] of chain.entries()) {
    const route = `${language}.shop.svc.cluster.local:${port}/*`;
    const { server, client } = spanNames[language];
    if (caller !== undefined) {
      add(`${caller}.shop client ${route}`);
      add(`${language}.shop server ${route}`);
    }
    add(`${language} server ${server}`);
    if (index < chain.length - 1) add(`${language} client ${client}`);
    caller = language;
  }
  return lines;
}

describe("OpenTelemetry's SDKs with their defaults behind sidecars, in Jaeger", () => {
  const open = new AsyncDisposableStack();
  let jaeger: Jaeger;
  let mesh: MeshedProxies;

  before(async () => {
    const started = await programs();
    jaeger = open.use(await Jaeger.start(await tracingProgram()));
    mesh = open.use(
      await MeshedProxies.start({
        pods: languages.map((name) => ({ name, namespace: "shop", proxy: proxies[name] })),
        ports: [port],
        manifests: manifests(jaeger),
        startApplication: async (pod) => {
          const { command, args, env } = started[pod.name as Language](pod);
          const { address, http } = jaeger.ports;
          const application = await startProcess(command, args, {
            name: pod.name,
            env: {
              HOST: pod.appAddress,
              HTTP_PROXY: `http://${pod.address}:${outboundPort}`,
              // The collector is asked directly.
              NO_PROXY: address,
              OTEL_SERVICE_NAME: pod.name,
              OTEL_EXPORTER_OTLP_ENDPOINT: `http://${address}:${http}`,
              OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
              ...env,
            },
          });
          await application.waitForOutput(/listens/);
          return application;
        },
      }),
    );
    for (const chain of chains) await ask(chain);
  });
  after(() => open.disposeAsync());

  async function assertTree(expected: readonly string[]): Promise<void> {
    const [service = ""] = expected[0]!.split(" ");
    let trees: readonly (readonly string[])[] = [];
    const tree = () => trees.find(([root]) => root === expected[0]) ?? [];
    const isThere = async (): Promise<boolean> => {
      trees = (await jaeger.traces(service)).map(treeOf);
      return tree().length >= expected.length;
    };
    const details = (): string => trees.map((each) => each.join("\n")).join("\n\n");
    await waitFor(isThere, { what: `${expected.length} spans`, intervalMs: 500, timeoutMs: 30_000, details });
    assert.deepEqual(tree(), expected);
  }

  /** All at once, since spans leave after seconds. */
  async function ask(chain: readonly Language[]): Promise<void> {
    const first = chain[0]!;
    const rest = chain.slice(1).map((name) => `${name}.shop`);
    const target = `/?next=${rest.join(",")}`;
    const headers = { host: `${first}.shop:${port}` };
    const answers = [
      await httpRequest(`http://${mesh.pod(first).appAddress}:${port}${target}`),
      await httpRequest(`http://${mesh.pod(chain.at(-1)!).address}:${outboundPort}${target}`, { headers }),
    ];
    for (const { body } of answers) assert.equal(body, chain.join(" "));
  }

  for (const chain of chains) {
    const name = chain.join(" → ");
    test(`${name}, begun by the SDK`, () => assertTree(expectedTree(chain, undefined)));
    test(`${name}, begun by a sidecar`, () => assertTree(expectedTree(chain, chain.at(-1))));
  }
});
