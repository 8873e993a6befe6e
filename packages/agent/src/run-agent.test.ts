// The whole agent: with a stock Envoy as its proxy, without a control plane, and where its surroundings are wrong.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { type Server, type ServerResponse, createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { type LogEntry, Logging } from "@tulle/telemetry";
import {
  type AdsConnection,
  type EncodedResource,
  type ResourceTypeName,
  type RunningAdsServer,
  encodeResource,
  serveAds,
} from "@tulle/xds";
import { messageFromJson } from "@tulle/xds/json";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { envoyPath } from "../../../tests/tools/envoy-path.ts";
import {
  freeAddressBlock,
  freePort,
  type StartedProcess,
  startProcess,
  waitFor,
} from "../../../tests/tools/processes.ts";
import { decodePeerMetadata } from "./bootstrap/peer-metadata.ts";
import type { RunningDataPlane } from "./data-plane/data-plane.ts";
import { type AgentOptions, runAgent } from "./run-agent.ts";

const listenerPort = 8080;
const typeUrl = (name: string): string => `type.googleapis.com/envoy.extensions.filters.${name}`;

/** `tulle agent` without the command line around it. */
const agentProgram = `
  import { runAgent } from "./run-agent.ts";
  process.exit(await runAgent(process.env));
`;

/** A loopback address for this process and test alone: admin and health ports are fixed. */
const block = await freeAddressBlock();
let lastAddress = 0;
function ownAddress(): string {
  lastAddress += 1;
  return `${block}.${lastAddress}`;
}

function encode(type: ResourceTypeName, json: object): EncodedResource {
  const result = messageFromJson(resourceSchemas[type], json);
  if (!result.ok) assert.fail(JSON.stringify(result.problems));
  return encodeResource(resourceSchemas[type], result.message);
}

function declarations(podAddress: string, backEndPort: number): ReadonlyMap<ResourceTypeName, EncodedResource> {
  const ads = { ads: {}, resource_api_version: "V3" };
  const address = (host: string, port: number): object => ({ socket_address: { address: host, port_value: port } });
  const metadata = { key: "x-envoy-peer-metadata", value: "%ENVIRONMENT(TULLE_PEER_METADATA)%" };
  const manager = {
    "@type": typeUrl("network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "s",
    rds: { route_config_name: "r", config_source: ads },
    http_filters: [{ name: "router", typed_config: { "@type": typeUrl("http.router.v3.Router") } }],
  };
  return new Map([
    ["CDS", encode("CDS", { name: "c", type: "EDS", connect_timeout: "1s", eds_cluster_config: { eds_config: ads } })],
    [
      "EDS",
      encode("EDS", {
        cluster_name: "c",
        endpoints: [{ lb_endpoints: [{ endpoint: { address: address("127.0.0.1", backEndPort) } }] }],
      }),
    ],
    [
      "LDS",
      encode("LDS", {
        name: "l",
        address: address(podAddress, listenerPort),
        filter_chains: [{ filters: [{ name: "http", typed_config: manager }] }],
      }),
    ],
    [
      "RDS",
      encode("RDS", {
        name: "r",
        request_headers_to_add: [{ header: metadata }],
        virtual_hosts: [{ name: "v", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "c" } }] }],
      }),
    ],
  ]);
}

async function startControlPlane(
  context: TestContext,
  resources: ReadonlyMap<ResourceTypeName, EncodedResource>,
  given?: number,
): Promise<RunningAdsServer> {
  // Not port zero: it may be closed and started again at the same port, which nobody may have taken meanwhile.
  const port = given ?? (await freePort());
  const handlers = {
    onConnect: (connection: AdsConnection): void => {
      for (const [type, resource] of resources) connection.set(type, new Map([[resource.name, resource]]));
    },
    onSubscribe: (): void => undefined,
    onDisconnect: (): void => undefined,
  };
  const server = await serveAds({ address: { host: "127.0.0.1", port }, handlers });
  context.after(() => server.close());
  return server;
}

const portOf = (server: RunningAdsServer): number => ("port" in server.address ? server.address.port : 0);

async function startAgent(context: TestContext, env: Record<string, string>): Promise<StartedProcess> {
  const agent = await startProcess(process.execPath, ["--input-type=module", "--eval", agentProgram], {
    name: "agent",
    cwd: import.meta.dirname,
    env: { ...env, TULLE_PROXY_LOG_LEVEL: "warning" },
  });
  context.after(() => agent.stop());
  return agent;
}

/** Waits until an agent's health page says that. */
async function health(agent: StartedProcess, { address }: Pod, said: string): Promise<void> {
  await waitFor(async () => (await get(address, 15_021, "/healthz/ready")) === said, {
    what: `the agent to say ${said}`,
    details: () => agent.output(),
  });
}

async function get(host: string, port: number, url = "/"): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = httpRequest({ host, port, path: url, agent: false }, (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (text: string) => (body += text));
    response.on("end", () => resolve(`${response.statusCode} ${body}`.trim()));
  });
  request.on("error", reject);
  request.end();
  return promise;
}

async function startBackEnd(context: TestContext): Promise<{ readonly port: number; readonly peers: unknown[] }> {
  const peers: unknown[] = [];
  const server: Server = createServer((request, response) => {
    peers.push(decodePeerMetadata(String(request.headers["x-envoy-peer-metadata"])));
    response.end(`from ${request.socket.remoteAddress}`);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  context.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, peers };
}

class Pod {
  readonly address = ownAddress();
  readonly folder = mkdtempSync(path.join(tmpdir(), "tulle-agent-"));
  readonly entries: LogEntry[] = [];
  #stop = new AbortController();
  #ended: Promise<number> | undefined;

  constructor(context: TestContext) {
    context.after(async () => {
      await this.stop();
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  env(controlPlanePort: number): Record<string, string> {
    return {
      POD_NAME: "web-1",
      POD_NAMESPACE: "shop",
      INSTANCE_IP: this.address,
      TULLE_XDS_ADDRESS: `127.0.0.1:${controlPlanePort}`,
      TULLE_STATE_DIR: this.folder,
      TULLE_NODE_METADATA: JSON.stringify({ LABELS: { app: "web" }, WORKLOAD_NAME: "web" }),
    };
  }

  start(env: Record<string, string>, options: AgentOptions = {}): Promise<number> {
    this.#stop = new AbortController();
    const logging = new Logging({ sink: (entry) => this.entries.push(entry) });
    this.#ended = runAgent(env, { stop: this.#stop.signal, logging, ...options });
    return this.#ended;
  }

  async stop(): Promise<number | undefined> {
    this.#stop.abort();
    return this.#ended;
  }

  log(): string {
    return this.entries.map(({ level, message, fields }) => `${level} ${message} ${JSON.stringify(fields)}`).join("\n");
  }

  /** Ready by the health port, and the request proxied. */
  async serves(expected: string): Promise<void> {
    const details = (): string => this.log();
    await waitFor(async () => (await get(this.address, 15_021, "/healthz/ready")) === "200 ready", {
      what: "the pod to be ready",
      details,
    });
    await waitFor(async () => (await get(this.address, listenerPort)) === expected, { what: expected, details });
  }
}

test("a stock Envoy under the agent serves, survives its control plane, and starts again without it", async (context) => {
  const backEnd = await startBackEnd(context);
  const pod = new Pod(context);
  const controlPlane = await startControlPlane(context, declarations(pod.address, backEnd.port));
  const env = { ...pod.env(portOf(controlPlane)), TULLE_PROXY: "envoy", TULLE_ENVOY: await envoyPath() };
  void pod.start({ ...env, TULLE_PROXY_LOG_LEVEL: "error" });
  await pod.serves(`200 from ${pod.address}`);
  assert.deepEqual(backEnd.peers.at(-1), {
    workload: "web",
    workload_namespace: "shop",
    app: "web",
    version: "",
    canonical_service: "web",
    canonical_revision: "latest",
    cluster: "",
    principal: "",
  });
  const file = path.join(pod.folder, "xds-state");
  const state = await waitFor(() => statSync(file, { throwIfNoEntry: false }), { what: "the saved state" });
  assert.equal(state.mode & 0o777, 0o600);

  await controlPlane.close();
  assert.equal(await get(pod.address, listenerPort), `200 from ${pod.address}`);
  assert.equal(await pod.stop(), 0);
  await assert.rejects(get(pod.address, listenerPort));

  void pod.start({ ...env, TULLE_PROXY_LOG_LEVEL: "error" });
  await pod.serves(`200 from ${pod.address}`);

  const other = await startBackEnd(context);
  const back = await startControlPlane(context, declarations(pod.address, other.port), portOf(controlPlane));
  await waitFor(
    () =>
      [...(back.connections[0]?.status().values() ?? [])].filter(({ state: sync }) => sync === "SYNCED").length === 4,
    { what: "the control plane to be followed again", details: () => pod.log() },
  );
  assert.equal(await get(pod.address, listenerPort), `200 from ${pod.address}`);
  await waitFor(() => other.peers.length > 0 || get(pod.address, listenerPort).then(() => false), {
    what: "the new back end",
  });
  assert.equal(await pod.stop(), 0);
});

test("the bootstrap is a file for its owner, and the same document that the proxy is given", async (context) => {
  const pod = new Pod(context);
  const running = Promise.withResolvers<string>();
  const proxyEnded = Promise.withResolvers<number>();
  const ended = pod.start(pod.env(1), {
    startDataPlane: ({ bootstrap, bootstrapPath, env }): Promise<RunningDataPlane> => {
      assert.equal(statSync(bootstrapPath).mode & 0o777, 0o600);
      assert.equal(JSON.parse(readFileSync(bootstrapPath, "utf8")).node.id, bootstrap.node!.id);
      running.resolve(env["TULLE_PEER_METADATA"]!);
      return Promise.resolve({
        ended: proxyEnded.promise,
        isReady: () => Promise.resolve(false),
        metrics: () => Promise.resolve(undefined),
        taken: () => Promise.resolve(undefined),
        stop: () => Promise.resolve(proxyEnded.resolve(0)),
      });
    },
  });
  assert.equal(decodePeerMetadata(await running.promise)?.workload, "web");
  assert.equal(await get(pod.address, 15_021, "/healthz/ready"), "503 the proxy is not ready");
  assert.equal(await get(pod.address, 15_021, "/other"), "404 not found");
  proxyEnded.resolve(7);
  assert.equal(await ended, 7);
  assert.match(pod.log(), /the proxy ended by itself with exit code 7/);
});

const failures = [
  {
    name: "settings that are missing",
    env: (_pod: Pod) => ({}),
    code: 2,
    expected: /POD_NAME is not set/,
  },
  {
    name: "an Envoy that is not there",
    env: (pod: Pod) => ({ ...pod.env(1), TULLE_PROXY: "envoy", TULLE_ENVOY: "/nowhere/envoy" }),
    code: 1,
    expected: /cannot run \/nowhere\/envoy/,
  },
  {
    name: "an address that is not this machine's",
    env: (pod: Pod) => ({ ...pod.env(1), INSTANCE_IP: "192.0.2.1" }),
    code: 1,
    expected: /EADDRNOTAVAIL/,
  },
];

for (const { name, env, code, expected } of failures) {
  test(`${name}: told, and exit code ${code}`, async (context) => {
    const pod = new Pod(context);
    assert.equal(await pod.start(env(pod)), code);
    assert.match(pod.log(), expected);
  });
}

test("Tulle's own proxy under the agent serves, survives its control plane, and starts again without it", async (context) => {
  const backEnd = await startBackEnd(context);
  const pod = new Pod(context);
  const controlPlane = await startControlPlane(context, declarations(pod.address, backEnd.port));
  const env = pod.env(portOf(controlPlane));
  void pod.start(env);
  await pod.serves(`200 from ${pod.address}`);
  assert.equal((backEnd.peers.at(-1) as { workload?: string } | undefined)?.workload, "web");
  await controlPlane.close();
  assert.equal(await get(pod.address, listenerPort), `200 from ${pod.address}`);
  assert.equal(await pod.stop(), 0);
  await assert.rejects(get(pod.address, listenerPort));
  void pod.start(env);
  await pod.serves(`200 from ${pod.address}`);
  assert.equal(await pod.stop(), 0);
});

for (const dataPlane of ["tulle", "envoy"] as const) {
  test(`${dataPlane}: SIGTERM lets a request in flight finish, then the process exits with 0`, async (context) => {
    const arrived = Promise.withResolvers<ServerResponse>();
    const server = createServer((_request, response) => arrived.resolve(response));
    const { promise: listening, resolve } = Promise.withResolvers<void>();
    server.listen(0, "127.0.0.1", resolve);
    await listening;
    context.after(() => server.close());
    const pod = new Pod(context);
    const { port } = server.address() as AddressInfo;
    const controlPlane = await startControlPlane(context, declarations(pod.address, port));
    const agent = await startAgent(context, {
      ...pod.env(portOf(controlPlane)),
      TULLE_PROXY: dataPlane,
      TULLE_ENVOY: await envoyPath(),
      TULLE_DRAIN_MS: "20000",
      TULLE_MINIMUM_DRAIN_MS: "200",
    });
    await health(agent, pod, "200 ready");
    const answer = get(pod.address, listenerPort);
    const response = await arrived.promise;
    agent.kill("SIGTERM");
    // The agent drains: its health page says that it leaves, while the request still runs.
    await health(agent, pod, "503 the agent is stopping");
    assert.equal(agent.exit, undefined);
    response.end("late");
    assert.equal(await answer, "200 late");
    assert.deepEqual(await agent.exited, { code: 0, signal: null }, agent.output());
  });

  test(`${dataPlane}: after SIGTERM it answers who does not know that it leaves, and at SIGINT it ends`, async (context) => {
    const pod = new Pod(context);
    const backEnd = await startBackEnd(context);
    const controlPlane = await startControlPlane(context, declarations(pod.address, backEnd.port));
    const start = async (): Promise<StartedProcess> => {
      const agent = await startAgent(context, {
        ...pod.env(portOf(controlPlane)),
        TULLE_PROXY: dataPlane,
        TULLE_ENVOY: await envoyPath(),
        TULLE_DRAIN_MS: "3600000",
        TULLE_MINIMUM_DRAIN_MS: "3600000",
      });
      await health(agent, pod, "200 ready");
      return agent;
    };
    const terminated = await start();
    terminated.kill("SIGTERM");
    await health(terminated, pod, "503 the agent is stopping");
    // Nothing is open by now, and each of these is a connection of its own.
    for (let count = 0; count < 3; count += 1) assert.match(await get(pod.address, listenerPort), /^200 from /);
    terminated.kill("SIGTERM");
    assert.deepEqual(await terminated.exited, { code: 1, signal: null }, terminated.output());
    const interrupted = await start();
    interrupted.kill("SIGINT");
    assert.deepEqual(await interrupted.exited, { code: 0, signal: null }, interrupted.output());
  });
}
