// Collectors of the mesh, by mutual TLS, that are no good, each in another way: spans by OTLP over gRPC, access logs by
// OTLP over HTTP/1.1 and by Envoy's access log service, and metrics, of one proxy. Requests go on as if nothing were,
// counters and one line of the log tell of each, nothing piles up, and what comes once a collector is well again
// arrives.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { connectionManager, extension, http2Options, inline, loopback, staticCluster } from "../testing/envoy-json.ts";
import { badWays, MeshCollector, type Via, vias } from "../testing/mesh-collector.ts";
import { type ProxyProcess, startProxyProcess } from "../testing/proxy-process.ts";
import { openTelemetry } from "../testing/tracing-stage.ts";
import { type IssuedIdentity, testAuthority } from "../testing/test-authority.ts";

const requestsOfHalf = 200;
const connectionsOfKind = 2;
const kinds = Object.keys(badWays);
/** What the second half may add to what is held after a collection. */
const noiseBytes = 8 * 1024 * 1024;

/** Thirty-six collectors and their proxy share a core or two. */
const patience = { timeoutMs: 240_000, intervalMs: 200 };
/** `wellAfterMs` of export-result.ts: a loss after such a pause is told anew. */
const quietMs = 10_000;

const identity = "spiffe://cluster.local/ns/observability/sa/collector";

function transportSocket(client: IssuedIdentity, rootPem: string, protocol: string): object {
  const { chainPem, keyPem } = client;
  return {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": extension("transport_sockets.tls.v3.UpstreamTlsContext"),
      common_tls_context: {
        alpn_protocols: [protocol],
        tls_certificates: [{ certificate_chain: inline(chainPem), private_key: inline(keyPem) }],
        validation_context: {
          trusted_ca: inline(rootPem),
          match_typed_subject_alt_names: [{ san_type: "URI", matcher: { exact: identity } }],
        },
      },
    },
  };
}

/** It is the authority, too. */
const clusterName = (via: Via, kind: string): string => `${via}.${kind.replaceAll(" ", "-")}`;

/** Silence ends it, and nothing else does. */
function grpcTo(via: Via, kind: string): object {
  const timeout = badWays[kind]!.isSilent === true ? "1s" : "60s";
  return { envoy_grpc: { cluster_name: clusterName(via, kind) }, timeout };
}

function sink(kind: string): object {
  return {
    name: "envoy.stat_sinks.open_telemetry",
    typed_config: {
      "@type": extension("stat_sinks.open_telemetry.v3.SinkConfig"),
      grpc_service: grpcTo("metrics", kind),
    },
  };
}

function listener(kind: string): object {
  const timeout = badWays[kind]!.isSilent === true ? "1s" : "60s";
  const manager = connectionManager([{ match: { prefix: "/" }, route: { cluster: "app" } }], {
    tracing: { provider: openTelemetry({ grpc_service: grpcTo("spans", kind), service_name: kind }) },
    access_log: [
      {
        name: "logs",
        typed_config: {
          "@type": extension("access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig"),
          http_service: {
            http_uri: { uri: "http://collector.test/v1/logs", cluster: clusterName("logs", kind), timeout },
          },
          log_name: kind,
          body: { string_value: "%REQ(:PATH)%" },
        },
      },
      {
        name: "entries",
        typed_config: {
          "@type": extension("access_loggers.grpc.v3.HttpGrpcAccessLogConfig"),
          common_config: { log_name: kind, grpc_service: grpcTo("entries", kind) },
        },
      },
    ],
  });
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  return { name: kind, address: loopback(0), filter_chains: [{ filters }] };
}

/** On one connection, each behind the answer to the one before it; all are answered, with their own paths. */
async function ask(port: number, first: number, count: number): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let number = first; number < first + count; number += 1) {
    const path = `/${number}`;
    const request = http.get({ port, host: "127.0.0.1", path, agent });
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    let body = "";
    for await (const chunk of response) body += String(chunk);
    assert.deepEqual([response.statusCode, body], [200, path]);
  }
  agent.destroy();
}

describe("collectors of the mesh that are no good", () => {
  const open = new AsyncDisposableStack();
  const collectors = new Map<string, MeshCollector>();
  let proxy: ProxyProcess;
  let asked = 0;
  let startedMs = 0;

  before(async () => {
    startedMs = performance.now();
    const authority = await testAuthority();
    const client = await authority.issue();
    const good = await authority.issue({ uri: identity });
    for (const kind of kinds) {
      const bad = await authority.issue(badWays[kind]!.certificate ?? { uri: identity });
      collectors.set(
        kind,
        open.use(await MeshCollector.start(badWays[kind]!, { bad, good, rootPem: authority.rootPem })),
      );
    }
    const app = net.createServer((socket) => {
      socket
        .on("error", () => undefined)
        .on("data", (head) => {
          const path = head.toString("latin1").split(" ")[1]!;
          socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${path.length}\r\n\r\n${path}`);
        });
    });
    app.listen(0, "127.0.0.1");
    await once(app, "listening");
    open.defer(() => void app.close());
    const clusters = kinds.flatMap((kind) =>
      vias.map((via) =>
        staticCluster(clusterName(via, kind), [collectors.get(kind)!.port], {
          transport_socket: transportSocket(client, authority.rootPem, via === "logs" ? "http/1.1" : "h2"),
          ...(via !== "logs" && { typed_extension_protocol_options: http2Options }),
        }),
      ),
    );
    const bootstrap = {
      admin: { address: loopback(0) },
      stats_flush_interval: "1s",
      stats_sinks: kinds.map(sink),
      static_resources: {
        listeners: kinds.map(listener),
        clusters: [staticCluster("app", [(app.address() as AddressInfo).port]), ...clusters],
      },
    };
    const ends = { after: (end: () => void | Promise<unknown>) => open.defer(async () => void (await end())) };
    proxy = await startProxyProcess(ends, JSON.stringify(bootstrap));
  });
  after(() => open.disposeAsync());

  async function load(): Promise<void> {
    const each = requestsOfHalf / connectionsOfKind;
    const starts = Array.from({ length: connectionsOfKind }, (_, index) => asked + index * each);
    await Promise.all(kinds.flatMap((kind) => starts.map((start) => ask(proxy.ports[kind]!, start, each))));
    asked += requestsOfHalf;
  }

  async function counter(name: string): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${proxy.adminPort}/stats?format=json&filter=${name}`);
    const { stats } = (await answer.json()) as { readonly stats: readonly { readonly value: number }[] };
    return stats.reduce((sum, { value }) => sum + value, 0);
  }

  /** Of all that was asked, spans and log records alike. */
  async function assertCounted(): Promise<void> {
    let seen: readonly number[] = [];
    const isCounted = async (): Promise<boolean> => {
      seen = await Promise.all(["spans_(sent|dropped)", "open_telemetry_access_log.*logs_"].map(counter));
      return seen.every((count) => count === asked * kinds.length);
    };
    await waitFor(isCounted, { what: `${asked * kinds.length} of each`, details: () => seen.join(), ...patience });
  }

  test("requests are answered, each loss is counted, and nothing is held", async () => {
    await load();
    await assertCounted();
    const half = await proxy.holdings();
    await load();
    await assertCounted();
    assert.equal(await counter("spans_sent"), 0);
    assert.ok((await counter("points_dropped")) > 0);
    const end = await proxy.holdings();
    const grown = end.heapBytes + end.externalBytes - half.heapBytes - half.externalBytes;
    assert.ok(grown < noiseBytes, `${grown} bytes more`);
  });

  test("one line tells each", async () => {
    let told: readonly (readonly [cluster: unknown, reason: unknown])[] = [];
    const expected = kinds.flatMap((kind) =>
      vias.flatMap((via) => {
        const reason = badWays[kind]!.reasons[via];
        return reason === undefined ? [] : [[clusterName(via, kind), reason] as const];
      }),
    );
    const missing = (): readonly string[] =>
      expected.map(([name]) => name).filter((name) => told.every(([cluster]) => cluster !== name));
    const areTold = async (): Promise<boolean> => {
      const { errors } = await proxy.holdings();
      told = errors.map(({ fields }) => [fields?.["cluster"], fields?.["reason"]]);
      return missing().length === 0;
    };
    await waitFor(areTold, { what: "a line for each", details: () => missing().join(), ...patience });
    // Where nothing was lost for so long, the next loss is told again: on a slow machine that may come.
    const mayTell = 1 + Math.floor((performance.now() - startedMs) / quietMs);
    for (const [name, reason] of expected) {
      const lines = told.filter(([cluster]) => cluster === name);
      assert.match(String(lines[0]![1]), reason, name);
      // To a call that has lasted for a second entries have arrived, and a loss after them is told again.
      if (!name.startsWith("entries")) assert.ok(lines.length <= mayTell, `${name}: ${lines.length} lines`);
    }
    assert.deepEqual(new Set(told.map(([cluster]) => cluster)), new Set(expected.map(([name]) => name)));
  });

  test("what comes once they are well arrives", async () => {
    for (const collector of collectors.values()) collector.heal();
    const missing = (): readonly string[] =>
      kinds.flatMap((kind) =>
        vias.filter((via) => !collectors.get(kind)!.taken.has(via)).map((via) => clusterName(via, kind)),
      );
    const haveArrived = async (): Promise<boolean> => {
      for (const kind of kinds) await ask(proxy.ports[kind]!, 0, 1);
      return missing().length === 0;
    };
    await waitFor(haveArrived, {
      what: "spans, logs, entries and metrics",
      details: () => missing().join(),
      ...patience,
    });
    await waitFor(async () => (await counter("spans_sent")) > 0, { what: "spans that are counted", ...patience });
  });
});
