/** Documents that are wrong resources: code, resource, file:line:column, message and hint, as a person reads them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { kinds } from "../kinds/kinds.ts";
import { loadText } from "./load.ts";
import { renderFinding } from "../findings/render-finding.ts";
import { keyOf, keyText } from "../kinds/resource.ts";

const virtualService = (spec: string): string =>
  `apiVersion: networking.tulle.io/v1\nkind: VirtualService\nmetadata: { name: catalog, namespace: shop }\nspec:\n${spec}`;
const route = "route: [{ destination: { host: catalog } }]";
const deployment = (spec: string): string =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec:\n  selector: { matchLabels: { app: web } }\n${spec}`;

interface Case {
  readonly name: string;
  readonly input: string;
  /** Keys of the resources that came out. */
  readonly resources?: readonly string[];
  readonly findings: readonly string[];
}

const cases: readonly Case[] = [
  {
    name: "the kinds of a List, anchors and merge keys",
    input: `kind: List
apiVersion: v1
items:
  - &one { apiVersion: v1, kind: ServiceAccount, metadata: { name: a } }
  - { <<: *one, metadata: { name: b, namespace: shop } }
`,
    resources: ["ServiceAccount/default/a", "ServiceAccount/shop/b"],
    findings: [],
  },
  {
    name: "unknown kind",
    input: "apiVersion: networking.tulle.io/v1\nkind: VirtualServce\nmetadata: { name: a, namespace: b }\n",
    findings: [
      "Error [TUL0003] (VirtualServce b/a m.yaml:2:1) VirtualServce is not a kind that the mesh reads; the resource is left out\n  Did you mean VirtualService?",
    ],
  },
  {
    name: "addresses that proxies would refuse",
    input: `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: a }
addressType: IPv4
endpoints: [{ addresses: [10.0.0.1, "::1"] }, { addresses: [catalog] }]
---
apiVersion: v1
kind: Service
metadata: { name: a }
spec: { clusterIP: "*", clusterIPs: [None, 10.0.0.1, "::1", ""] }
`,
    findings: [
      'Error [IST0106] (EndpointSlice default/a m.yaml:5:37) "::1" is not an IPv4 address',
      'Error [IST0106] (EndpointSlice default/a m.yaml:5:61) "catalog" is not an IPv4 address',
      'Error [IST0106] (Service default/a m.yaml:10:9) "*" is not a cluster address (an IP address, or "None" for a headless Service)',
    ],
  },
  {
    name: "a kind that comes later",
    input: "apiVersion: networking.istio.io/v1\nkind: ProxyConfig\nmetadata: { name: a }\n",
    findings: [
      "Warning [TUL0001] (ProxyConfig default/a m.yaml:2:1) ProxyConfig is not implemented yet and has no effect",
    ],
  },
  {
    name: "a Service that stands for a name elsewhere",
    input: `apiVersion: v1
kind: Service
metadata: { name: a }
spec: { type: ExternalName, externalName: www.example.com, ports: [{ name: tcp, port: 443 }] }
`,
    findings: [
      'Warning [TUL0001] (Service default/a m.yaml:4:29) "externalName" is not implemented yet and leaves the Service without endpoints',
    ],
    resources: ["Service/default/a"],
  },
  {
    name: "no kind",
    input: "apiVersion: v1\nmetadata: { name: a }\n",
    findings: [`Error [TUL0002] (m.yaml:1:1) the resource has no "kind"\n  Kinds of the mesh are ${kinds.join(", ")}.`],
  },
  {
    name: "unknown version of a known kind",
    input: "apiVersion: networking.istio.io/v2\nkind: DestinationRule\nmetadata: { name: a }\nspec: { host: a }\n",
    findings: [
      'Error [IST0106] (DestinationRule default/a m.yaml:1:1) DestinationRule is not served as "networking.istio.io/v2"\n  Served versions of DestinationRule: networking.tulle.io/v1, networking.tulle.io/v1beta1, networking.tulle.io/v1alpha3, networking.istio.io/v1, networking.istio.io/v1beta1, networking.istio.io/v1alpha3.',
    ],
  },
  {
    name: "no apiVersion",
    input: "kind: Namespace\nmetadata: { name: a }\n",
    findings: [
      'Error [IST0106] (Namespace a m.yaml:1:1) the resource has no "apiVersion"\n  Served versions of Namespace: v1.',
    ],
  },
  {
    name: "every served version of the mesh's kinds",
    input: [
      "networking.tulle.io/v1",
      "networking.tulle.io/v1alpha3",
      "networking.istio.io/v1beta1",
      "networking.istio.io/v1",
    ]
      .map(
        (version, index) =>
          `apiVersion: ${version}\nkind: DestinationRule\nmetadata: { name: r${index} }\nspec: { host: a }\n`,
      )
      .join("---\n"),
    resources: [0, 1, 2, 3].map((index) => `DestinationRule/default/r${index}`),
    findings: [],
  },
  {
    name: "unknown field with a near name",
    input: virtualService(`  hosts: [catalog]\n  http:\n    - match: [{ uri: { prefx: /a } }]\n      ${route}\n`),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:7:24) unknown field "prefx" in "uri"\n  Did you mean "prefix"?',
    ],
  },
  {
    name: "a field one level too far out",
    input: virtualService(`  hosts: [catalog]\n  http:\n    - ${route}\n      perTryTimeout: 2s\n`),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:8:7) unknown field "perTryTimeout" in "http"\n  "perTryTimeout" belongs into "retries": indent it below.',
    ],
  },
  {
    name: "a field one level too far in",
    input: virtualService(
      `  hosts: [catalog]\n  http:\n    - ${route}\n      retries:\n        attempts: 3\n        timeout: 2s\n`,
    ),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:10:9) unknown field "timeout" in "retries"\n  "timeout" belongs further out: check the indentation.',
    ],
  },
  {
    name: "missing field",
    input: virtualService("  hosts: [catalog]\n  http:\n    - route:\n        - destination: { subset: v1 }\n"),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:8:11) "host" is missing\n  Service: a short name (in the namespace of the VirtualService) or a full one.',
    ],
  },
  {
    name: "wrong types, with what to write",
    input: virtualService(
      `  hosts: catalog\n  http:\n    - match: { uri: { exact: /a } }\n      timeout: 5\n      retries: { attempts: "3" }\n      ${route}\n`,
    ),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:5:3) expected a list, found the text "catalog"\n  Write - "catalog" on a line of its own.',
      'Error [IST0106] (VirtualService shop/catalog m.yaml:7:7) expected a list, found a mapping\n  Begin each entry with "- ".',
      "Error [IST0106] (VirtualService shop/catalog m.yaml:8:7) expected text, found the number 5\n  Put it in quotes.",
      'Error [IST0106] (VirtualService shop/catalog m.yaml:9:18) expected a whole number, found the text "3"\n  Write 3 without quotes.',
    ],
  },
  {
    name: "two of a choice",
    input: virtualService(
      `  hosts: [catalog]\n  http:\n    - match: [{ uri: { exact: /a, prefix: /b } }]\n      ${route}\n`,
    ),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:7:35) only one of "exact", "prefix", "regex" is possible, and "exact", "prefix" are there',
    ],
  },
  {
    name: "values that Istio refuses",
    input: virtualService(
      `  hosts: [catalog, catalog]
  http:
    - match: [{ uri: { regex: "(?=a)" } }]
      ${route}
      timeout: 0s
      retries: { attempts: 1, perTryTimeout: 2x, retryOn: "5xx,sometimes" }
`,
    ),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:7:24) "(?=a)" is not a regular expression of RE2: error parsing regexp: invalid or unsupported Perl syntax: `(?=`',
      'Error [IST0106] (VirtualService shop/catalog m.yaml:9:7) "0s" is shorter than 1ms, the shortest duration',
      'Error [IST0106] (VirtualService shop/catalog m.yaml:10:31) "2x" is not a duration (a number with a unit, as "2s", "1.5h", "250ms" or "1m30s"; at least 1ms)',
      'Error [IST0106] (VirtualService shop/catalog m.yaml:10:50) "sometimes" is not a retry condition; known are 5xx, gateway-error, reset, reset-before-request, connect-failure, retriable-4xx, refused-stream, retriable-status-codes, retriable-headers, envoy-ratelimited, http3-post-connect-failure, cancelled, deadline-exceeded, internal, resource-exhausted, unavailable and status codes',
    ],
  },
  {
    name: "rules between fields of a VirtualService",
    input: virtualService(
      `  hosts: [catalog, catalog, "*"]
  http:
    - route:
        - destination: { host: a }
        - destination: { host: b }
`,
    ),
    findings: [
      "Error [IST0106] (VirtualService shop/catalog m.yaml:7:7) the 2 destinations have a total weight of 0\n  Give the destinations weights, for example 90 and 10.",
    ],
  },
  {
    name: "hosts of a VirtualService",
    input: virtualService(`  hosts: [catalog, catalog, "*"]\n  http:\n    - ${route}\n`),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:5:20) the host "catalog" is listed twice',
      'Error [IST0106] (VirtualService shop/catalog m.yaml:5:29) the host "*" is only possible at gateways, and this VirtualService is for the mesh too\n  Name the hosts, or bind the VirtualService to a gateway.',
    ],
  },
  {
    name: "retries without attempts",
    input: virtualService(`  hosts: [catalog]\n  http:\n    - ${route}\n      retries: { retryOn: 5xx }\n`),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:8:7) retries are configured, but attempts is 0 or missing, which switches retries off\n  Set "attempts", or remove the other settings.',
    ],
  },
  {
    name: "fields that come later are accepted, each told once",
    input: virtualService(
      `  hosts: [catalog]
  http:
    - ${route}
      fault: { delay: { fixedDelay: 1s, percentage: { value: 1 } } }
      corsPolicy: { allowOrigin: ["*"] }
`,
    ),
    resources: ["VirtualService/shop/catalog"],
    findings: [
      'Warning [TUL0001] (VirtualService shop/catalog m.yaml:8:7) "fault" is not implemented yet and has no effect',
      'Warning [IST0002] (VirtualService shop/catalog m.yaml:9:21) "allowOrigin" is deprecated\n  Write "allowOrigins".',
    ],
  },
  {
    name: "answers to pages of other origins",
    input: virtualService(
      `  hosts: [catalog]
  http:
    - ${route}
      corsPolicy: { allowMethods: [FETCH], allowHeaders: ["a b", "*"] }
    - ${route}
      corsPolicy: { allowOrigins: [{}, { exact: "" }, { exact: "*" }], maxAge: 1.5s }
`,
    ),
    findings: [
      'Error [IST0106] (VirtualService shop/catalog m.yaml:8:36) "FETCH" is not one of GET, HEAD, POST, PUT, PATCH, DELETE, CONNECT, OPTIONS, TRACE, *',
      'Error [IST0106] (VirtualService shop/catalog m.yaml:8:59) "a b" is not a header name',
      "Error [IST0106] (VirtualService shop/catalog m.yaml:10:36) the match fits no origin",
      "Error [IST0106] (VirtualService shop/catalog m.yaml:10:40) the match fits no origin",
      "Error [IST0106] (VirtualService shop/catalog m.yaml:10:72) browsers are told whole seconds",
    ],
  },
  {
    name: "what narrows and is not honoured takes its resource with it",
    input: `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: deny, namespace: shop }
spec: { action: DENY, targetRefs: [{ kind: Service, name: catalog }], rules: [{}] }
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: for-all, namespace: shop }
spec: { targetRefs: [], rules: [{}] }
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: g, namespace: shop }
spec:
  servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"], bind: 127.0.0.1 }]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: anywhere, namespace: shop }
spec:
  servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"], bind: 0.0.0.0 }]
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: { name: words, namespace: shop }
spec: { jwtRules: [{ issuer: "https://a.test", spaceDelimitedClaims: [roles, login.scope] }] }
`,
    resources: ["AuthorizationPolicy/shop/for-all", "Gateway/shop/anywhere"],
    findings: [
      'Error [TUL0001] (AuthorizationPolicy shop/deny m.yaml:4:23) "targetRefs" is not implemented yet, and without it the policy would hold for every workload of the namespace: the resource is refused\n  Leave "targetRefs" out if that is what you want.',
      'Error [TUL0001] (Gateway shop/g m.yaml:15:79) "bind" is not implemented yet, and without it the server would listen on every address of the pod: the resource is refused\n  Leave "bind" out if that is what you want.',
      'Error [TUL0001] (RequestAuthentication shop/words m.yaml:26:78) the words of "login.scope", a claim inside another, cannot be told apart yet, and policies on them would not hold: the resource is refused',
    ],
  },
  {
    name: "kinds of Istio that are not read: an error where a mesh without them does more than was written",
    input: ["Sidecar", "EnvoyFilter", "ProxyConfig"]
      .map((kind) => `apiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: { name: a }\n---\n`)
      .concat("apiVersion: dapr.io/v1\nkind: Sidecar\nmetadata: { name: another }\n")
      .join(""),
    resources: [],
    findings: [
      "Error [TUL0001] (Sidecar default/a m.yaml:2:1) Sidecar is not implemented yet, and without it workloads reach every Service, and hosts outside as the mesh's configuration says: the resource is refused",
      "Error [TUL0001] (EnvoyFilter default/a m.yaml:6:1) EnvoyFilter is not implemented yet, and without it what it refuses or limits passes: the resource is refused",
      "Warning [TUL0001] (ProxyConfig default/a m.yaml:10:1) ProxyConfig is not implemented yet and has no effect",
      "Warning [TUL0003] (Sidecar default/another m.yaml:14:1) Sidecar is not a kind that the mesh reads; the resource is left out",
    ],
  },
  {
    name: "values of fields that come later are checked",
    input: virtualService(`  hosts: [catalog]\n  http:\n    - ${route}\n      mirror: { hots: a }\n`),
    findings: [
      'Warning [TUL0001] (VirtualService shop/catalog m.yaml:8:7) "mirror" is not implemented yet and has no effect',
      'Error [IST0106] (VirtualService shop/catalog m.yaml:8:17) unknown field "hots" in "mirror"\n  Did you mean "host"?',
      'Error [IST0106] (VirtualService shop/catalog m.yaml:8:7) "host" is missing\n  Service: a short name (in the namespace of the VirtualService) or a full one.',
    ],
  },
  {
    name: "load balancers and subsets of a DestinationRule",
    input: `apiVersion: networking.tulle.io/v1
kind: DestinationRule
metadata: { name: catalog, namespace: shop }
spec:
  host: catalog
  trafficPolicy: { loadBalancer: { simple: LEAST_CONN } }
  subsets:
    - { name: v1, labels: { version: v1 }, trafficPolicy: { loadBalancer: { simple: PASSTHROUGH } } }
    - { name: v1, labels: { version: v2 } }
    - { name: v2, trafficPolicy: { loadBalancer: { simple: ROUNDROBIN } } }
`,
    findings: [
      "Warning [IST0002] (DestinationRule shop/catalog m.yaml:6:36) LEAST_CONN is deprecated\n  Write LEAST_REQUEST.",
      "Warning [TUL0001] (DestinationRule shop/catalog m.yaml:8:77) PASSTHROUGH is not implemented yet and has no effect",
      'Error [IST0106] (DestinationRule shop/catalog m.yaml:10:52) "ROUNDROBIN" is not one of UNSPECIFIED, LEAST_CONN, RANDOM, PASSTHROUGH, ROUND_ROBIN, LEAST_REQUEST\n  Did you mean ROUND_ROBIN?',
      "Error [IST0106] (DestinationRule shop/catalog m.yaml:9:9) the name is the same as that of entry 1",
    ],
  },
  {
    name: "servers of a Gateway",
    input: `apiVersion: networking.tulle.io/v1
kind: Gateway
metadata: { name: gw }
spec:
  selector: { tulle: ingressgateway }
  servers:
    - port: { number: 80, name: http, protocol: http }
      hosts: ["*", "shop/*.example.com", "a.*.com"]
    - port: { number: 70000, name: http, protocol: HTTTP }
      hosts: []
`,
    findings: [
      'Error [IST0106] (Gateway default/gw m.yaml:8:42) "a.*.com" has a wildcard that is not at its beginning (write "*.example.com")',
      "Error [IST0106] (Gateway default/gw m.yaml:9:15) 70000 is out of range: it has to be from 1 to 65535",
      'Error [IST0106] (Gateway default/gw m.yaml:9:42) "HTTTP" is not one of HTTP, HTTPS, HTTP2, GRPC, GRPC-WEB, TCP, TLS, MONGO, REDIS, MYSQL\n  Did you mean HTTP?',
      "Error [IST0106] (Gateway default/gw m.yaml:10:7) the list is empty; it needs at least one entry",
    ],
  },
  {
    name: "rules between servers of a Gateway",
    input: `apiVersion: networking.tulle.io/v1
kind: Gateway
metadata: { name: gw }
spec:
  servers:
    - port: { number: 80, name: web, protocol: HTTP }
      hosts: ["*"]
    - port: { number: 443, name: web, protocol: HTTPS }
      hosts: ["*"]
`,
    findings: [
      'Error [IST0106] (Gateway default/gw m.yaml:8:28) the port name "web" is used by servers[0] already\n  Give each server of a Gateway its own port name.',
      'Error [IST0106] (Gateway default/gw m.yaml:8:7) the server speaks HTTPS and has no tls settings\n  Add "tls" with a mode and a credentialName, or use protocol HTTP.',
    ],
  },
  {
    name: "TLS settings of a Gateway that do not go together",
    input: `apiVersion: networking.tulle.io/v1
kind: Gateway
metadata: { name: gw }
spec:
  servers:
    - port: { number: 80, name: http, protocol: HTTP }
      hosts: ["*"]
      tls: { mode: SIMPLE, credentialName: a }
    - port: { number: 443, name: https, protocol: HTTPS }
      hosts: ["a.example"]
      tls: { mode: MUTUAL, serverCertificate: a.crt, privateKey: a.key }
    - port: { number: 443, name: https-b, protocol: HTTPS }
      hosts: ["b.example"]
      tls: { mode: ISTIO_MUTUAL, credentialName: b }
    - port: { number: 443, name: https-c, protocol: HTTPS }
      hosts: ["c.example"]
      tls: { mode: SIMPLE, credentialName: c, minProtocolVersion: TLSV1_3, maxProtocolVersion: TLSV1_2 }
    - port: { number: 443, name: https-d, protocol: HTTPS }
      hosts: ["d.example"]
      tls: { mode: SIMPLE, credentialName: d, subjectAltNames: [x], httpsRedirect: true }
`,
    findings: [
      'Error [IST0106] (Gateway default/gw m.yaml:11:14) MUTUAL needs a certificate: "caCertificates" missing\n  Name a Secret by "credentialName", or files of the gateway\'s machine.',
      "Error [IST0106] (Gateway default/gw m.yaml:14:34) ISTIO_MUTUAL takes no certificate: the workload's own is used",
      "Error [IST0106] (Gateway default/gw m.yaml:17:76) the newest version is older than the oldest one",
      "Warning [IST0133] (Gateway default/gw m.yaml:20:47) SIMPLE does not check client certificates, so that their names have no effect\n  Use MUTUAL or OPTIONAL_MUTUAL.",
    ],
  },
  {
    name: "TLS settings of servers without TLS, and nothing to redirect",
    input: `apiVersion: networking.tulle.io/v1
kind: Gateway
metadata: { name: gw }
spec:
  servers:
    - port: { number: 80, name: http, protocol: HTTP }
      hosts: ["*"]
      tls: { mode: SIMPLE, credentialName: a }
    - port: { number: 443, name: https, protocol: HTTPS }
      hosts: ["*"]
      tls: { mode: SIMPLE, credentialName: a, httpsRedirect: true }
`,
    findings: [
      "Error [IST0106] (Gateway default/gw m.yaml:8:14) a server that speaks HTTP has no TLS\n  Use protocol HTTPS to end TLS for HTTP, or TLS for other protocols.",
      "Warning [IST0133] (Gateway default/gw m.yaml:11:47) a server that speaks HTTPS has nothing to redirect\n  Set it at the server that speaks plain HTTP.",
    ],
  },
  {
    name: "Kubernetes' own fields pass, a misspelt one is pointed out and the resource stays",
    input: deployment(
      `  strategy: { type: Recreate }
  replcas: 2
  template:
    metadata: { labels: { app: web } }
    spec:
      volumes: [{ name: a, emptyDir: {} }]
      containers:
        - { name: web, resources: { limits: { cpu: 1 } }, imagePullPolicy: Always, ports: [{ containerPort: 80 }] }
`,
    ),
    resources: ["Deployment/default/web"],
    findings: [
      'Warning [IST0106] (Deployment default/web m.yaml:7:3) unknown field "replcas" in "spec"\n  Did you mean "replicas"?',
    ],
  },
  {
    name: "labels that are no text, a selector that misses its pods",
    input: `${deployment("  template: { metadata: { labels: { app: web, canary: true } }, spec: { containers: [{ name: c }] } }\n")}---\n${deployment("  template: { metadata: { labels: { app: wbe } }, spec: { containers: [{ name: c }] } }\n")}`,
    findings: [
      "Error [IST0106] (Deployment default/web m.yaml:6:47) expected text, found true\n  Put it in quotes.",
      "Error [IST0106] (Deployment default/web m.yaml:12:30) the selector asks for the label app: web, which the pod template does not have\n  Add app: web to spec.template.metadata.labels.",
    ],
  },
  {
    name: "ports of a Service",
    input: `apiVersion: v1
kind: Service
metadata: { name: web }
spec:
  ports:
    - { port: 80, targetPort: http }
    - { port: 80, targetPort: "8080" }
`,
    findings: [
      'Error [IST0106] (Service default/web m.yaml:7:19) "8080" is neither a port number nor a port name\n  Write 8080 without quotes.',
    ],
  },
  {
    name: "two definitions of one object, whatever their group",
    input: `apiVersion: networking.tulle.io/v1
kind: DestinationRule
metadata: { name: a }
spec: { host: first }
---
apiVersion: networking.istio.io/v1beta1
kind: DestinationRule
metadata: { name: a, namespace: default }
spec: { host: second }
`,
    resources: ["DestinationRule/default/a"],
    findings: [
      "Warning [TUL0004] (DestinationRule default/a m.yaml:1:1) defined again at m.yaml:6:1; this definition is not used\n  Remove one of the two definitions.",
      "Warning [TUL0004] (DestinationRule default/a m.yaml:6:1) defined before at m.yaml:1:1; this definition, the last one, is used\n  Remove one of the two definitions.",
    ],
  },
  {
    name: "JSON with tabs",
    input: '{\n\t"apiVersion": "v1",\n\t"kind": "Namespace",\n\t"metadata": { "name": "Shop" }\n}\n',
    findings: [
      'Error [IST0106] (Namespace Shop m.yaml:4:16) "Shop" is not a DNS label (at most 63 lower-case letters, digits and "-", beginning and ending with a letter or digit)',
    ],
  },
];

for (const { name, input, resources = [], findings } of cases) {
  test(`parse: ${name}`, () => {
    const loaded = loadText(input, "m.yaml");
    assert.deepEqual(
      loaded.findings.map((finding) => renderFinding(finding)),
      findings,
    );
    assert.deepEqual(
      loaded.resources.map((resource) => keyText(keyOf(resource))),
      resources,
    );
  });
}
