/** The configuration of the mesh: what is read, refused and pointed out, and which of several ConfigMaps counts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import { loadText } from "../load/load.ts";
import { analyze } from "../analyzers/analyze.ts";
import { meshConfigOf, providerHost, readMeshConfig } from "./mesh-config.ts";

const http = { service: "a.b.svc.cluster.local", port: 80 };
const providers = (...all: readonly object[]): string => stringify({ extensionProviders: all });

const texts: readonly { readonly name: string; readonly text: string; readonly expected: readonly string[] }[] = [
  { name: "nothing", text: "", expected: [] },
  {
    name: "every field of the authorizers",
    text: providers(
      {
        name: "a",
        envoyExtAuthzHttp: {
          ...http,
          timeout: "1s",
          pathPrefix: "/check",
          failOpen: true,
          clearRouteCache: true,
          statusOnError: "503",
          includeRequestHeadersInCheck: ["x-*"],
          includeHeadersInCheck: ["x"],
          includeAdditionalHeadersInCheck: { a: "b" },
          includeRequestBodyInCheck: { maxRequestBytes: 1, allowPartialMessage: true, packAsBytes: true },
          headersToUpstreamOnAllow: ["a"],
          headersToDownstreamOnDeny: ["a"],
          headersToDownstreamOnAllow: ["a"],
        },
      },
      { name: "b", envoyExtAuthzGrpc: { ...http, timeout: "0s", failOpen: false, statusOnError: "403" } },
    ),
    expected: [],
  },
  ...["DEFAULT", "NONE", "BASE", "MERGE_SLASHES", "DECODE_AND_MERGE_SLASHES"].map((normalization) => ({
    name: `paths: ${normalization}`,
    text: stringify({ pathNormalization: { normalization } }),
    expected: [],
  })),
  ...["ALLOW_ANY", "REGISTRY_ONLY"].map((mode) => ({
    name: `hosts outside: ${mode}`,
    text: stringify({ outboundTrafficPolicy: { mode } }),
    expected: [],
  })),
  {
    name: "fields by their names in the message, and a path without a slash, as on Istio's pages",
    text: "extension_providers:\n- name: a\n  opentelemetry: { service: a.b, port: 80, http: { path: v1/traces }, resource_detectors: { environment: {} }, dynatrace_sampler: { cluster_id: 1 } }",
    expected: ["TUL0001 warning extensionProviders[0].opentelemetry.dynatraceSampler"],
  },
  {
    name: "paths that are none",
    text: providers(
      { name: "a", opentelemetry: { ...http, http: { path: "/a b" } } },
      { name: "b", zipkin: { ...http, path: "a#b" } },
    ),
    expected: [
      "IST0106 error extensionProviders[0].opentelemetry.http.path",
      "IST0106 error extensionProviders[1].zipkin.path",
    ],
  },
  { name: "no YAML", text: "a: [", expected: ["IST0106 error "] },
  { name: "no mapping", text: "- a", expected: ["IST0106 error "] },
  { name: "a field that nobody knows", text: "pathNormalisation: {}", expected: ["IST0106 warning pathNormalisation"] },
  {
    name: "fields of Istio's without effect",
    text: "defaultConfig: { a: 1 }\ntrustDomain: x",
    expected: ["defaultConfig.a", "trustDomain"].map((name) => `TUL0001 warning ${name}`),
  },
  {
    name: "the environment of proxies",
    text: "defaultConfig: { proxyMetadata: { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://a:4317', ISTIO_META_A: b } }",
    expected: ["TUL0001 warning defaultConfig.proxyMetadata.ISTIO_META_A"],
  },
  {
    name: "where metrics cannot go, and how often they cannot",
    text: "defaultConfig: { proxyMetadata: { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://a', OTEL_METRIC_EXPORT_INTERVAL: never } }",
    expected: Array.from({ length: 2 }, () => "IST0106 error defaultConfig.proxyMetadata"),
  },
  {
    name: "whom resources are exported to",
    text: "defaultVirtualServiceExportTo: ['.']\ndefaultServiceExportTo: [a, '*']\ndefaultDestinationRuleExportTo: ['A b']",
    expected: ["IST0106 error defaultDestinationRuleExportTo[0]"],
  },
  {
    name: "what narrows and is not honoured",
    text: "rootNamespace: config\ndiscoverySelectors: [{ matchLabels: { a: b } }]",
    expected: ["TUL0001 error rootNamespace", "TUL0001 error discoverySelectors"],
  },
  {
    name: "the same as without",
    text: "rootNamespace: istio-system\ndiscoverySelectors: []",
    expected: [],
  },
  {
    name: "other providers",
    text: providers({ name: "z", skywalking: { service: "z", port: 1 } }),
    expected: ["TUL0001 warning extensionProviders[0].skywalking"],
  },
  {
    name: "an authorizer of two kinds, and one of none",
    text: providers({ name: "a", envoyExtAuthzHttp: http, envoyExtAuthzGrpc: http }, { name: "b" }),
    expected: ["IST0106 error extensionProviders[0].envoyExtAuthzGrpc", "IST0106 error extensionProviders[1]"],
  },
  {
    name: "one name twice",
    text: providers({ name: "a", envoyExtAuthzHttp: http }, { name: "a", envoyExtAuthzHttp: http }),
    expected: ["IST0106 error extensionProviders[1].name"],
  },
  {
    name: "values that cannot be",
    text: providers({
      name: "a",
      envoyExtAuthzHttp: { service: "", port: 0, timeout: "soon", pathPrefix: "check", statusOnError: "maybe" },
    }),
    expected: ["service", "port", "timeout", "statusOnError", "pathPrefix"].map(
      (name) => `IST0106 error extensionProviders[0].envoyExtAuthzHttp.${name}`,
    ),
  },
];
for (const { name, text, expected } of texts) {
  test(`mesh configuration: ${name}`, () => {
    const { config, problems } = readMeshConfig(text);
    const told = problems.map(({ code, severity, path }) => {
      const steps = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("");
      return `${code} ${severity} ${steps.replace(/^\./, "")}`;
    });
    assert.deepEqual(told.sort(), [...expected].sort());
    assert.equal(
      config === undefined,
      expected.some((each) => each.includes("error")),
    );
  });
}

const configMap = (namespace: string, name: string, mesh: string): string =>
  stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data: { mesh } });
const merging = "pathNormalization: { normalization: MERGE_SLASHES }";

const maps: readonly {
  readonly name: string;
  readonly maps: readonly string[];
  readonly expected: string | undefined;
}[] = [
  { name: "none", maps: [], expected: undefined },
  { name: "Istio's", maps: [configMap("istio-system", "istio", merging)], expected: "MERGE_SLASHES" },
  {
    name: "our own before Istio's",
    maps: [configMap("istio-system", "istio", merging), configMap("tulle-system", "tulle", "{}")],
    expected: undefined,
  },
  { name: "of another namespace", maps: [configMap("shop", "tulle", merging)], expected: undefined },
  { name: "of another name", maps: [configMap("tulle-system", "other", merging)], expected: undefined },
];
for (const { name, maps: given, expected } of maps) {
  test(`the ConfigMap that counts: ${name}`, () => {
    const resources = loadText(given.join("\n---\n"), "a.yaml").resources.filter((each) => each.kind === "ConfigMap");
    assert.equal(meshConfigOf(resources).pathNormalization?.normalization, expected);
  });
}

test("a ConfigMap with a bad configuration is refused at its place; one of an application may hold anything", () => {
  const { resources, findings } = loadText(
    [configMap("tulle-system", "tulle", "extensionProviders: 1"), configMap("shop", "tulle", "anything: 1")].join(
      "\n---\n",
    ),
    "a.yaml",
  );
  assert.deepEqual(
    resources.map(({ metadata }) => metadata.namespace),
    ["shop"],
  );
  assert.deepEqual(
    findings.map(({ code, path, message }) => [code, path, message.split(":")[0]]),
    [["IST0106", "data.mesh", "mesh"]],
  );
});

test("findings: a provider that nobody knows, a Service that is not there, a second configuration", () => {
  const policy = stringify({
    apiVersion: "security.istio.io/v1",
    kind: "AuthorizationPolicy",
    metadata: { name: "asks", namespace: "b" },
    spec: { action: "CUSTOM", provider: { name: "authoriser" }, rules: [{}] },
  });
  const service = stringify({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "a", namespace: "b" },
    spec: { ports: [{ port: 80, name: "http" }] },
  });
  const config = providers(
    { name: "authorizer", envoyExtAuthzHttp: http },
    { name: "port", envoyExtAuthzHttp: { ...http, port: 81 } },
    { name: "host", envoyExtAuthzGrpc: { ...http, service: "a" } },
  );
  const text = [configMap("tulle-system", "tulle", config), configMap("istio-system", "istio", "{}"), policy, service];
  const told = analyze(loadText(text.join("\n---\n"), "a.yaml").resources)
    .filter(({ code }) => code === "IST0101" || code === "IST0133")
    .map(({ code, resource, path, suggestion }) => [code, resource?.kind, path, suggestion]);
  assert.deepEqual(told, [
    ["IST0101", "AuthorizationPolicy", "spec.provider.name", 'Did you mean "authorizer"?'],
    ["IST0133", "ConfigMap", "data.mesh", undefined],
    ...[1, 2].map(() => [
      "IST0101",
      "ConfigMap",
      "data.mesh",
      "Its host is written in full: <name>.<namespace>.svc.cluster.local.",
    ]),
  ]);
});

test("a provider's namespace may stand before its host", () => {
  assert.equal(providerHost("shop/a.Shop.svc.cluster.local"), "a.shop.svc.cluster.local");
  assert.equal(providerHost("a.shop.svc.cluster.local"), "a.shop.svc.cluster.local");
});
