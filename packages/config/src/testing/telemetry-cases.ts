// What analyzers find about Telemetry resources and the providers that they name.
import { type AnalyzeCase, catalogWorkload, service } from "./analyzed-mesh.ts";

const telemetry = (spec: string, name = "telemetry", namespace = "shop"): string =>
  `---\napiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: { name: ${name}, namespace: ${namespace} }\nspec: ${spec}\n`;
const mesh = (text: string): string =>
  `---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: tulle, namespace: tulle-system }\ndata: { mesh: ${JSON.stringify(text)} }\n`;
const collector =
  "extensionProviders: [{ name: otel, opentelemetry: { service: otel.example.com, port: 4317 } }, { name: file, envoyFileAccessLog: {} }]";
const ofCatalog = "selector: { matchLabels: { app: catalog } }";

export const telemetryCases: readonly AnalyzeCase[] = [
  {
    name: "Telemetry that is right",
    input:
      catalogWorkload("") +
      mesh(collector) +
      telemetry(
        "{ tracing: [{ providers: [{ name: OTEL }] }], accessLogging: [{ filter: { expression: 'true' } }] }",
        "mesh",
        "tulle-system",
      ) +
      telemetry("{ metrics: [{ overrides: [{ tagOverrides: { a: { value: request.host } } }] }] }", "all") +
      telemetry(
        `{ ${ofCatalog}, accessLogging: [{ providers: [{ name: file }] }, { match: { mode: CLIENT }, disabled: true }] }`,
      ),
    expected: [],
  },
  {
    name: "IST0101, IST0157: providers that are not there, take nothing of the kind, or are not named",
    input:
      mesh(collector) +
      telemetry(
        "{ tracing: [{ providers: [{ name: otle }] }, { match: { mode: CLIENT } }], metrics: [{ providers: [{ name: otel }] }], accessLogging: [{ providers: [{ name: prometheus }] }] }",
      ) +
      telemetry("{ tracing: [{ randomSamplingPercentage: 5 }] }", "mesh", "istio-system"),
    expected: [
      `Error [IST0101] (Telemetry shop/telemetry) spec.tracing[0].providers[0].name: no extension provider of the mesh's configuration is called "otle": nothing goes there\n  Did you mean "otel"?`,
      `Warning [IST0157] (Telemetry shop/telemetry) spec.metrics[0].providers[0].name: the provider "otel" (opentelemetry) takes no metrics; those are prometheus`,
      `Warning [IST0157] (Telemetry shop/telemetry) spec.accessLogging[0].providers[0].name: the provider "prometheus" (prometheus) takes no accessLogging; those are envoyFileAccessLog, envoyOtelAls, envoyHttpAls, envoyTcpAls`,
      `Warning [IST0157] (Telemetry istio-system/mesh) spec.tracing[0]: no provider is named, and the mesh's configuration has none for tracing, so this has no effect where no Telemetry above names one\n  Name one under "providers", or under "defaultProviders" of the mesh's configuration.`,
    ],
  },
  {
    name: "IST0106: expressions and tags that no proxy takes",
    input:
      mesh("defaultProviders: { tracing: [otel] }\n" + collector) +
      telemetry(`
  tracing:
    - customTags:
        none: {}
        variable: { environment: {} }
        header: { header: { name: a b } }
        empty: { literal: { value: "" } }
        long: { literal: { value: ${"x".repeat(2000)} } }
        format: { formatter: { value: "%RESPONSE_COD%" } }
        log: { formatter: { value: "%REQ_WITHOUT_QUERY(:PATH)%" } }
  metrics:
    - overrides:
        - tagOverrides: { a: {}, b: { value: "a ==" }, c: { operation: REMOVE, value: a } }
  accessLogging:
    - filter: { expression: "response.code >= 400 &&" }
    - filter: { expression: "matchs(request.path, 'a')" }
    - filter: { expression: "respose.code >= 500" }
    - filter: { expression: "response.status >= 500" }
    - filter: { expression: "request.pth == '/' || source.adress != ''" }
    - filter: { expression: "nothing.it" }
    - filter: { expression: "['/a', '/b'].exists(p, p == request.path) && type(response.flags) == int" }
    - filter: { expression: "has(request.headers.x) && 'a' in metadata.filter_metadata && xds.node.id != ''" }`),
    expected: [
      'Error [IST0106] (Telemetry shop/telemetry) spec.tracing[0].customTags.none: the tag "none" does not say where its value comes from: literal, environment, header or formatter; it is left out',
      'Error [IST0106] (Telemetry shop/telemetry) spec.tracing[0].customTags.variable: the tag "variable" names no variable; it is left out',
      'Error [IST0106] (Telemetry shop/telemetry) spec.tracing[0].customTags.header: the tag "header" names no header: "a b" is not a header name; it is left out',
      'Error [IST0106] (Telemetry shop/telemetry) spec.tracing[0].customTags.empty: the tag "empty" has no value; it is left out',
      'Error [IST0106] (Telemetry shop/telemetry) spec.tracing[0].customTags.long: the tag "long" has a value of 2000 characters, the limit is 1024; it is left out',
      'Error [IST0106] (Telemetry shop/telemetry) spec.tracing[0].customTags.format: the tag "format" has no format: %RESPONSE_COD% is no operator; did you mean %RESPONSE_CODE%?; it is left out',
      'Error [IST0106] (Telemetry shop/telemetry) spec.tracing[0].customTags.log: the tag "log" has no format: REQ_WITHOUT_QUERY is for logs; it is left out',
      'Error [IST0106] (Telemetry shop/telemetry) spec.metrics[0].overrides[0].tagOverrides.a: the label "a" has no value; it stays as it is',
      "Error [IST0106] (Telemetry shop/telemetry) spec.metrics[0].overrides[0].tagOverrides.b.value: the expression has something that is not expected at position 4: the end; the label stays as it is",
      'Error [IST0106] (Telemetry shop/telemetry) spec.metrics[0].overrides[0].tagOverrides.c.value: the label "c" is removed, and has no value',
      "Error [IST0106] (Telemetry shop/telemetry) spec.accessLogging[0].filter.expression: the expression has something that is not expected at position 23: the end; the entry is left out",
      "Error [IST0106] (Telemetry shop/telemetry) spec.accessLogging[1].filter.expression: the expression calls matchs, which is no function; did you mean matches?; the entry is left out",
      "Error [IST0106] (Telemetry shop/telemetry) spec.accessLogging[2].filter.expression: the expression reads respose.code, which is no attribute; did you mean response.code?; the entry is left out",
      "Error [IST0106] (Telemetry shop/telemetry) spec.accessLogging[3].filter.expression: the expression reads response.status, which is no attribute; response has code, code_details, flags, grpc_status, headers, headers_bytes, trailers, size, total_size, backend_latency; the entry is left out",
      "Error [IST0106] (Telemetry shop/telemetry) spec.accessLogging[4].filter.expression: the expression reads request.pth, which is no attribute; did you mean request.path?; the entry is left out",
      "Error [IST0106] (Telemetry shop/telemetry) spec.accessLogging[5].filter.expression: the expression reads nothing.it, which is no attribute; the entry is left out",
    ],
  },
  {
    name: "IST0127, IST0159, IST0160: for nobody, and two for the same",
    input:
      catalogWorkload("") +
      telemetry("{ selector: { matchLabels: { app: none } } }", "nobody") +
      telemetry(`{ ${ofCatalog} }`, "misspelt", "shopp") +
      telemetry(`{ ${ofCatalog} }`, "alone", "elsewhere") +
      telemetry(
        "{ targetRefs: [{ kind: Service, name: catalog }, { group: gateway.networking.k8s.io, kind: Gateway, name: edge }] }",
        "targets",
      ) +
      telemetry("{ selector: { matchLabels: { version: v1 } } }", "v1") +
      telemetry(`{ ${ofCatalog} }`, "catalog") +
      telemetry("{}", "all") +
      telemetry("{}", "again") +
      telemetry("{}", "mesh", "istio-system") +
      telemetry("{}", "mesh", "tulle-system"),
    expected: [
      'Warning [IST0127] (Telemetry shop/nobody) spec.selector: there is no such workload in the namespace "shop", so the Telemetry holds for nothing\n  Workloads there have app=catalog,version=v1 or app=catalog,version=v2.',
      'Warning [IST0127] (Telemetry shopp/misspelt) spec.selector: there is no such workload in the namespace "shopp", so the Telemetry holds for nothing\n  That namespace has no workloads. Did you mean "shop"?',
      'Warning [IST0127] (Telemetry elsewhere/alone) spec.selector: there is no such workload in the namespace "elsewhere", so the Telemetry holds for nothing\n  That namespace has no workloads.',
      "Warning [IST0127] (Telemetry shop/targets) spec.targetRefs[0]: a Service is a target for waypoints, which this mesh has none of: it means no workload",
      'Warning [IST0127] (Telemetry shop/targets) spec.targetRefs: there is no such workload in the namespace "shop", so the Telemetry holds for nothing',
      "Error [IST0159] (Telemetry shop/catalog) spec.selector: the Telemetry shop/v1 is for some of the same workloads and older, so this one has no effect on them\n  Write both into one.",
      "Error [IST0160] (Telemetry shop/again) spec: the Telemetry shop/all is for the whole namespace too and older, so this one has no effect\n  Write both into one, or give one of them a selector.",
      "Error [IST0160] (Telemetry tulle-system/mesh) spec: the Telemetry istio-system/mesh is for the whole mesh too and older, so this one has no effect\n  Write both into one, or give one of them a selector.",
    ],
  },
  {
    name: "IST0160: the older one is that which was made first, whatever it is called",
    input: [
      ["a", "2026-02-01"],
      ["b", "2026-01-01"],
    ]
      .map(([name, day]) =>
        telemetry("{}").replace("name: telemetry", `name: ${name}, creationTimestamp: "${day}T00:00:00Z"`),
      )
      .join(""),
    expected: [
      "Error [IST0160] (Telemetry shop/a) spec: the Telemetry shop/b is for the whole namespace too and older, so this one has no effect\n  Write both into one, or give one of them a selector.",
    ],
  },
  {
    name: "IST0101, IST0133: Services of providers that are not there, or called otherwise",
    input:
      service("otel", "[{ name: http-otlp, port: 4317 }, { name: grpc, port: 4318 }]") +
      mesh(`extensionProviders:
- { name: a, opentelemetry: { service: otel.shop.svc.cluster.local, port: 4317 } }
- { name: b, envoyOtelAls: { service: otel.shop.svc.cluster.local, port: 4318 } }
- { name: c, envoyOtelAls: { service: otel.shop.svc.cluster.local, port: 1 } }
- { name: d, opentelemetry: { service: gone.shop.svc.cluster.local, port: 80, http: { path: / } } }
- { name: e, opentelemetry: { service: otel.shop.svc.cluster.local, port: 4317, http: { path: / } } }`),
    expected: [
      'Warning [IST0133] (ConfigMap tulle-system/tulle) data.mesh: mesh: the provider "a" speaks gRPC to port 4317 of "otel.shop.svc.cluster.local", whose name does not say so\n  Call the port "grpc" or "grpc-<suffix>".',
      'Error [IST0101] (ConfigMap tulle-system/tulle) data.mesh: mesh: the provider "c" asks port 1 of "otel.shop.svc.cluster.local", which has no such port\n  Its host is written in full: <name>.<namespace>.svc.cluster.local.',
      'Error [IST0101] (ConfigMap tulle-system/tulle) data.mesh: mesh: the provider "d" asks "gone.shop.svc.cluster.local", which is no Service of the mesh\n  Its host is written in full: <name>.<namespace>.svc.cluster.local.',
    ],
  },
];
