// Clusters of the types STRICT_DNS, LOGICAL_DNS and dynamic_forward_proxy: this proxy and a stock Envoy ask name
// servers that answer alike, and have the same hosts after each answer, and after none.
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { inTime, waitFor } from "../../../../tests/tools/processes.ts";
import { extension, fileAccessLog, loopback, router } from "../testing/envoy-json.ts";
import { clients, type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";
import { helloFrom, serverName } from "../testing/made-hello.ts";
import { type NameAnswer, startTestNameServer, type TestNameServer } from "../testing/name-server.ts";

/** An answer that is never asked for again while the test runs. */
const forLong = 3600;

interface Step {
  readonly answer: NameAnswer;
  /** Hosts once the answer is in effect. */
  readonly hosts: readonly string[];
}

interface Scenario {
  readonly name: string;
  readonly cluster: object;
  readonly steps: readonly Step[];
}

const strict = { type: "STRICT_DNS", respect_dns_ttl: true, dns_refresh_rate: "3600s", dns_lookup_family: "V4_ONLY" };
const good: Step = { answer: { a: ["127.0.0.1", "127.0.0.2"], ttlSeconds: 1 }, hosts: ["127.0.0.1", "127.0.0.2"] };
const quickly = { dns_failure_refresh_rate: { base_interval: "0.05s", max_interval: "0.1s" } };

const scenarios: readonly Scenario[] = [
  {
    name: "all addresses, for as long as they hold",
    cluster: strict,
    steps: [good, { answer: { a: ["127.0.0.3"], ttlSeconds: forLong }, hosts: ["127.0.0.3"] }],
  },
  {
    name: "a name that is no more has no hosts",
    cluster: strict,
    steps: [good, { answer: { code: 3 }, hosts: [] }],
  },
  {
    name: "a name without an address of that family",
    cluster: strict,
    steps: [good, { answer: { aaaa: ["::1"] }, hosts: [] }],
  },
  {
    name: "a server that fails changes nothing",
    cluster: { ...strict, ...quickly },
    steps: [good, { answer: { code: 2 }, hosts: good.hosts }, { answer: { a: ["127.0.0.3"] }, hosts: ["127.0.0.3"] }],
  },
  {
    name: "nor does one that refuses",
    cluster: { ...strict, ...quickly },
    steps: [good, { answer: { code: 5 }, hosts: good.hosts }],
  },
  {
    name: "nor does a silent one",
    cluster: { ...strict, ...quickly },
    steps: [
      good,
      { answer: { isSilent: true }, hosts: good.hosts },
      { answer: { a: ["127.0.0.4"] }, hosts: ["127.0.0.4"] },
    ],
  },
  {
    name: "the rate counts where the time is not asked for",
    cluster: { ...strict, respect_dns_ttl: false, dns_refresh_rate: "0.1s" },
    steps: [
      { answer: { a: ["127.0.0.1"], ttlSeconds: forLong }, hosts: ["127.0.0.1"] },
      { answer: { a: ["127.0.0.2"], ttlSeconds: forLong }, hosts: ["127.0.0.2"] },
    ],
  },
  {
    name: "and where an answer holds for no time",
    cluster: { ...strict, dns_refresh_rate: "0.1s" },
    steps: [
      { answer: { a: ["127.0.0.1"], ttlSeconds: 0 }, hosts: ["127.0.0.1"] },
      { answer: { a: ["127.0.0.2"], ttlSeconds: forLong }, hosts: ["127.0.0.2"] },
    ],
  },
  {
    name: "an alias holds for no longer than it says",
    cluster: strict,
    steps: [
      { answer: { a: ["127.0.0.1"], aliasSeconds: 1, ttlSeconds: forLong }, hosts: ["127.0.0.1"] },
      { answer: { a: ["127.0.0.2"], ttlSeconds: forLong }, hosts: ["127.0.0.2"] },
    ],
  },
  {
    name: "IPv6 is preferred, IPv4 is taken",
    cluster: { ...strict, dns_lookup_family: "AUTO" },
    steps: [
      { answer: { a: ["127.0.0.1"], ttlSeconds: 1 }, hosts: ["127.0.0.1"] },
      { answer: { a: ["127.0.0.1"], aaaa: ["::1"], ttlSeconds: forLong }, hosts: ["[::1]"] },
    ],
  },
  {
    name: "IPv4 is preferred, IPv6 is taken",
    cluster: { ...strict, dns_lookup_family: "V4_PREFERRED" },
    steps: [
      { answer: { aaaa: ["::1"], ttlSeconds: 1 }, hosts: ["[::1]"] },
      { answer: { a: ["127.0.0.1"], aaaa: ["::1"], ttlSeconds: forLong }, hosts: ["127.0.0.1"] },
    ],
  },
  {
    name: "both families",
    cluster: { ...strict, dns_lookup_family: "ALL" },
    steps: [
      { answer: { a: ["127.0.0.1"], aaaa: ["::1"], ttlSeconds: 1 }, hosts: ["127.0.0.1", "[::1]"] },
      { answer: { a: ["127.0.0.1"], ttlSeconds: forLong }, hosts: ["127.0.0.1"] },
    ],
  },
  {
    name: "the first address of a logical name",
    cluster: { ...strict, type: "LOGICAL_DNS" },
    steps: [
      { answer: { a: ["127.0.0.1", "127.0.0.2"], ttlSeconds: 1 }, hosts: ["127.0.0.1"] },
      { answer: { a: ["127.0.0.2", "127.0.0.1"], ttlSeconds: 1 }, hosts: ["127.0.0.2"] },
      { answer: { code: 3 }, hosts: ["127.0.0.2"] },
    ],
  },
  {
    name: "a first failure is asked again soon",
    cluster: { ...strict, ...quickly },
    steps: [
      { answer: { code: 2 }, hosts: [] },
      { answer: { a: ["127.0.0.1"], ttlSeconds: forLong }, hosts: ["127.0.0.1"] },
    ],
  },
];

const nameOf = (index: number): string => `s${index}.example`;
const resolverOf = (server: TestNameServer): object => ({
  typed_dns_resolver_config: {
    name: "envoy.network.dns_resolver.cares",
    typed_config: {
      "@type": extension("network.dns_resolver.cares.v3.CaresDnsResolverConfig"),
      resolvers: [{ socket_address: { address: "127.0.0.1", port_value: server.port } }],
      dns_resolver_options: { no_default_search_domain: true },
      query_timeout_seconds: 1,
      query_tries: 1,
    },
  },
});

function bootstrap(server: TestNameServer, log: string, backEndPort: number): string {
  const cache = {
    name: "asked",
    dns_lookup_family: "V4_ONLY",
    dns_min_refresh_rate: "1s",
    dns_refresh_rate: "3600s",
    dns_query_timeout: "1s",
    resolved_address_filter: { ranges: [{ address_prefix: "127.0.9.0", prefix_len: 24 }] },
    ...quickly,
    ...resolverOf(server),
  };
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "asked",
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "asked", timeout: "0s" } }],
        },
      ],
    },
    http_filters: [
      {
        name: "envoy.filters.http.dynamic_forward_proxy",
        typed_config: {
          "@type": extension("filters.http.dynamic_forward_proxy.v3.FilterConfig"),
          dns_cache_config: cache,
        },
      },
      router,
    ],
    access_log: [fileAccessLog(log, "%RESPONSE_FLAGS%\n")],
  };
  const named = [
    {
      name: "envoy.filters.network.sni_dynamic_forward_proxy",
      typed_config: {
        "@type": extension("filters.network.sni_dynamic_forward_proxy.v3.FilterConfig"),
        dns_cache_config: cache,
        port_value: backEndPort,
      },
    },
    {
      name: "envoy.filters.network.tcp_proxy",
      typed_config: {
        "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
        stat_prefix: "named",
        cluster: "asked",
      },
    },
  ];
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [
        {
          name: "asked",
          address: loopback(0),
          filter_chains: [
            { filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] },
          ],
        },
        {
          name: "named",
          address: loopback(0),
          listener_filters: [
            {
              name: "envoy.filters.listener.tls_inspector",
              typed_config: { "@type": extension("filters.listener.tls_inspector.v3.TlsInspector") },
            },
          ],
          filter_chains: [{ filter_chain_match: { server_names: ["*.named.example"] }, filters: named }],
        },
      ],
      clusters: [
        ...scenarios.map(({ cluster }, index) => ({
          name: `s${index}`,
          connect_timeout: "5s",
          ...resolverOf(server),
          ...cluster,
          load_assignment: {
            cluster_name: `s${index}`,
            endpoints: [
              {
                lb_endpoints: [
                  {
                    endpoint: {
                      address: { socket_address: { address: nameOf(index), port_value: backEndPort } },
                    },
                  },
                ],
              },
            ],
          },
        })),
        {
          name: "asked",
          connect_timeout: "5s",
          lb_policy: "CLUSTER_PROVIDED",
          cluster_type: {
            name: "envoy.clusters.dynamic_forward_proxy",
            typed_config: {
              "@type": extension("clusters.dynamic_forward_proxy.v3.ClusterConfig"),
              dns_cache_config: cache,
            },
          },
        },
      ],
    },
  });
}

interface Stage {
  readonly side: Side;
  readonly server: TestNameServer;
}

describe("clusters by DNS, beside Envoy", { concurrency: true }, () => {
  const stages = new Map<string, Stage>();
  const folder = temporaryFolder("tulle-dns-parity-");
  // Envoy goes on with a connection that it has, wherever the name leads by now.
  const web = http.createServer((request, response) =>
    response.setHeader("connection", "close").end(request.socket.localAddress),
  );
  /** Tells at which address it was asked, whoever begins TLS without any. */
  const backEnd = net.createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("readable", () => {
      const chunk = socket.read() as Buffer | null;
      if (chunk?.[0] === 0x16) {
        socket.end(socket.localAddress ?? "");
        return;
      }
      if (chunk !== null) socket.unshift(chunk);
      web.emit("connection", socket);
    });
  });
  let port = 0;

  before(async () => {
    await new Promise<void>((resolve) => {
      backEnd.listen(0, "0.0.0.0", resolve);
    });
    port = (backEnd.address() as net.AddressInfo).port;
    for (const which of ["ours", "envoy"]) {
      const server = await startTestNameServer();
      for (const [index, { steps }] of scenarios.entries()) server.names.set(nameOf(index), steps[0]!.answer);
      const make = (log: string): string => bootstrap(server, log, port);
      const side = await (which === "ours"
        ? startOurs(path.join(folder, "ours.log"), make)
        : startEnvoy(folder, 2, make));
      stages.set(which, { side, server });
    }
  });
  after(async () => {
    for (const { side, server } of stages.values()) {
      await side.stop();
      server.close();
    }
    backEnd.close();
    web.closeAllConnections();
  });

  const hostsOf = async ({ side }: Stage, cluster: string): Promise<readonly string[]> => {
    const page = await clients["HTTP/1.1"](side.adminPort, { listener: "", host: "127.0.0.1", path: "/clusters" });
    const lines = page.body.split("\n").filter((line) => line.startsWith(`${cluster}::`));
    const found = lines.flatMap((line) => /^[^:]+::(.+):\d+::cx_active::/.exec(line)?.[1] ?? []);
    return found.sort();
  };
  const expectHosts = (stage: Stage, index: number, { answer, hosts }: Step, which: string) =>
    waitFor(async () => JSON.stringify(await hostsOf(stage, `s${index}`)) === JSON.stringify([...hosts].sort()), {
      what: `the hosts ${hosts.join(" ")} of ${which} after ${JSON.stringify(answer)}`,
    });

  for (const which of ["ours", "envoy"]) {
    for (const [index, { name, steps }] of scenarios.entries()) {
      test(`${which}: ${name}`, async () => {
        const stage = stages.get(which)!;
        const { server } = stage;
        for (const [number, step] of steps.entries()) {
          if (number > 0) {
            server.names.set(nameOf(index), step.answer);
            const earlier = server.asked(nameOf(index));
            await waitFor(() => server.asked(nameOf(index)) >= earlier + 1, { what: "another question" });
          }
          await expectHosts(stage, index, step, which);
        }
      });
    }

    test(`${which}: the host of a request follows its name`, async () => {
      const { side, server } = stages.get(which)!;
      const ask = (name: string) =>
        clients["HTTP/1.1"](side.ports.get("asked")!, { listener: "asked", host: `${name}:${port}` });
      server.names.set("moving.example", { a: ["127.0.0.1"], ttlSeconds: 1 });
      assert.equal((await ask("moving.example")).body, "127.0.0.1");
      server.names.set("moving.example", { a: ["127.0.0.2"], ttlSeconds: 1 });
      await waitFor(async () => (await ask("moving.example")).body === "127.0.0.2", { what: "the new address" });
      for (const answer of [{ isSilent: true }, { code: 2 }, { code: 3 }]) {
        const earlier = server.asked("moving.example");
        server.names.set("moving.example", answer);
        await waitFor(() => server.asked("moving.example") > earlier, { what: "another question" });
        assert.equal((await ask("moving.example")).body, "127.0.0.2", JSON.stringify(answer));
        server.names.set("moving.example", { a: ["127.0.0.2"], ttlSeconds: 1 });
      }
      server.names.set("denied.example", { a: ["127.0.9.1"] });
      assert.equal((await ask("denied.example")).status, 503);
      server.names.set("half-denied.example", { a: ["127.0.9.1", "127.0.0.2"] });
      assert.equal((await ask("half-denied.example")).body, "127.0.0.2");
      assert.equal((await ask("nobody.example")).status, 503);
      server.names.set("silent.example", { isSilent: true });
      assert.equal((await ask("silent.example")).status, 503);
    });

    test(`${which}: the server name of a connection is its host`, async () => {
      const { side, server } = stages.get(which)!;
      const open = async (name: string): Promise<string> => {
        const socket = net.connect(side.ports.get("named")!, "127.0.0.1");
        socket.on("error", () => undefined);
        socket.write(helloFrom({ extensions: serverName(Buffer.from(name)) }));
        let answer = "";
        socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
        const { promise: closed, resolve } = Promise.withResolvers<unknown>();
        socket.on("close", resolve);
        await inTime(closed, `an end of the connection for ${name}`);
        return answer;
      };
      server.names.set("a.named.example", { a: ["127.0.0.3"] });
      server.names.set("denied.named.example", { a: ["127.0.9.1"] });
      assert.equal(await open("a.named.example"), "127.0.0.3");
      assert.equal(await open("A.named.example"), "127.0.0.3");
      for (const name of ["denied.named.example", "nobody.named.example", "a.other.example"])
        assert.equal(await open(name), "", name);
    });
  }
});
