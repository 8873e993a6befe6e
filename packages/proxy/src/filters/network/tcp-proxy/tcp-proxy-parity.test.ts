// The same connections through this proxy's and a stock Envoy's TCP proxy and network RBAC: what both ends see, the
// access log and the statistics must agree.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { freeAddressBlock, waitFor } from "../../../../../../tests/tools/processes.ts";
import { type Side, countersOf, startEnvoy, startOurs } from "../../../testing/parity-pair.ts";
import { type Hosts, TcpClient, startHosts } from "../../../testing/tcp-parity-peers.ts";
import { extension, fileAccessLog, loopback, staticCluster } from "../../../testing/envoy-json.ts";

const logged = [
  "RESPONSE_FLAGS",
  "RESPONSE_CODE",
  "RESPONSE_CODE_DETAILS",
  "CONNECTION_TERMINATION_DETAILS",
  "BYTES_RECEIVED",
  "BYTES_SENT",
  "PROTOCOL",
  "REQ(:METHOD)",
  "ROUTE_NAME",
  "ACCESS_LOG_TYPE",
  "DYNAMIC_METADATA(envoy.filters.network.rbac)",
] as const;
const loggedOfUpstream = [
  "UPSTREAM_HOST",
  "UPSTREAM_CLUSTER_RAW",
  "UPSTREAM_REMOTE_ADDRESS",
  "UPSTREAM_TRANSPORT_FAILURE_REASON",
  "UPSTREAM_REQUEST_ATTEMPT_COUNT",
  "UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT",
] as const;

const any = [{ any: true }];
const policy = (...permissions: readonly object[]): object => ({ permissions, principals: any });
const nobody = { not_rule: { any: true } };
const inRange = (address_prefix: string, prefix_len: number): object => ({ address_prefix, prefix_len });

interface TcpListener {
  readonly name: string;
  readonly rbac?: object;
  readonly proxy: object;
}

const to = (cluster: string, more: object = {}): object => ({ cluster, ...more });

const listeners: readonly TcpListener[] = [
  ...["echo", "banner", "closer", "resetter", "counter", "source", "dead", "empty", "missing", "one"].map((name) => ({
    name,
    proxy: to(name),
  })),
  { name: "dead3", proxy: to("dead", { max_connect_attempts: 3 }) },
  { name: "idle", proxy: to("echo", { idle_timeout: "1s" }) },
  { name: "duration", proxy: to("echo", { max_downstream_connection_duration: "1s" }) },
  {
    name: "weighted",
    proxy: { weighted_clusters: { clusters: [1, 2].map((weight) => ({ name: "echo", weight })) } },
  },
  {
    name: "deny",
    rbac: { rules: { action: "DENY", policies: { "a b": policy({ any: true }) } } },
    proxy: to("denied"),
  },
  { name: "allow_none", rbac: { rules: { policies: { nobody: policy(nobody) } } }, proxy: to("denied") },
  { name: "empty_rules", rbac: { rules: {} }, proxy: to("denied") },
  { name: "no_rules", rbac: {}, proxy: to("echo") },
  {
    name: "allow",
    rbac: {
      rules: {
        policies: {
          wrong: policy({ destination_port: 1 }),
          right: {
            permissions: [{ destination_port_range: { start: 1024, end: 65536 } }],
            principals: [
              {
                and_ids: {
                  ids: [
                    { direct_remote_ip: inRange("127.0.0.0", 8) },
                    { not_id: { authenticated: {} } },
                    { not_id: { source_ip: inRange("10.0.0.0", 8) } },
                  ],
                },
              },
            ],
          },
        },
      },
    },
    proxy: to("echo"),
  },
  {
    name: "without_request",
    rbac: {
      rules: {
        policies: {
          path: policy({ url_path: { path: { prefix: "/" } } }),
          not_path: policy({
            and_rules: { rules: [{ not_rule: { url_path: { path: { prefix: "/" } } } }, { destination_port: 1 }] },
          }),
          metadata: policy({
            metadata: { filter: "a", path: [{ key: "b" }], value: { present_match: true } },
          }),
          name: policy({ requested_server_name: { exact: "a" } }),
        },
      },
    },
    proxy: to("denied"),
  },
  {
    name: "not_path",
    rbac: { rules: { policies: { p: policy({ not_rule: { url_path: { path: { prefix: "/" } } } }) } } },
    proxy: to("echo"),
  },
  {
    name: "shadow",
    rbac: {
      rules: { action: "LOG", policies: { all: policy({ any: true }) } },
      shadow_rules: { action: "DENY", policies: { "would deny": policy({ any: true }) } },
      shadow_rules_stat_prefix: "istio_dry_run_deny_",
    },
    proxy: to("echo"),
  },
  {
    name: "shadow_allows",
    rbac: { shadow_rules: { policies: { all: policy({ any: true }) } } },
    proxy: to("echo"),
  },
];

interface Scenario {
  readonly name: string;
  readonly listener: string;
  act(client: TcpClient, dial: (listener: string) => Promise<TcpClient>): Promise<void>;
  /** Envoy asks its rules only when a host has been connected. */
  readonly isRefused?: true;
}

const refused = (listener: string): Scenario => ({
  name: `${listener}: refused`,
  listener,
  isRefused: true,
  async act(client) {
    client.end();
    await client.receiveEnd();
  },
});

const echoes = (listener: string): Scenario => ({
  name: `${listener}: passed on`,
  listener,
  async act(client) {
    client.send("ping");
    await client.receive("ping");
    client.end();
    await client.receiveEnd();
  },
});

const fails = (listener: string): Scenario => ({
  name: `${listener}: fails`,
  listener,
  act: (client) => client.receiveEnd(),
});

const scenarios: readonly Scenario[] = [
  ...["echo", "weighted", "no_rules", "allow", "not_path", "shadow"].map(echoes),
  echoes("shadow_allows"),
  ...["dead", "dead3", "empty", "missing"].map(fails),
  ...["deny", "allow_none", "empty_rules", "without_request"].map(refused),
  {
    name: "the client ends without a byte",
    listener: "echo",
    async act(client) {
      client.end();
      await client.receiveEnd();
    },
  },
  {
    name: "the host speaks first",
    listener: "banner",
    async act(client) {
      await client.receive("hello\n");
      client.end();
      await client.receiveEnd();
    },
  },
  {
    name: "the host ends its side, the client goes on",
    listener: "closer",
    async act(client) {
      client.send("x");
      await client.receiveEnd();
      client.send("more");
      client.end();
    },
  },
  {
    name: "the client ends its side, the host answers",
    listener: "counter",
    async act(client) {
      client.send("12345");
      client.end();
      await client.receive("got 5");
      await client.receiveEnd();
    },
  },
  {
    name: "the host breaks off",
    listener: "resetter",
    async act(client) {
      client.send("x");
      await client.receive("partial");
      client.send("now");
      await client.receiveEnd();
    },
  },
  {
    name: "the client breaks off",
    listener: "echo",
    async act(client) {
      client.send("x");
      await client.receive("x");
      client.reset();
    },
  },
  {
    name: "more than the buffers hold",
    listener: "source",
    async act(client) {
      client.send("x");
      await client.receiveBytes(3_000_000);
      client.end();
      await client.receiveEnd();
    },
  },
  {
    name: "idle",
    listener: "idle",
    async act(client) {
      client.send("x");
      await client.receive("x");
      await client.receiveEnd();
    },
  },
  {
    name: "longer than allowed",
    listener: "duration",
    async act(client) {
      client.send("x");
      await client.receive("x");
      await client.receiveEnd();
    },
  },
  {
    name: "one more than the circuit breaker lets through",
    listener: "one",
    async act(client, dial) {
      client.send("x");
      await client.receive("x");
      const second = await dial("one");
      await second.receiveEnd();
      await second.finish();
      client.end();
      await client.receiveEnd();
    },
  },
];

function bootstrapFor(hosts: Hosts, log: string): string {
  const format = ["DOWNSTREAM_REMOTE_ADDRESS%>%DOWNSTREAM_LOCAL_ADDRESS", ...logged, ...loggedOfUpstream]
    .map((name) => `%${name}%`)
    .join("\t");
  const accessLog = fileAccessLog(log, `${format}\n`);
  const filtersOf = ({ name, rbac, proxy }: TcpListener): object[] => [
    ...(rbac === undefined
      ? []
      : [
          {
            name: "rbac",
            typed_config: { "@type": extension("filters.network.rbac.v3.RBAC"), stat_prefix: `${name}.`, ...rbac },
          },
        ]),
    {
      name: "tcp",
      typed_config: {
        "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
        stat_prefix: name,
        access_log: [accessLog],
        ...proxy,
      },
    },
  ];
  const { ports, deadPort } = hosts;
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: listeners.map((listener) => ({
        name: listener.name,
        address: { socket_address: { address: ownAddress, port_value: 0 } },
        filter_chains: [{ filters: filtersOf(listener) }],
      })),
      clusters: [
        ...Object.entries(ports).map(([name, port]) => staticCluster(name, [port])),
        staticCluster("denied", [ports.echo]),
        staticCluster("dead", [deadPort]),
        staticCluster("empty", []),
        staticCluster("one", [ports.echo], { circuit_breakers: { thresholds: [{ max_connections: 1 }] } }),
      ],
    },
  });
}

interface Seen {
  readonly client: string;
  readonly hosts: readonly string[];
  /** One line for each connection. */
  readonly log: readonly LogLine[];
}

type LogLine = Readonly<Record<string, unknown>>;

/** Lines by the two ends of the connection: a client's port alone may serve again for another listener. */
function logLines(file: string): ReadonlyMap<string, LogLine> {
  const text = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
  const whole = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return new Map(whole.filter((line) => line !== "").map(logLine));
}

function logLine(line: string): [string, LogLine] {
  const [ends, ...values] = line
    .split("\t")
    .map((value): unknown => (value.startsWith("{") ? JSON.parse(value) : value));
  return [
    String(ends),
    Object.fromEntries([...logged, ...loggedOfUpstream].map((name, index) => [name, values[index]])),
  ];
}

async function runOn(side: Side, hosts: Hosts): Promise<readonly Seen[]> {
  const played: (Omit<Seen, "log"> & { readonly connections: readonly string[] })[] = [];
  for (const scenario of scenarios) {
    const connections: string[] = [];
    const dial = async (name: string): Promise<TcpClient> => {
      const port = side.ports.get(name)!;
      const client = await TcpClient.connect(ownAddress, port);
      connections.push(`127.0.0.1:${client.port}>${ownAddress}:${port}`);
      return client;
    };
    const client = await dial(scenario.listener);
    await scenario.act(client, dial);
    played.push({ client: await client.finish(), hosts: await hosts.endings(), connections });
  }
  const lines = await waitFor(
    () => {
      const read = logLines(side.log);
      return played.every(({ connections }) => connections.every((ends) => read.has(ends))) && read;
    },
    { what: "the access log" },
  );
  return played.map(({ connections, ...seen }) => ({ ...seen, log: connections.map((ends) => lines.get(ends)!) }));
}

/**
 * Connections are counted here. On 127.0.0.1 a port may be one that clients of other tests still try, which had it
 * before.
 */
const ownAddress = `${await freeAddressBlock()}.1`;
let folder: string;
let hosts: Hosts;
let oursSide: Side | undefined;
let envoySide: Side | undefined;
let ours: readonly Seen[];
let envoys: readonly Seen[];

before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-tcp-parity-"));
  hosts = await startHosts();
  const bootstrap = (log: string): string => bootstrapFor(hosts, log);
  oursSide = await startOurs(path.join(folder, "ours.log"), bootstrap);
  envoySide = await startEnvoy(folder, listeners.length, bootstrap);
  ours = await runOn(oursSide, hosts);
  envoys = await runOn(envoySide, hosts);
});

after(async () => {
  await envoySide?.stop();
  await oursSide?.stop();
  hosts.stop();
  fs.rmSync(folder, { recursive: true });
});

function comparable(seen: Seen, isRefused: boolean): unknown {
  if (!isRefused) return seen;
  const log = seen.log.map((line) => Object.fromEntries(logged.map((name) => [name, line[name]])));
  return { client: seen.client, log };
}

for (const [index, { name, isRefused = false }] of scenarios.entries()) {
  test(name, () => {
    assert.deepEqual(comparable(ours[index]!, isRefused), comparable(envoys[index]!, isRefused));
  });
}

test("the same counters have the same values", async () => {
  const stats =
    /^tcp\.\w+\.(downstream_cx_(total|no_route|[rt]x_bytes_total)|idle_timeout|max_downstream_connection_duration)$|\.rbac\.|^cluster\.\w+\.upstream_(cx_(total|overflow|none_healthy|connect_fail|connect_attempts_exceeded|[rt]x_bytes_total)|rq_total|rq_pending_total)$/;
  const counted = async (side: Side): Promise<object> => {
    const all = Object.entries(await countersOf(side, stats));
    return Object.fromEntries(all.filter(([name]) => !name.startsWith("cluster.denied")));
  };
  const counters = { ours: await counted(oursSide!), envoys: await counted(envoySide!) };
  assert.ok(Object.keys(counters.envoys).length > 100);
  assert.deepEqual(counters.ours, counters.envoys);
});
