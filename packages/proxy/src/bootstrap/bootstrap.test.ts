// Bootstrap documents: what is read from them, and what refuses a start, with its place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { problemText } from "../fields/problems.ts";
import { validateBootstrap } from "./validate-bootstrap.ts";
import { compileBootstrap } from "./compile-bootstrap.ts";
import { BootstrapError, parseBootstrap, readBootstrap } from "./read-bootstrap.ts";

const node = "node: {id: n, cluster: c}\n";
const ads = `${node}
dynamic_resources:
  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  cds_config: {ads: {}, initial_fetch_timeout: 2s}
  lds_config: {ads: {}}
`;
const google = (fields: string): string => `${node}
dynamic_resources:
  ads_config: {api_type: GRPC, grpc_services: [{google_grpc: {stat_prefix: x, ${fields}}}]}
  cds_config: {ads: {}}
`;
const xds = (address: string): string => `
static_resources:
  clusters:
  - name: xds
    load_assignment: {cluster_name: xds, endpoints: [{lb_endpoints: [{endpoint: {address: ${address}}}]}]}
`;

const target = { clusterName: "xds", authority: "xds", metadata: [], maxMessageBytes: undefined };
for (const { name, text, expected } of [
  { name: "nothing but a node", text: node, expected: undefined },
  {
    name: "a Unix socket",
    text: ads + xds("{pipe: {path: /run/xds.sock}}"),
    expected: {
      target,
      rateLimit: undefined,
      subscribesClusters: true,
      subscribesListeners: true,
      clustersTimeoutMs: 2000,
      listenersTimeoutMs: 15_000,
    },
  },
  {
    name: "only clusters, and a limit of requests",
    text:
      ads.replace(/ {2}lds.*\n/, "").replace("V3,", "V3, rate_limit_settings: {fill_rate: 0.5},") +
      xds("{socket_address: {address: 127.0.0.1, port_value: 15010}}"),
    expected: {
      target,
      rateLimit: { maxTokens: 100, perSecond: 0.5 },
      subscribesClusters: true,
      subscribesListeners: false,
      clustersTimeoutMs: 2000,
      listenersTimeoutMs: 15_000,
    },
  },
]) {
  test(`dynamic resources: ${name}`, () => {
    const { bootstrap, problems } = compileBootstrap(parseBootstrap(text, "b.yaml"));
    assert.deepEqual(problems, []);
    assert.deepEqual(bootstrap.dynamic, expected);
  });
}

test("JSON is read too, and the rest is taken apart", () => {
  const json = {
    node: { id: "n" },
    admin: { address: { socket_address: { address: "127.1.0.5", port_value: 15000 } } },
    cluster_manager: { upstream_bind_config: { source_address: { address: "127.1.0.5", port_value: 0 } } },
    layered_runtime: { layers: [{ name: "l", static_layer: {} }] },
  };
  const { bootstrap, problems } = compileBootstrap(parseBootstrap(JSON.stringify(json), "b.json"));
  const { adminAddress, sourceAddress } = bootstrap;
  assert.deepEqual(
    { adminAddress, sourceAddress },
    { adminAddress: { ip: "127.1.0.5", port: 15_000 }, sourceAddress: "127.1.0.5" },
  );
  assert.deepEqual(problems.map(problemText), ["layered_runtime: ignored: no runtime key is read"]);
});

for (const { name, text, expected } of [
  {
    name: "an unknown field, with its place and the nearest name",
    text: "node: {id: n}\nadmin:\n  adress: {}\n",
    expected:
      /^b\.yaml:3:3: admin\.adress: unknown field in envoy\.config\.bootstrap\.v3\.Admin; did you mean "address"\?$/,
  },
  { name: "no YAML", text: "node: {id: n", expected: /^b\.yaml:1:\d+: / },
]) {
  test(`not read: ${name}`, () => {
    assert.throws(
      () => parseBootstrap(text, "b.yaml"),
      (error) => error instanceof BootstrapError && expected.test(error.message),
    );
  });
}

test("a file that is not there is named", async () => {
  await assert.rejects(readBootstrap("/nowhere/b.yaml"), {
    name: "BootstrapError",
    message: /^there is no file \/nowhere\/b\.yaml$/,
  });
});

const sinkType = "type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig";
for (const { name, text, expected } of [
  {
    name: "an admin interface for everybody",
    text: "admin: {address: {socket_address: {address: 0.0.0.0, port_value: 9901}}}",
    expected:
      "admin.address: 0.0.0.0 opens the admin interface to every network; use 127.0.0.1 or the pod's own address",
  },
  {
    name: "a stream that leads nowhere",
    text: ads,
    expected: "dynamic_resources.ads_config.grpc_services[0].envoy_grpc.cluster_name: unknown static cluster 'xds'",
  },
  {
    name: "a directory to be watched that is not there, as by Envoy",
    text: `static_resources: {clusters: [{name: a, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {tls_certificate_sds_secret_configs: [{name: c, sds_config: {resource_api_version: V3, path_config_source: {path: ${import.meta.filename}, watched_directory: {path: /nowhere}}}}]}}}}]}`,
    expected:
      "static_resources.clusters[0].transport_socket.typed_config.common_tls_context.tls_certificate_sds_secret_configs[0].sds_config.path_config_source.watched_directory.path: there is no directory /nowhere",
  },
  {
    name: "resources from files",
    text: "dynamic_resources: {cds_config: {path_config_source: {path: /x}}}",
    expected:
      "dynamic_resources.cds_config: files are not supported; write ads: {}, or the resources into static_resources",
  },
  {
    name: "streams of their own for clusters and listeners, as of Contour",
    text: `dynamic_resources: {cds_config: {api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: a}}]}}}`,
    expected:
      "dynamic_resources.cds_config.api_config_source: only the aggregated stream is supported; write ads: {} here, and the server into dynamic_resources.ads_config if it serves that stream",
  },
  ...["DELTA_GRPC", "AGGREGATED_DELTA_GRPC"].map((type) => ({
    name: `${type}, as of Consul, Istio and Envoy Gateway`,
    text: `${ads.replace("api_type: GRPC", `api_type: ${type}`)}${xds("{pipe: {path: /x}}")}`,
    expected: `dynamic_resources.ads_config.api_type: incremental xDS (${type}) is not supported yet; write GRPC, if the server serves whole states too`,
  })),
  {
    name: "REST",
    text: `${ads.replace("api_type: GRPC", "api_type: REST")}${xds("{pipe: {path: /x}}")}`,
    expected: "dynamic_resources.ads_config.api_type: REST is not supported; write GRPC",
  },
  ...[
    ["xds:///a", "'xds:' is not supported; use host:port, dns:///host:port, ipv4:, ipv6: or unix:"],
    ["dns://8.8.8.8/a:1", "a DNS server of its own is not supported; leave it out: dns:///host:port"],
    ["ipv4:a:1", "addresses with ports are required: ipv4:192.0.2.1:18000"],
    ["a:0", "expected host:port, dns:///host:port, ipv4:, ipv6: or unix:"],
  ].map(([uri, words]) => ({
    name: `google_grpc at ${uri}`,
    text: google(`target_uri: "${uri}"`),
    expected: `dynamic_resources.ads_config.grpc_services[0].google_grpc.target_uri: ${words}`,
  })),
  {
    name: "credentials that cannot be had",
    text: google(`target_uri: "a:1", channel_credentials: {google_default: {}}`),
    expected:
      "dynamic_resources.ads_config.grpc_services[0].google_grpc.channel_credentials.google_default: is not supported; use ssl_credentials",
  },
  {
    name: "local credentials for another machine",
    text: google(`target_uri: "ipv4:192.0.2.1:1", channel_credentials: {local_credentials: {}}`),
    expected:
      "dynamic_resources.ads_config.grpc_services[0].google_grpc.channel_credentials.local_credentials: need a Unix socket or a loopback address",
  },
  {
    name: "a token in the clear",
    text: google(`target_uri: "a:1", call_credentials: [{access_token: x}]`),
    expected:
      "dynamic_resources.ads_config.grpc_services[0].google_grpc.call_credentials[0]: a token needs ssl_credentials: it would be sent in the clear",
  },
  {
    name: "options of the channel, which may change who is believed",
    text: google(`target_uri: "a:1", channel_args: {args: {grpc.ssl_target_name_override: {string_value: b}}}`),
    expected: "dynamic_resources.ads_config.grpc_services[0].google_grpc.channel_args: this field is not supported",
  },
  {
    name: "metadata that cannot be sent",
    text:
      ads.replace(
        "cluster_name: xds}",
        "cluster_name: xds}, initial_metadata: [{key: te, value: x}, {key: a, value: '%REQ(b)%'}]",
      ) + xds("{pipe: {path: /x}}"),
    expected:
      "dynamic_resources.ads_config.grpc_services[0].initial_metadata[0].key: 'te' cannot be the name of metadata\ndynamic_resources.ads_config.grpc_services[0].initial_metadata[1].value: command operators (%…%) are not supported here; a percent sign is written %%",
  },
  {
    name: "a stream without a node",
    text: ads.replace(node, "") + xds("{pipe: {path: /x}}"),
    expected:
      "node: id and cluster are required by ads_config: set them in 'node', or by --service-node and --service-cluster",
  },
  {
    name: "a transport that is not built",
    text: ads + xds("{pipe: {path: /x}}") + "    transport_socket: {name: envoy.transport_sockets.starttls}\n",
    expected: "static_resources.clusters[0].transport_socket: 'envoy.transport_sockets.starttls' is not supported",
  },
  {
    name: "extensions that act on traffic",
    text: "hds_config: {api_type: GRPC}",
    expected: "hds_config: this field is not supported",
  },
  {
    name: "metrics for a cluster that is not there",
    text: `stats_sinks: [{name: s, typed_config: {"@type": ${sinkType}, grpc_service: {envoy_grpc: {cluster_name: c}}}}]`,
    expected: "stats_sinks[0].typed_config: unknown static cluster 'c'",
  },
  {
    name: "metrics that lead nowhere, renamed, from nobody known",
    text: `stats_sinks: [{name: s, typed_config: {"@type": ${sinkType}, custom_metric_conversions: {}, resource_detectors: [{name: d}]}}]`,
    expected: `stats_sinks[0].typed_config.custom_metric_conversions: is not supported; the collector can rename metrics
stats_sinks[0].typed_config: a grpc_service or an http_service is required: metrics would lead nowhere
stats_sinks[0].typed_config.resource_detectors[0]: resource detector 'd' is not supported`,
  },
  {
    name: "an interval that is none",
    text: "stats_flush_interval: 300s",
    expected: "stats_flush_interval: value must be inside range [1ms, 5m)",
  },
  {
    name: "a bad static cluster",
    text: "static_resources: {clusters: [{name: a}, {name: b, lb_policy: MAGLEV}]}",
    expected: "static_resources.clusters[1].lb_policy: MAGLEV is not supported",
  },
  {
    name: "a static listener without chains",
    text: "static_resources: {listeners: [{name: l, address: {socket_address: {address: 127.0.0.1, port_value: 1}}}]}",
    expected: "static_resources.listeners[0]: error adding listener 'l': no filter chains specified",
  },
]) {
  test(`refused: ${name}`, () => {
    assert.throws(() => validateBootstrap(parseBootstrap(text, "b.yaml")), {
      name: "BootstrapError",
      message: expected,
    });
  });
}

test("everything that is wrong is told at once, but for what a misspelt field may be the cause of", () => {
  const text = `${ads.replace("envoy_grpc", "envoi_grpc")}
static_resources:
  clusters:
  - {name: a, lb_policy: MAGLEV, connect_timout: 1s}
  - {name: b, lb_policy: MAGLEV, connect_timeout: fast}
  - {name: c, lb_policy: MAGLEV}
`;
  assert.throws(
    () => parseBootstrap(text, "b.yaml"),
    (error) => {
      assert.ok(error instanceof BootstrapError);
      assert.deepEqual(
        error.lines.map((line) => /^b\.yaml:(\d*).*?([a-z]+_[a-z]+): /.exec(line)?.slice(1)),
        [
          ["4", "envoi_grpc"],
          ["10", "connect_timout"],
          ["11", "connect_timeout"],
          ["", "lb_policy"],
        ],
      );
      return true;
    },
  );
});

test("no problem is told twice, and what is ignored is told", () => {
  const text =
    "static_resources: {clusters: [{name: a, close_connections_on_host_health_failure: true}]}\nlayered_runtime: {}\n";
  assert.deepEqual(validateBootstrap(parseBootstrap(text, "b.yaml")), [
    "layered_runtime: ignored: no runtime key is read",
    "static_resources.clusters[0].close_connections_on_host_health_failure: ignored: connections of HTTP end after their requests, those of TCP go on",
  ]);
});

test("extensions that are not known do no harm where nothing is read, and are one error where they are", () => {
  const unknown = `name: x, typed_config: {"@type": type.googleapis.com/some.Sink, address: {a: 1}}`;
  const ignored = `stats_sinks: [{${unknown}}]\ndefault_regex_engine: {${unknown}}\n`;
  assert.deepEqual(validateBootstrap(parseBootstrap(ignored, "b.yaml")), [
    "stats_sinks[0]: ignored: the sink 'x' is not built; envoy.stat_sinks.open_telemetry is",
  ]);
  const cluster = `static_resources: {clusters: [{name: a, transport_socket: {${unknown}}}]}`;
  assert.throws(
    () => parseBootstrap(ignored + cluster, "b.yaml"),
    ({ lines }: BootstrapError) => {
      assert.equal(lines.length, 1);
      assert.match(lines[0]!, /clusters\[0\]\.transport_socket\.typed_config\.@type: unknown type "some\.Sink"/);
      return true;
    },
  );
});

test("names from the command line make a node where there is none", () => {
  const names = { serviceNode: "a", serviceCluster: "b", serviceZone: "z" };
  const { node: made } = parseBootstrap(ads.replace(node, "") + xds("{pipe: {path: /x}}"), "b.yaml", names);
  assert.deepEqual([made?.id, made?.cluster, made?.locality?.zone], ["a", "b", "z"]);
});
