// What of a pod's annotation is taken, and what is told of.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ProxyConfig, readProxyConfig } from "./proxy-config.ts";

/** Each problem is one for which a cluster's injector refuses the pod, too. */
const wrongAltogether = (config: ProxyConfig): ProxyConfig => ({ ...config, wrong: config.problems });

const cases = [
  { name: "no annotation", input: {}, expected: { problems: [] } },
  {
    name: "both durations",
    input: { "proxy.istio.io/config": "terminationDrainDuration: 10s\ndrainDuration: 1m30s\n" },
    expected: { terminationDrainMs: 10_000, drainMs: 90_000, problems: [] },
  },
  {
    name: "our spelling first, and JSON",
    input: {
      "proxy.istio.io/config": "terminationDrainDuration: 10s",
      "proxy.tulle.io/config": '{"terminationDrainDuration": "2s"}',
    },
    expected: { terminationDrainMs: 2000, problems: [] },
  },
  { name: "nothing in it", input: { "proxy.istio.io/config": "" }, expected: { problems: [] } },
  {
    name: "a number, which Istio refuses too",
    input: { "proxy.istio.io/config": "terminationDrainDuration: 10" },
    expected: wrongAltogether({
      problems: ["terminationDrainDuration of the annotation proxy.istio.io/config is no duration such as 10s"],
    }),
  },
  {
    name: "a field that is not built, beside one that is",
    input: { "proxy.istio.io/config": "concurrency: 2\ndrainDuration: 0s" },
    expected: { drainMs: 0, problems: ["concurrency of the annotation proxy.istio.io/config has no effect yet"] },
  },
  {
    name: "what stands before a gateway",
    input: { "proxy.istio.io/config": "gatewayTopology: { numTrustedProxies: 2, proxyProtocol: {} }" },
    expected: { gatewayTopology: { numTrustedProxies: 2, proxyProtocol: {} }, problems: [] },
  },
  {
    name: "something that cannot stand there",
    input: { "proxy.istio.io/config": "gatewayTopology: { numTrustedProxies: many }" },
    expected: wrongAltogether({
      problems: [
        'gatewayTopology.numTrustedProxies of the annotation proxy.istio.io/config: expected a whole number, found the text "many"',
      ],
    }),
  },
  {
    name: "a list",
    input: { "proxy.istio.io/config": "- 1" },
    expected: wrongAltogether({ problems: ["the annotation proxy.istio.io/config is not YAML of fields and values"] }),
  },
  {
    name: "broken YAML",
    input: { "proxy.istio.io/config": "{" },
    expected: wrongAltogether({ problems: ["the annotation proxy.istio.io/config is not YAML of fields and values"] }),
  },
];

for (const { name, input, expected } of cases) {
  test(name, () => assert.deepEqual(readProxyConfig(input), expected));
}

test("on a cluster more of the proxy can be chosen", () => {
  const config = `{ concurrency: 2, holdApplicationUntilProxyStarts: false, interceptionMode: TPROXY,
    proxyMetadata: { OTEL_SERVICE_NAME: a }, binaryPath: /x }`;
  assert.deepEqual(readProxyConfig({ "proxy.istio.io/config": config }, "kubernetes"), {
    concurrency: 2,
    holdApplicationUntilProxyStarts: false,
    interceptionMode: "TPROXY",
    proxyMetadata: { OTEL_SERVICE_NAME: "a" },
    problems: ["binaryPath of the annotation proxy.istio.io/config has no effect yet"],
  });
});

test("on a cluster what cannot be is wrong", () => {
  const config = "{ concurrency: many, interceptionMode: NONE, proxyMetadata: { A: 1 } }";
  const annotation = "of the annotation proxy.istio.io/config is not";
  assert.deepEqual(readProxyConfig({ "proxy.istio.io/config": config }, "kubernetes").wrong, [
    `concurrency ${annotation} a whole number from 0 to 256`,
    `interceptionMode ${annotation} REDIRECT or TPROXY`,
    `proxyMetadata ${annotation} names with a text each`,
  ]);
});

test("an annotation that would be work to read is not read", () => {
  const config = "[".repeat(100_000);
  assert.deepEqual(readProxyConfig({ "proxy.istio.io/config": config }).problems, [
    "the annotation proxy.istio.io/config has more than 16384 characters",
  ]);
});
