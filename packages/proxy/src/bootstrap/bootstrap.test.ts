// Bootstrap documents: what is read from them, and what refuses a start, with its place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accepted, problemsOf } from "../hand-built/from-configuration.ts";
import { validateBootstrap } from "../subscribe/validate-bootstrap.ts";
import { compileBootstrap } from "./compile-bootstrap.ts";
import { BootstrapError, parseBootstrap, readBootstrap } from "./read-bootstrap.ts";

const ads = `
dynamic_resources:
  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  cds_config: {ads: {}, initial_fetch_timeout: 2s}
  lds_config: {ads: {}}
`;
const xds = (address: string): string => `
static_resources:
  clusters:
  - name: xds
    load_assignment: {cluster_name: xds, endpoints: [{lb_endpoints: [{endpoint: {address: ${address}}}]}]}
`;

for (const { name, text, expected } of [
  { name: "nothing but a node", text: "node: {id: n, cluster: c}", expected: undefined },
  {
    name: "a Unix socket",
    text: ads + xds("{pipe: {path: /run/xds.sock}}"),
    expected: {
      target: "unix:/run/xds.sock",
      clusterName: "xds",
      subscribesClusters: true,
      subscribesListeners: true,
      initialFetchTimeoutMs: 2000,
    },
  },
  {
    name: "a name and a port, and only clusters",
    text: ads.replace(/ {2}lds.*\n/, "") + xds("{socket_address: {address: istiod, port_value: 15010}}"),
    expected: {
      target: "http://istiod:15010",
      clusterName: "xds",
      subscribesClusters: true,
      subscribesListeners: false,
      initialFetchTimeoutMs: 2000,
    },
  },
]) {
  test(`dynamic resources: ${name}`, () => {
    assert.deepEqual(accepted(compileBootstrap(parseBootstrap(text, "b.yaml"))).dynamic, expected);
  });
}

test("JSON is read too, and the rest is taken apart", () => {
  const json = {
    node: { id: "n" },
    admin: { address: { socket_address: { address: "127.1.0.5", port_value: 15000 } } },
    cluster_manager: { upstream_bind_config: { source_address: { address: "127.1.0.5", port_value: 0 } } },
    layered_runtime: { layers: [{ name: "l", static_layer: {} }] },
  };
  const result = compileBootstrap(parseBootstrap(JSON.stringify(json), "b.json"));
  const { adminAddress, sourceAddress } = accepted(result);
  assert.deepEqual(
    { adminAddress, sourceAddress },
    { adminAddress: { ip: "127.1.0.5", port: 15_000 }, sourceAddress: "127.1.0.5" },
  );
  assert.deepEqual(problemsOf(result), ["layered_runtime: ignored: no runtime key is read"]);
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
    name: "resources from files",
    text: "dynamic_resources: {cds_config: {path_config_source: {path: /x}}}",
    expected:
      "dynamic_resources.cds_config: only the aggregated stream (ads) is supported\ndynamic_resources.ads_config: is required by cds_config and lds_config",
  },
  {
    name: "extensions that act on traffic",
    text: "hds_config: {api_type: GRPC}",
    expected: "hds_config: this field is not supported",
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
