// The environment of an agent: what it means, and what is refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSettings } from "./settings.ts";

const complete = {
  POD_NAME: "catalog-v1-abc-xyz",
  POD_NAMESPACE: "shop",
  INSTANCE_IP: "127.1.0.5",
  TULLE_XDS_ADDRESS: "127.0.0.1:15010",
  TULLE_STATE_DIR: "/tmp/pod",
};

test("five variables are enough", () => {
  assert.deepEqual(parseSettings(complete), {
    ok: true,
    settings: {
      proxyType: "sidecar",
      dataPlane: "tulle",
      podName: "catalog-v1-abc-xyz",
      podNamespace: "shop",
      podAddress: "127.1.0.5",
      serviceAccount: "default",
      metadata: {},
      metricExport: undefined,
      metricExportProblems: [],
      applicationMetrics: undefined,
      applicationProbes: new Map(),
      controlPlane: "http://127.0.0.1:15010",
      identity: undefined,
      stateFolder: "/tmp/pod",
      envoyCommand: "envoy",
      concurrency: 1,
      logLevel: "info",
      drainMs: 5000,
      minimumDrainMs: 5000,
      endHoldMs: 5000,
      endHoldMostMs: 15_000,
      isMachine: false,
      listenerDrainMs: 45_000,
      memoryLimitBytes: 0,
      dnsAddresses: [],
      resolverFile: "/etc/resolv.conf",
      clusterDomain: "cluster.local",
      ownDomains: [],
      ownUserPorts: new Set(),
      ownUserRange: undefined,
    },
  });
});

test("with the mesh's roots the workload has an identity, and the control plane is reached over TLS", () => {
  const parsed = parseSettings({
    ...complete,
    SERVICE_ACCOUNT: "catalog",
    TULLE_XDS_ADDRESS: "127.0.0.1:15012",
    TULLE_CA_ROOT_FILE: "/mesh/root-cert.pem",
    TULLE_TOKEN_FILE: "/tmp/pod/token",
  });
  assert.ok(parsed.ok);
  assert.equal(parsed.settings.controlPlane, "https://127.0.0.1:15012");
  assert.deepEqual(parsed.settings.identity, {
    rootsFile: "/mesh/root-cert.pem",
    tokenFile: "/tmp/pod/token",
    spiffeId: { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "catalog" },
  });
});

const refusals = [
  {
    name: "nothing at all",
    env: {},
    expected: [/POD_NAME is not set/, /POD_NAMESPACE/, /INSTANCE_IP/, /TULLE_XDS_ADDRESS/, /TULLE_STATE_DIR/],
  },
  { name: "an unknown data plane", env: { ...complete, TULLE_PROXY: "nginx" }, expected: [/not tulle or envoy/] },
  { name: "a text for a number", env: { ...complete, TULLE_CONCURRENCY: "two" }, expected: [/TULLE_CONCURRENCY/] },
  { name: "broken metadata", env: { ...complete, TULLE_NODE_METADATA: "[1" }, expected: [/no JSON object/] },
  {
    name: "annotations of null",
    env: { ...complete, ISTIO_PROMETHEUS_ANNOTATIONS: "null" },
    expected: [/no JSON object/],
  },
  { name: "an address without port", env: { ...complete, TULLE_XDS_ADDRESS: "host" }, expected: [/not host:port/] },
  {
    name: "names that make no identity",
    env: { ...complete, TULLE_CA_ROOT_FILE: "/r", TRUST_DOMAIN: "Not A Domain" },
    expected: [/make no identity: Not A Domain, shop, default/],
  },
  {
    name: "a range without bits",
    env: { ...complete, TULLE_OWN_USER_RANGE: "127.16.4.0" },
    expected: [/not a.b.c.d\/bits/],
  },
  { name: "a wrong level", env: { ...complete, TULLE_PROXY_LOG_LEVEL: "loud" }, expected: [/no log level/] },
];

for (const { name, env, expected } of refusals) {
  test(`refuses ${name}`, () => {
    const parsed = parseSettings(env);
    assert.ok(!parsed.ok);
    assert.equal(parsed.problems.length, expected.length, parsed.problems.join("\n"));
    for (const [index, pattern] of expected.entries()) assert.match(parsed.problems[index]!, pattern);
  });
}

const dnsAddresses: readonly (readonly [text: string, addresses: readonly string[] | undefined])[] = [
  ["localhost:15053", ["127.0.0.1 15053", "::1 15053"]],
  ["127.0.0.1:53", ["127.0.0.1 53"]],
  ["[::1]:53", ["::1 53"]],
  ["15053", undefined],
  ["elsewhere:53", undefined],
  ["127.0.0.1:0", undefined],
];
for (const [text, expected] of dnsAddresses) {
  test(`DNS_PROXY_ADDR ${text}: ${expected?.join(", ") ?? "a problem"}`, () => {
    const parsed = parseSettings({ ...complete, DNS_PROXY_ADDR: text });
    const addresses = parsed.ok
      ? parsed.settings.dnsAddresses.map(({ address, port }) => `${address} ${port}`)
      : undefined;
    assert.deepEqual(addresses, expected);
  });
}
