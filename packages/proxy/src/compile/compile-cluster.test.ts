// Cluster resources: what they become, which hosts they have, and what is refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { ClusterLoadAssignmentSchema } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import { accepted, fromConfiguration, problemsOf } from "../testing/from-configuration.ts";
import type { DnsAnswer } from "../cluster/dns-lookup.ts";
import { compileCluster } from "./compile-cluster.ts";
import { compileEndpoints } from "./compile-endpoints.ts";
import { detachedScope } from "../fields/compile-scope.ts";

const type = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
const endpoint = (address: string, port_value = 80, extra: object = {}): object => ({
  endpoint: { address: { socket_address: { address, port_value } } },
  ...extra,
});
const assignment = (...lb_endpoints: object[]): object => ({ cluster_name: "c", endpoints: [{ lb_endpoints }] });
const ads = { ads: {}, resource_api_version: "V3" };

function compile(json: object, overrides = {}) {
  return compileCluster(fromConfiguration(ClusterSchema, { name: "c", ...json }), detachedScope(overrides));
}

test("a static cluster with Envoy's defaults", () => {
  const { cluster, endpointsName } = accepted(compile({ load_assignment: assignment(endpoint("10.0.0.1")) }));
  assert.equal(endpointsName, undefined);
  const { name, observabilityName, connectTimeoutMs, idleTimeoutMs, maxRequestsPerConnection } = cluster;
  assert.deepEqual(
    { type: cluster.type, name, observabilityName, connectTimeoutMs, idleTimeoutMs, maxRequestsPerConnection },
    {
      type: "static",
      name: "c",
      observabilityName: "c",
      connectTimeoutMs: 5000,
      idleTimeoutMs: 3_600_000,
      maxRequestsPerConnection: 0,
    },
  );
  assert.deepEqual(cluster.circuitBreakers, {
    maxConnections: 1024,
    maxPendingRequests: 1024,
    maxRequests: 1024,
    maxRetries: 3,
    retryBudget: undefined,
  });
  assert.deepEqual(cluster.sourceAddresses, []);
  assert.deepEqual(
    cluster.hosts.map((host) => host.addressText),
    ["10.0.0.1:80"],
  );
});

test("everything that a cluster may set", () => {
  const options = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": type("upstreams.http.v3.HttpProtocolOptions"),
      common_http_protocol_options: { idle_timeout: "2s", max_requests_per_connection: 7 },
      explicit_http_config: { http_protocol_options: { enable_trailers: true } },
    },
  };
  const { cluster } = accepted(
    compile(
      {
        alt_stat_name: "other",
        connect_timeout: "0.25s",
        typed_extension_protocol_options: options,
        circuit_breakers: {
          thresholds: [
            { priority: "HIGH", max_retries: 9 },
            { max_retries: 8, max_connections: 1 },
          ],
        },
        upstream_bind_config: { source_address: { address: "127.1.0.5", port_value: 0 } },
        metadata: { filter_metadata: { istio: { services: [{ host: "h" }] } } },
      },
      { defaultSourceAddress: "127.9.9.9" },
    ),
  );
  assert.equal(cluster.observabilityName, "other");
  assert.equal(cluster.connectTimeoutMs, 250);
  assert.equal(cluster.idleTimeoutMs, 2000);
  assert.equal(cluster.maxRequestsPerConnection, 7);
  assert.equal(cluster.enableTrailers, true);
  assert.deepEqual([cluster.circuitBreakers.maxRetries, cluster.circuitBreakers.maxConnections], [8, 1]);
  assert.deepEqual(cluster.sourceAddresses, ["127.1.0.5"]);
  assert.deepEqual(cluster.metadata, { istio: { services: [{ host: "h" }] } });
});

test("a cluster that speaks HTTP/2 is taken, for calls of the proxy's own", () => {
  const options = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": type("upstreams.http.v3.HttpProtocolOptions"),
      explicit_http_config: { http2_protocol_options: {} },
    },
  };
  assert.equal(accepted(compile({ typed_extension_protocol_options: options })).cluster.protocol, "HTTP/2");
  assert.equal(accepted(compile({})).cluster.protocol, "HTTP/1.1");
});

for (const { name, bind, expected } of [
  { name: "the bootstrap's", bind: undefined, expected: ["127.9.9.9"] },
  { name: "unspecified: the kernel chooses", bind: "0.0.0.0", expected: [] },
]) {
  test(`source address, ${name}`, () => {
    const upstream_bind_config = bind === undefined ? undefined : { source_address: { address: bind, port_value: 0 } };
    const json = { ...(upstream_bind_config && { upstream_bind_config }) };
    assert.deepEqual(accepted(compile(json, { defaultSourceAddress: "127.9.9.9" })).cluster.sourceAddresses, expected);
  });
}

test("source address, unspecified beside one of the other family: both are kept", () => {
  const upstream_bind_config = {
    source_address: { address: "0.0.0.0", port_value: 0 },
    extra_source_addresses: [{ address: { address: "fd00::1", port_value: 0 } }],
  };
  assert.deepEqual(accepted(compile({ upstream_bind_config })).cluster.sourceAddresses, ["0.0.0.0", "fd00::1"]);
});

test("a source address that is none is refused, not found out by a request", () => {
  const upstream_bind_config = { source_address: { address: "localhost", port_value: 0 } };
  assert.match(problemsOf(compile({ upstream_bind_config })).join(), /source_address: malformed IP address: localhost/);
});

test("a second source address that is none is named by its place", () => {
  const extra_source_addresses = [{ address: { address: "localhost", port_value: 0 } }];
  const upstream_bind_config = { source_address: { address: "127.0.0.6", port_value: 0 }, extra_source_addresses };
  assert.match(
    problemsOf(compile({ upstream_bind_config })).join(),
    /extra_source_addresses\[0\]\.address: malformed IP address: localhost/,
  );
});

test("an EDS cluster names its endpoints, and keeps hosts whose address stays", () => {
  const { cluster, endpointsName } = accepted(
    compile({ type: "EDS", eds_cluster_config: { eds_config: ads, service_name: "e" } }),
  );
  assert.equal(endpointsName, "e");
  assert.equal(cluster.loadBalancer.chooseHost(undefined), undefined);
  const update = (...endpoints: object[]): void => {
    const message = fromConfiguration(ClusterLoadAssignmentSchema, assignment(...endpoints));
    cluster.updateEndpoints(accepted(compileEndpoints(message)));
  };
  const metadata = { filter_metadata: { istio: { workload: "w" } } };
  update(endpoint("10.0.0.1"), endpoint("10.0.0.2", 80, { metadata }), endpoint("10.0.0.2", 80));
  const [first, second] = cluster.hosts;
  assert.equal(cluster.hosts.length, 2);
  assert.deepEqual(second?.metadata, { istio: { workload: "w" } });
  assert.ok(second);
  second.metricLabels = {};
  update(endpoint("10.0.0.2", 80, { load_balancing_weight: 5 }), endpoint("10.0.0.3"));
  assert.equal(cluster.hosts[0], second);
  assert.equal(second?.weight, 5);
  assert.equal(second?.metricLabels, undefined);
  assert.equal(first?.active, false);
  cluster.stop();
  assert.equal(second?.active, false);
});

for (const { name, statuses, eligible } of [
  { name: "healthy hosts only", statuses: ["HEALTHY", "UNHEALTHY", "UNKNOWN", "DEGRADED"], eligible: 3 },
  { name: "all hosts in panic", statuses: ["HEALTHY", "UNHEALTHY", "DRAINING"], eligible: 3 },
  { name: "half are enough", statuses: ["HEALTHY", "TIMEOUT"], eligible: 1 },
]) {
  test(`load is spread over ${name}`, () => {
    const list = statuses.map((health_status, index) => endpoint(`10.0.0.${index + 1}`, 80, { health_status }));
    const { cluster } = accepted(compile({ load_assignment: assignment(...list) }));
    const chosen = new Set(Array.from({ length: 20 }, () => cluster.loadBalancer.chooseHost(undefined)?.addressText));
    assert.equal(chosen.size, eligible);
  });
}

test("names of DNS clusters are resolved when the cluster starts, and a failure keeps what was known", async () => {
  const lookup = (name: string): Promise<DnsAnswer> =>
    name === "good" ? Promise.resolve({ addresses: ["10.0.0.1", "10.0.0.2"] }) : Promise.reject(new Error("not found"));
  const strict = accepted(
    compile({ type: "STRICT_DNS", load_assignment: assignment(endpoint("good"), endpoint("bad")) }, { lookup }),
  ).cluster;
  await strict.start();
  assert.deepEqual(
    strict.hosts.map((host) => [host.addressText, host.hostname]),
    [
      ["10.0.0.1:80", "good"],
      ["10.0.0.2:80", "good"],
    ],
  );
  strict.stop();
  const logical = accepted(
    compile({ type: "LOGICAL_DNS", load_assignment: assignment(endpoint("good")) }, { lookup }),
  ).cluster;
  await logical.start();
  assert.deepEqual(
    logical.hosts.map((host) => host.addressText),
    ["10.0.0.1:80"],
  );
  logical.stop();
});

const dynamic = {
  cluster_type: {
    name: "envoy.clusters.dynamic_forward_proxy",
    typed_config: {
      "@type": type("clusters.dynamic_forward_proxy.v3.ClusterConfig"),
      dns_cache_config: { name: "d", max_hosts: 2 },
    },
  },
  lb_policy: "CLUSTER_PROVIDED",
};

test("a dynamic forward proxy resolves each authority once, within its bounds", async () => {
  const asked: string[] = [];
  const lookup = (name: string): Promise<DnsAnswer> => {
    asked.push(name);
    return name === "bad" ? Promise.reject(new Error("not found")) : Promise.resolve({ addresses: ["10.0.0.7"] });
  };
  const { cluster } = accepted(compile(dynamic, { lookup }));
  const resolve = async (authority: string) => (await cluster.resolveAuthority?.(authority))?.addressText;
  assert.equal(await resolve("a.com"), "10.0.0.7:80");
  assert.equal(await resolve("A.com:80"), "10.0.0.7:80");
  assert.equal(await resolve("127.0.0.1:8080"), "127.0.0.1:8080");
  assert.equal(await resolve("[::1]:8080"), "[::1]:8080");
  assert.equal(await resolve("bad"), undefined);
  for (const authority of ["", "a b", "user@host", "host:0", "host:99999", "host/path"]) {
    assert.equal(await resolve(authority), undefined, authority);
  }
  assert.deepEqual(asked, ["a.com", "bad"]);
  assert.ok(cluster.hosts.length <= 2);
});

function healthCheck(more: object): object {
  return { timeout: "1s", interval: "1s", unhealthy_threshold: 1, healthy_threshold: 1, ...more };
}

const refused: readonly { readonly name: string; readonly json: object; readonly expected: readonly string[] }[] = [
  {
    name: "ORIGINAL_DST with a policy of another type",
    json: { type: "ORIGINAL_DST" },
    expected: ["lb_policy: only 'CLUSTER_PROVIDED' is allowed with cluster type 'ORIGINAL_DST'"],
  },
  {
    name: "an unknown factory",
    json: { cluster_type: { name: "envoy.clusters.redis" } },
    expected: [
      "cluster_type: Didn't find a registered cluster factory implementation for name: 'envoy.clusters.redis'",
    ],
  },
  {
    name: "a name where an address belongs",
    json: { load_assignment: assignment(endpoint("host.example")) },
    expected: [
      "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address: malformed IP address: host.example. Consider setting resolver_name or setting cluster type to 'STRICT_DNS' or 'LOGICAL_DNS'",
    ],
  },
  {
    name: "EDS without a source",
    json: { type: "EDS" },
    expected: ["eds_cluster_config: cannot create an EDS cluster without an EDS config"],
  },
  {
    name: "EDS from a file",
    json: { type: "EDS", eds_cluster_config: { eds_config: { path_config_source: { path: "/x" } } } },
    expected: ["eds_cluster_config.eds_config: only ads and self are supported"],
  },
  {
    name: "a hashing balancer",
    json: { lb_policy: "RING_HASH" },
    expected: ["lb_policy: RING_HASH is not supported"],
  },
  {
    name: "TLS",
    json: { transport_socket: { name: "envoy.transport_sockets.tls" } },
    expected: ["transport_socket: 'envoy.transport_sockets.tls' is not supported"],
  },
  {
    name: "health checks without what they need",
    json: { health_checks: [{ no_traffic_interval: "0s" }] },
    expected: [
      "health_checks[0].timeout: value is required",
      "health_checks[0].interval: value is required",
      "health_checks[0].no_traffic_interval: value must be greater than 0s",
      "health_checks[0].unhealthy_threshold: value is required",
      "health_checks[0].healthy_threshold: value is required",
      "health_checks[0].health_checker: value is required",
    ],
  },
  {
    name: "two health checks",
    json: { health_checks: [healthCheck({ tcp_health_check: {} }), healthCheck({ tcp_health_check: {} })] },
    expected: ["health_checks: Multiple health checks not supported"],
  },
  {
    name: "a health check of HTTP that cannot be sent, nor come true",
    json: {
      health_checks: [
        healthCheck({
          http_health_check: {
            path: "/a b\n",
            method: "HEAD",
            send: { text: "00" },
            receive: [{ text: "0g" }, { text: "" }, { binary: "AAAA" }],
            response_buffer_size: 2,
            expected_statuses: [{ start: 200, end: 200 }],
            retriable_statuses: [
              { start: 99, end: 200 },
              { start: 500, end: 601 },
            ],
            codec_client_type: "HTTP3",
            request_headers_to_add: [{ header: { key: ":path", value: "/" } }],
          },
        }),
      ],
    },
    expected: [
      "health_checks[0].http_health_check.send: HTTP health check cannot specify a request payload with method 'HEAD'",
      "health_checks[0].http_health_check.codec_client_type: HTTP/3 is not supported",
      "health_checks[0].http_health_check.expected_statuses[0]: Invalid http expected status range: expecting start < end, but found start=200 and end=200",
      "health_checks[0].http_health_check.receive[0].text: invalid hex string '0g'",
      "health_checks[0].http_health_check.receive[1]: value is required",
      "health_checks[0].http_health_check.receive: The expected response length '3' is over than http health response buffer size '2'",
      "health_checks[0].http_health_check.path: control characters are not allowed",
      "health_checks[0].http_health_check.retriable_statuses[0]: Invalid http retriable status range: expecting start >= 100, but found start=99",
      "health_checks[0].http_health_check.retriable_statuses[1]: Invalid http retriable status range: expecting end <= 600, but found end=601",
      "health_checks[0].http_health_check.request_headers_to_add[0]: :-prefixed or host headers may not be modified",
    ],
  },
  {
    name: "a health check of gRPC over HTTP/1.1",
    json: { health_checks: [healthCheck({ grpc_health_check: {} })] },
    expected: ["health_checks[0].grpc_health_check: cluster must support HTTP/2 for gRPC healthchecking"],
  },
  {
    name: "a health check of somebody's own, and one by the protocol of ALPN",
    json: {
      health_checks: [
        healthCheck({ custom_health_check: { name: "redis" } }),
        healthCheck({ http_health_check: { path: "/", use_alpn_protocol: true } }),
      ],
    },
    expected: [
      "health_checks[1].http_health_check.use_alpn_protocol: this field is not supported",
      "health_checks: Multiple health checks not supported",
      "health_checks[0].custom_health_check: is not supported",
    ],
  },
  {
    name: "LOGICAL_DNS with two endpoints",
    json: { type: "LOGICAL_DNS", load_assignment: assignment(endpoint("a"), endpoint("b")) },
    expected: [
      "load_assignment: LOGICAL_DNS clusters must have a single locality_lb_endpoint and a single lb_endpoint",
    ],
  },
  {
    name: "a priority beyond Envoy's",
    json: { load_assignment: { cluster_name: "c", endpoints: [{ priority: 129 }] } },
    expected: ["load_assignment.endpoints[0].priority: value must be less than or equal to 128"],
  },
  {
    name: "pings without a time-out, or without a pause",
    json: { http2_protocol_options: { connection_keepalive: { interval: "0s" } } },
    expected: [
      "http2_protocol_options.connection_keepalive.timeout: value is required",
      "http2_protocol_options.connection_keepalive.interval: value must be greater than or equal to 1ms",
    ],
  },
];

for (const { name, json, expected } of refused) {
  test(`refused: ${name}`, () => assert.deepEqual(problemsOf(compile(json)), expected));
}
