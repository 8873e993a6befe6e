/** Each analyzer on a small mesh: what is found, and that a right mesh gives nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testCertificate } from "../../../../tests/tools/certificates.ts";
import { analyze, analyzers } from "./analyze.ts";
import type { AnalyzeOptions } from "./analyzer.ts";
import { findingCodes } from "../findings/finding.ts";
import { loadText } from "../load/load.ts";
import { renderFinding } from "../findings/render-finding.ts";

const shop = `
kind: List
apiVersion: v1
items:
  - { apiVersion: v1, kind: Namespace, metadata: { name: shop, labels: { tulle-injection: enabled } } }
  - { apiVersion: v1, kind: Namespace, metadata: { name: tulle-system } }
  - apiVersion: v1
    kind: Service
    metadata: { name: catalog, namespace: shop }
    spec: { selector: { app: catalog }, ports: [{ name: http, port: 80, targetPort: 3000 }] }
  - apiVersion: v1
    kind: Service
    metadata: { name: admin, namespace: shop }
    spec: { selector: { app: admin }, ports: [{ name: http, port: 80 }, { name: http-metrics, port: 9090 }] }
  - apiVersion: v1
    kind: Service
    metadata: { name: gateway, namespace: tulle-system }
    spec: { selector: { tulle: ingressgateway }, ports: [{ name: http, port: 80, targetPort: 8080 }] }
  - apiVersion: apps/v1
    kind: Deployment
    metadata: { name: gateway, namespace: tulle-system }
    spec:
      selector: { matchLabels: { tulle: ingressgateway } }
      template:
        metadata: { labels: { tulle: ingressgateway }, annotations: { inject.tulle.io/templates: gateway } }
        spec: { containers: [{ name: istio-proxy }] }
  - apiVersion: networking.tulle.io/v1
    kind: DestinationRule
    metadata: { name: catalog, namespace: shop }
    spec:
      host: catalog
      subsets: [{ name: version-v1, labels: { version: v1 } }, { name: version-v2, labels: { version: v2 } }]
  - apiVersion: networking.tulle.io/v1
    kind: Gateway
    metadata: { name: public, namespace: shop }
    spec:
      selector: { tulle: ingressgateway }
      servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["shop.example.com", "*.test"] }]
`;

const certificate = await testCertificate({ commonName: "shop", isAuthority: true, days: 30 });
const dayMs = 24 * 60 * 60 * 1000;
const secret = (name: string, data: Readonly<Record<string, string>>, namespace = "tulle-system"): string =>
  `---\n${JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, stringData: data })}\n`;
const pair = { "tls.crt": certificate.certificate, "tls.key": certificate.key };
const secure = (mode: string, credentialName: string, host = "tls.example"): string =>
  `{ port: { number: 443, name: a, protocol: HTTPS }, hosts: [${host}], tls: { mode: ${mode}, credentialName: ${credentialName} } }`;

const login = (spec: string): string =>
  `---\napiVersion: security.tulle.io/v1alpha1\nkind: BrowserLogin\nmetadata: { name: login, namespace: shop }\nspec: ${spec}\n`;
const outside =
  "---\napiVersion: v1\nkind: Service\nmetadata: { name: outside, namespace: tulle-system }\nspec: { selector: { tulle: ingressgateway }, ports: [{ name: https, port: 443, targetPort: 8443 }] }\n";

const virtualService = (spec: string, name = "rule"): string =>
  `---\napiVersion: networking.tulle.io/v1\nkind: VirtualService\nmetadata: { name: ${name}, namespace: shop }\nspec: ${spec}\n`;
const routeTo = (destination: string): string =>
  virtualService(`{ hosts: [catalog], http: [{ route: [{ destination: ${destination} }] }] }`);
const gateway = (name: string, server: string, selector = "tulle: ingressgateway"): string =>
  `---\napiVersion: networking.tulle.io/v1\nkind: Gateway\nmetadata: { name: ${name}, namespace: shop }\nspec:\n  selector: { ${selector} }\n  servers: [${server}]\n`;
const service = (name: string, ports: string): string =>
  `---\napiVersion: v1\nkind: Service\nmetadata: { name: ${name}, namespace: shop }\nspec: { ports: ${ports} }\n`;

const destinationRule = (spec: string, name = "rule"): string =>
  `---\napiVersion: networking.tulle.io/v1\nkind: DestinationRule\nmetadata: { name: ${name}, namespace: shop }\nspec: ${spec}\n`;
const policy = (kind: string, spec: string, name = "policy", namespace = "shop"): string =>
  `---\napiVersion: security.tulle.io/v1\nkind: ${kind}\nmetadata: { name: ${name}, namespace: ${namespace} }\nspec: ${spec}\n`;
/** Behind every subset. */
const catalogWorkload = (annotation: string): string =>
  ["v1", "v2"].map((version) => catalogVersion(version, annotation)).join("");
const catalogVersion = (version: string, annotation = "x: y"): string =>
  `---\napiVersion: apps/v1\nkind: Deployment\nmetadata: { name: catalog${version === "v1" ? "" : `-${version}`}, namespace: shop }\nspec:\n  selector: { matchLabels: { app: catalog } }\n  template:\n    metadata: { labels: { app: catalog, version: ${version} }, annotations: { ${annotation} } }\n    spec: { containers: [{ name: app }] }\n`;

interface Case {
  readonly name: string;
  /** Added to the shop. */
  readonly input: string;
  readonly options?: AnalyzeOptions;
  readonly expected: readonly (string | RegExp)[];
}

const programWithVariables = `---
apiVersion: apps/v1
kind: Deployment
metadata: { name: api, namespace: shop }
spec:
  selector: { matchLabels: { app: api } }
  template:
    metadata: { labels: { app: api } }
    spec:
      containers:
        - name: beside
        - name: api
          envFrom: [{ configMapRef: { name: settings } }]
          env:
            - { name: PLAIN, value: a }
            - { name: IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }
            - { name: KEY, valueFrom: { secretKeyRef: { name: keys, key: a } } }
            - { name: MODE, valueFrom: { configMapKeyRef: { name: settings, key: a, optional: true } } }
            - { name: CPUS, valueFrom: { resourceFieldRef: { resource: limits.cpu } } }
            - { name: FILE, valueFrom: { fileKeyRef: { volumeName: v, path: p, key: k } } }
`;
const programWithVolumes = `---
apiVersion: apps/v1
kind: Deployment
metadata: { name: api, namespace: shop }
spec:
  selector: { matchLabels: { app: api } }
  template:
    metadata: { labels: { app: api } }
    spec:
      volumes: [{ name: settings, configMap: { name: settings } }, { name: cache, emptyDir: {} }, { name: disk, hostPath: { path: /srv } }]
      containers:
        - name: api
          volumeMounts: [{ name: settings, mountPath: /etc/api }, { name: cache, mountPath: /cache }, { name: disk, mountPath: /srv }, { name: none, mountPath: /x }]
`;

const cases: readonly Case[] = [
  { name: "a right mesh", input: "", expected: [] },
  {
    name: "every spelling of a host",
    input: virtualService(
      "{ hosts: [catalog], http: [{ route: [{ destination: { host: catalog }, weight: 1 }, { destination: { host: catalog.shop }, weight: 1 }, { destination: { host: catalog.shop.svc }, weight: 1 }, { destination: { host: catalog.shop.svc.cluster.local, subset: version-v1 }, weight: 1 }] }] }",
    ),
    expected: [],
  },
  {
    name: "IST0101: unknown host, near",
    input: routeTo("{ host: catalgo }"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.host: host "catalgo" not found\n  Did you mean "catalog"?',
    ],
  },
  {
    name: "IST0101: host in another namespace",
    input: routeTo("{ host: gateway }"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.host: host "gateway" not found\n  There is a Service "gateway" in the namespace "tulle-system": write "gateway.tulle-system.svc.cluster.local".',
    ],
  },
  {
    name: "IST0101: unknown subset, near",
    input: routeTo("{ host: catalog, subset: version-v3 }"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.subset: subset "version-v3" of host "catalog.shop.svc.cluster.local" not found\n  Did you mean "version-v1"?',
    ],
  },
  {
    name: "IST0101: subset of a rule that nobody who follows the routes sees",
    input: `${routeTo("{ host: gateway.tulle-system, subset: v1 }")}---
apiVersion: networking.tulle.io/v1
kind: DestinationRule
metadata: { name: gateway, namespace: tulle-system }
spec: { host: gateway, exportTo: [other], subsets: [{ name: v1, labels: { tulle: ingressgateway } }] }
---
apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata: { name: theirs, namespace: other }
spec: { hosts: [a.example.com], http: [{ route: [{ destination: { host: gateway.tulle-system, subset: v1 } }] }] }
`.replace("hosts: [catalog]", "hosts: [catalog], exportTo: ['.']"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.subset: subset "v1" of host "gateway.tulle-system.svc.cluster.local" not found\n  The DestinationRule "tulle-system/gateway" names it, and no namespace that follows these routes sees that one: change its exportTo.',
    ],
  },
  {
    name: "IST0101: subset of a host without rule",
    input: routeTo("{ host: gateway.tulle-system, subset: v1 }"),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.subset: subset "v1" of host "gateway.tulle-system.svc.cluster.local" not found\n  Add a DestinationRule for the host that names the subset.',
    ],
  },
  {
    name: "IST0101: unknown port; IST0112: several ports and none named",
    input: virtualService(
      "{ hosts: [catalog], http: [{ route: [{ destination: { host: catalog, port: { number: 81 } }, weight: 1 }, { destination: { host: admin }, weight: 1 }] }] }",
    ),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.http[0].route[0].destination.port.number: port 81 of host "catalog" not found\n  Ports of the Service: 80.',
      'Error [IST0112] (VirtualService shop/rule) spec.http[0].route[1].destination.host: the Service "admin" has several ports (80, 9090), and the destination names none\n  Add port.number to the destination.',
    ],
  },
  {
    name: "IST0101: a rule for a service that is not there is only a warning",
    input:
      "---\napiVersion: networking.tulle.io/v1\nkind: DestinationRule\nmetadata: { name: r, namespace: shop }\nspec: { host: api.example.com }\n",
    expected: [
      'Warning [IST0101] (DestinationRule shop/r) spec.host: host "api.example.com" not found\n  Add a Service of that name.',
    ],
  },
  {
    name: "IST0101: unknown gateways",
    input: virtualService(
      "{ hosts: [shop.example.com], gateways: [public, shop/public, publik, other/public], http: [{ route: [{ destination: { host: catalog } }] }] }",
    ),
    expected: [
      'Error [IST0101] (VirtualService shop/rule) spec.gateways[2]: gateway "shop/publik" not found\n  Did you mean "shop/public"?',
      'Error [IST0101] (VirtualService shop/rule) spec.gateways[3]: gateway "other/public" not found\n  Did you mean "shop/public"?',
    ],
  },
  {
    name: "IST0101: a Gateway that chooses no pods",
    input: gateway("g", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: [a.b] }", "istio: egressgateway"),
    expected: [
      "Error [IST0101] (Gateway shop/g) spec.selector: no workload has the labels of the selector (istio=egressgateway)\n  Compare them with the labels of the gateway's pods.",
    ],
  },
  {
    name: "IST0162: a port that the gateway's Service lacks",
    input: gateway("g", "{ port: { number: 8080, name: a, protocol: HTTP }, hosts: [a.b] }"),
    expected: [
      "Warning [IST0162] (Gateway shop/g) spec.servers[0].port.number: port 8080 is not a port of the gateway's Service (tulle-system/gateway)\n  Add it to the Service, or use one of its ports: 80.",
    ],
  },
  {
    name: "IST0132: a host that the gateway does not serve",
    input: virtualService(
      "{ hosts: [shop.example.com, '*.test', other.example.com], gateways: [public], http: [{ route: [{ destination: { host: catalog } }] }] }",
    ),
    expected: [
      'Warning [IST0132] (VirtualService shop/rule) spec.hosts[2]: host "other.example.com" is not among the hosts of the gateway "shop/public"\n  The Gateway serves shop.example.com, *.test.',
    ],
  },
  {
    name: "IST0132: each of two gateways serves one host, a third serves none",
    input:
      gateway("g", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['x.org'] }") +
      gateway("h", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['z.org'] }") +
      virtualService(
        "{ hosts: [a.test, x.org], gateways: [public, g, h], http: [{ route: [{ destination: { host: catalog } }] }] }",
      ),
    expected: [
      'Warning [IST0132] (VirtualService shop/rule) spec.gateways[2]: the gateway "shop/h" serves none of the hosts\n  The Gateway serves z.org.',
    ],
  },
  {
    name: "IST0132: a gateway for other namespaces",
    input:
      gateway("g", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['bar/*', './x.org'] }") +
      virtualService(
        "{ hosts: [x.org, y.org], gateways: [g], http: [{ route: [{ destination: { host: catalog } }] }] }",
      ),
    expected: [
      'Warning [IST0132] (VirtualService shop/rule) spec.hosts[1]: host "y.org" is not among the hosts of the gateway "shop/g"\n  The Gateway serves x.org.',
    ],
  },
  {
    name: "IST0109: one host in two VirtualServices for sidecars; at gateways it is fine",
    input:
      virtualService("{ hosts: [catalog], http: [{ route: [{ destination: { host: catalog } }] }] }", "a") +
      virtualService(
        "{ hosts: [catalog.shop], gateways: [mesh, public], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "b",
      ) +
      virtualService(
        "{ hosts: [a.test], gateways: [public], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "c",
      ) +
      virtualService(
        "{ hosts: [a.test], gateways: [public], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "d",
      ),
    expected: [
      'Warning [IST0132] (VirtualService shop/b) spec.hosts[0]: host "catalog.shop" is not among the hosts of the gateway "shop/public"\n  The Gateway serves shop.example.com, *.test.',
      'Error [IST0109] (VirtualService shop/a) spec.hosts[0]: the host "catalog.shop.svc.cluster.local" is claimed by several VirtualServices: shop/a, shop/b\n  Put the routes into one VirtualService.',
      'Error [IST0109] (VirtualService shop/b) spec.hosts[0]: the host "catalog.shop.svc.cluster.local" is claimed by several VirtualServices: shop/a, shop/b\n  Put the routes into one VirtualService.',
    ],
  },
  {
    name: "IST0109: one host in VirtualServices that no namespace sees together, and in one that all see",
    input:
      virtualService(
        "{ hosts: [catalog], exportTo: ['.'], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "a",
      ) +
      virtualService(
        "{ hosts: [catalog], exportTo: [blog], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "b",
      ) +
      virtualService(
        "{ hosts: [catalog], exportTo: [nowhere], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "c",
      ) +
      virtualService("{ hosts: [a.test], http: [{ route: [{ destination: { host: catalog } }] }] }", "d") +
      virtualService(
        "{ hosts: [a.test], exportTo: [blog, '.'], http: [{ route: [{ destination: { host: catalog } }] }] }",
        "e",
      ),
    expected: [
      'Error [IST0109] (VirtualService shop/d) spec.hosts[0]: the host "a.test" is claimed by several VirtualServices: shop/d, shop/e\n  Put the routes into one VirtualService.',
      'Error [IST0109] (VirtualService shop/e) spec.hosts[0]: the host "a.test" is claimed by several VirtualServices: shop/d, shop/e\n  Put the routes into one VirtualService.',
    ],
  },
  {
    name: "IST0145: two Gateways for one host and port on the same pods; a wildcard beside it is fine",
    input:
      gateway("a", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: [shop.example.com] }") +
      gateway("b", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['*.example.com'] }"),
    expected: [
      'Error [IST0145] (Gateway shop/public) spec.servers[0]: host "shop.example.com" on port 80 is served by the Gateway shop/a already, on the same pods\n  Keep one of the servers, or give them different hosts.',
      'Error [IST0145] (Gateway shop/a) spec.servers[0]: host "shop.example.com" on port 80 is served by the Gateway shop/public already, on the same pods\n  Keep one of the servers, or give them different hosts.',
    ],
  },
  {
    name: "IST0145: Gateways whose selectors differ and choose one pod, told once; another pod's is no rival",
    input:
      ["one", "two"]
        .map(
          (name) =>
            `---\n{ apiVersion: v1, kind: Pod, metadata: { name: ${name}, namespace: shop, labels: { edge: a, tier: b } }, spec: { containers: [{ name: c }] } }\n`,
        )
        .join("") +
      gateway("wide", "{ port: { number: 80, name: a, protocol: HTTP }, hosts: [shop.example.com] }", "edge: a") +
      gateway(
        "narrow",
        "{ port: { number: 80, name: a, protocol: TCP }, hosts: [shop.example.com] }",
        "edge: a, tier: b",
      ),
    expected: [
      "Error [IST0145] (Gateway shop/narrow) spec.servers[0].port: port 80 speaks plain HTTP for the Gateway shop/wide on the same pods, so that this TCP server has no effect\n  Give one of them another port.",
      'Error [IST0145] (Gateway shop/wide) spec.servers[0]: host "shop.example.com" on port 80 is served by the Gateway shop/narrow already, on the same pods\n  Keep one of the servers, or give them different hosts.',
      'Error [IST0145] (Gateway shop/narrow) spec.servers[0]: host "shop.example.com" on port 80 is served by the Gateway shop/wide already, on the same pods\n  Keep one of the servers, or give them different hosts.',
    ],
  },
  {
    name: "IST0130: routes behind a catch-all, a prefix and an equal condition",
    input: virtualService(`
  hosts: [catalog]
  http:
    - { match: [{ uri: { prefix: /api } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ uri: { exact: /api/x }, headers: { a: { exact: b } } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ uri: { prefix: /ap } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ headers: { a: {} } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ headers: { a: { regex: "x+" }, b: { exact: c } } }], route: [{ destination: { host: catalog } }] }
    - { route: [{ destination: { host: catalog } }] }
    - { match: [{ method: { exact: GET } }], route: [{ destination: { host: catalog } }] }`),
    expected: [
      "Warning [IST0130] (VirtualService shop/rule) spec.http[1]: no request reaches this route: http[0] takes all of them\n  Put the narrower route first, or remove this one.",
      "Warning [IST0130] (VirtualService shop/rule) spec.http[4]: no request reaches this route: http[3] takes all of them\n  Put the narrower route first, or remove this one.",
      "Warning [IST0130] (VirtualService shop/rule) spec.http[6]: no request reaches this route: http[5] takes all of them\n  Put the narrower route first, or remove this one.",
    ],
  },
  {
    name: "IST0131: one of two conditions adds nothing",
    input: virtualService(`
  hosts: [catalog]
  http:
    - { match: [{ uri: { exact: /a } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ uri: { exact: /b } }, { uri: { exact: /a }, method: { exact: GET } }], route: [{ destination: { host: catalog } }] }`),
    expected: [
      "Info [IST0131] (VirtualService shop/rule) spec.http[1].match[1]: this condition adds nothing: http[0] takes its requests before\n  Remove the condition.",
    ],
  },
  {
    name: "IST0131: a condition that follows from another of the same route",
    input: virtualService(`
  hosts: [catalog]
  http:
    - { match: [{ uri: { prefix: /api } }, { uri: { prefix: /apis } }], route: [{ destination: { host: catalog } }] }
    - { match: [{ uri: { prefix: /ap } }, { method: { exact: GET } }], route: [{ destination: { host: catalog } }] }`),
    expected: [
      "Info [IST0131] (VirtualService shop/rule) spec.http[0].match[1]: this condition adds nothing: http[0].match[0] takes its requests before\n  Remove the condition.",
    ],
  },
  {
    name: "IST0130, IST0131: routes of TCP and TLS whose connections others take",
    input: virtualService(`
  hosts: [catalog]
  tcp:
    - { match: [{ port: 80 }], route: [{ destination: { host: catalog } }] }
    - { match: [{ port: 80 }, { port: 81 }], route: [{ destination: { host: catalog } }] }
    - { route: [{ destination: { host: catalog } }] }
    - { match: [{ port: 82 }], route: [{ destination: { host: catalog } }] }
  tls:
    - { match: [{ sniHosts: [catalog] }], route: [{ destination: { host: catalog } }] }
    - { match: [{ sniHosts: [catalog], port: 443 }], route: [{ destination: { host: catalog } }] }`),
    expected: [
      "Warning [IST0130] (VirtualService shop/rule) spec.tls[1]: no connection reaches this route: tls[0] takes all of them\n  Put the narrower route first, or remove this one.",
      "Info [IST0131] (VirtualService shop/rule) spec.tcp[1].match[0]: this condition adds nothing: tcp[0] takes its connections before\n  Remove the condition.",
      "Warning [IST0130] (VirtualService shop/rule) spec.tcp[3]: no connection reaches this route: tcp[2] takes all of them\n  Put the narrower route first, or remove this one.",
    ],
  },
  {
    name: "IST0118: port names that tell no protocol",
    input:
      service(
        "s",
        "[{ name: web, port: 80 }, { name: x, port: 81, appProtocol: http }, { name: grpc-web, port: 82 }, { name: mongo-1, port: 83 }]",
      ) + service("t", "[{ port: 80 }]"),
    expected: [
      'Info [IST0118] (Service shop/s) spec.ports[0].name: port 80 is named "web", which does not tell its protocol\n  Name it "http-web", or set appProtocol.',
      'Info [IST0118] (Service shop/t) spec.ports[0]: port 80 has no name, which does not tell its protocol\n  Name it "http", or set appProtocol.',
    ],
  },
  {
    name: "ports of a gateway are for clients outside, whatever they speak",
    input: outside,
    options: { networkMode: "loopback" },
    expected: [],
  },
  {
    name: "IST0101: a provider that nobody has",
    input: `---
{ apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: { name: asks, namespace: shop }, spec: { action: CUSTOM, provider: { name: nobody }, rules: [{}] } }
`,
    expected: [
      'Warning [IST0127] (AuthorizationPolicy shop/asks) spec: there is no workload in the namespace "shop", so the policy holds for nothing\n  Compare the selector with the labels of the pods.',
      'Error [IST0101] (AuthorizationPolicy shop/asks) spec.provider.name: no extension provider of the mesh\'s configuration is called "nobody": what the policy matches is denied\n  Add it to "extensionProviders" in the ConfigMap "tulle" of the namespace tulle-system, under the key "mesh".',
    ],
  },
  {
    name: "TUL0005: protocols that loopback mode does not carry",
    input: service(
      "s",
      "[{ name: tcp-db, port: 5432 }, { name: dns, port: 53, protocol: UDP }, { name: grpc, port: 82 }, { name: https, port: 443 }]",
    ),
    options: { networkMode: "loopback" },
    expected: [
      "Warning [TUL0001] (Service shop/s) spec.ports[2]: port 82 speaks HTTP/2, which Tulle's proxy does not carry yet: it answers requests for this port with 503 (cluster_speaks_http2)\n" +
        '  If the application speaks HTTP/1.1 too, name the port "http"; else let Envoy stand beside callers and workload ("sidecar.tulle.io/proxy: envoy"). Authorizers are reached all the same.',
      'Info [TUL0005] (Service shop/s) spec.ports[0]: port 5432 speaks tcp: in the loopback mode other workloads reach it by CONNECT through their proxy\n  If it speaks HTTP, name the port "http" or "http-<something>".',
      "Warning [TUL0005] (Service shop/s) spec.ports[1]: port 53 speaks udp, which the loopback mode does not carry: other workloads cannot reach it through the mesh",
      'Info [TUL0005] (Service shop/s) spec.ports[3]: port 443 speaks https: in the loopback mode other workloads reach it by CONNECT through their proxy\n  If it speaks HTTP, name the port "http" or "http-<something>".',
    ],
  },
  {
    name: "TUL0012: variables that come from nowhere",
    input: programWithVariables,
    options: { networkMode: "loopback" },
    expected: [
      'Warning [TUL0012] (Deployment shop/api) spec.template.spec.containers[1].env[5].valueFrom: the variable FILE of container "api" is not set: of valueFrom fieldRef, configMapKeyRef, secretKeyRef and resourceFieldRef are read here\n  Give it a value, or set it for tulle up: programs inherit its environment.',
      'Warning [TUL0012] (Deployment shop/api) spec.template.spec.containers[1].env[2].valueFrom.secretKeyRef: the variable KEY of container "api": there is no Secret shop/keys, and the program is not started before\n  Add it, or write `optional: true` where the program can do without.',
      'Warning [TUL0012] (Deployment shop/api) spec.template.spec.containers[1].envFrom[0].configMapRef: envFrom of container "api": there is no ConfigMap shop/settings, and the program is not started before\n  Add it, or write `optional: true` where the program can do without.',
    ],
  },
  {
    name: "TUL0012: a Secret without the key, and a ConfigMap that is there",
    input: `${programWithVariables}---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: shop }
---
apiVersion: v1
kind: Secret
metadata: { name: keys, namespace: shop }
stringData: { b: hidden }
`,
    options: { networkMode: "loopback" },
    expected: [
      /the variable FILE/,
      'Warning [TUL0012] (Deployment shop/api) spec.template.spec.containers[1].env[2].valueFrom.secretKeyRef: the variable KEY of container "api": Secret shop/keys has no key "a", and the program is not started before\n  Add it, or write `optional: true` where the program can do without.',
    ],
  },
  {
    name: "TUL0013: volumes, which no program of this machine is given",
    input: programWithVolumes,
    options: { networkMode: "loopback" },
    expected: [
      'Warning [TUL0013] (Deployment shop/api) spec.template.spec.containers[0].volumeMounts[0]: container "api" finds nothing of the volume "settings" (of a ConfigMap) at /etc/api: volumes are not mounted here, the program sees this machine\'s own files\n  Take its texts as variables (envFrom, configMapKeyRef), or keep the files beside the manifest and name their path in the command or in a variable.',
      /the volume "cache" \(emptyDir\) at \/cache: [^]* a folder of this machine/,
      /the volume "disk" \(hostPath\) at \/srv: [^]*Name the path of a folder/,
      /the volume "none" at \/x: /,
    ],
  },
  { name: "volumes of programs elsewhere are a cluster's business", input: programWithVolumes, expected: [] },
  { name: "variables of programs elsewhere are a cluster's business", input: programWithVariables, expected: [] },
  {
    name: "TUL0001: ports for HTTP/2 of applications, and not of gateways",
    input:
      service("s", "[{ name: http2, port: 80 }, { name: web, port: 81, appProtocol: kubernetes.io/h2c }]") +
      `---
apiVersion: v1
kind: Service
metadata: { name: edge, namespace: tulle-system }
spec: { selector: { tulle: ingressgateway }, ports: [{ name: http2, port: 80, targetPort: 8080 }] }
`,
    expected: [0, 1].map(
      (index) =>
        `Warning [TUL0001] (Service shop/s) spec.ports[${index}]: port ${80 + index} speaks HTTP/2, which Tulle's proxy does not carry yet: it answers requests for this port with 503 (cluster_speaks_http2)\n` +
        '  If the application speaks HTTP/1.1 too, name the port "http"; else let Envoy stand beside callers and workload ("sidecar.tulle.io/proxy: envoy"). Authorizers are reached all the same.',
    ),
  },
  {
    name: "IST0103: a pod without the sidecar it should have",
    input: ["{ name: app, ready: true }", "{ name: istio-proxy }"]
      .map(
        (status, index) => `---
{ apiVersion: v1, kind: Pod, metadata: { name: p${index}, namespace: shop }, spec: { containers: [{ name: app }] }, status: { containerStatuses: [${status}] } }
`,
      )
      .concat(
        "---\n{ apiVersion: v1, kind: Pod, metadata: { name: young, namespace: shop }, spec: { containers: [{ name: app }] } }\n",
      )
      .join(""),
    expected: [
      'Warning [IST0103] (Pod shop/p0) metadata: the pod "p0" should have a sidecar and has none\n  Restart it: the proxy is added when a pod starts.',
    ],
  },
  {
    name: "IST0102: a namespace with workloads that says nothing of injection",
    input: `---
{ apiVersion: v1, kind: Namespace, metadata: { name: plain } }
---
{ apiVersion: v1, kind: Namespace, metadata: { name: empty } }
---
{ apiVersion: v1, kind: Pod, metadata: { name: p, namespace: plain }, spec: { containers: [{ name: c }] } }
---
{ apiVersion: v1, kind: Pod, metadata: { name: q, namespace: empty, labels: { sidecar.istio.io/inject: "true" } }, spec: { containers: [{ name: c }] } }
`,
    expected: [
      'Info [IST0102] (Namespace plain) metadata: the namespace "plain" does not say whether its workloads get a sidecar; they get none\n  Label it tulle-injection: enabled, or disabled if that is meant.',
    ],
  },
  {
    name: "IST0123: labels about sidecars that contradict each other",
    input: [
      "istio-injection: enabled, istio.io/rev: canary",
      "istio-injection: disabled, istio.io/rev: canary",
      "tulle-injection: disabled, istio-injection: enabled",
      "tulle-injection: enabled, istio-injection: enabled",
      "istio.io/rev: canary, istio.io/dataplane-mode: ambient",
      "istio.io/rev: canary",
    ]
      .map(
        (labels, index) =>
          `---\n{ apiVersion: v1, kind: Namespace, metadata: { name: n${index}, labels: { ${labels} } } }\n`,
      )
      .join(""),
    expected: [
      'Warning [IST0123] (Namespace n0) metadata.labels: the namespace "n0" has several labels about sidecars (istio-injection=enabled, istio.io/rev=canary), and "istio-injection" alone decides\n  Keep one of them.',
      'Warning [IST0123] (Namespace n2) metadata.labels: the namespace "n2" has several labels about sidecars (tulle-injection=disabled, istio-injection=enabled), and "tulle-injection" alone decides\n  Keep one of them.',
      'Warning [IST0123] (Namespace n4) metadata.labels: the namespace "n4" has several labels about sidecars (istio.io/rev=canary, istio.io/dataplane-mode=ambient), and "istio.io/rev" alone decides\n  Keep one of them.',
    ],
  },
  {
    name: "IST0173: a subset that no pod belongs to",
    input: catalogVersion("v1"),
    expected: [
      'Warning [IST0173] (DestinationRule shop/catalog) spec.subsets[1].labels: no workload of the Service "shop/catalog" has the labels of the subset "version-v2" (version=v2): routes that lead there answer 503\n  Compare them with the labels of the pods.',
    ],
  },
  {
    name: "IST0101: namespaces of callers that are not there",
    input:
      catalogWorkload("x: y") +
      policy(
        "AuthorizationPolicy",
        "{ rules: [{ from: [{ source: { namespaces: [shop, shpo, 'dev-*', 's*p', '*'] } }, { source: { notNamespaces: [warehouse] } }] }] }",
      ),
    expected: [
      'Warning [IST0101] (AuthorizationPolicy shop/policy) spec.rules[0].from[0].source.namespaces[1]: namespace "shpo" not found\n  Did you mean "shop"?',
      'Warning [IST0101] (AuthorizationPolicy shop/policy) spec.rules[0].from[0].source.namespaces[2]: no namespace is called "dev-*"\n  Add that Namespace.',
      'Warning [IST0101] (AuthorizationPolicy shop/policy) spec.rules[0].from[1].source.notNamespaces[0]: namespace "warehouse" not found\n  Add that Namespace.',
    ],
  },
  {
    name: "policies that hold for workloads with a proxy",
    input:
      policy("AuthorizationPolicy", "{ selector: { matchLabels: { app: catalog } }, rules: [{}] }") +
      catalogWorkload("") +
      policy("RequestAuthentication", `{ jwtRules: [{ issuer: "https://i", audiences: [a] }] }`),
    expected: [],
  },
  {
    name: "IST0127: a policy for nothing",
    input:
      policy("AuthorizationPolicy", "{ selector: { matchLabels: { app: none } } }") +
      policy("RequestAuthentication", "{}") +
      policy("AuthorizationPolicy", "{ selector: { matchLabels: { app: none } } }", "mesh", "tulle-system"),
    expected: [
      'Warning [IST0127] (AuthorizationPolicy shop/policy) spec.selector: there is no workload with the labels app=none in the namespace "shop", so the policy holds for nothing\n  Compare the selector with the labels of the pods.',
      "Warning [IST0127] (AuthorizationPolicy tulle-system/mesh) spec.selector: there is no workload with the labels app=none in the mesh, so the policy holds for nothing\n  Compare the selector with the labels of the pods.",
      'Warning [IST0127] (RequestAuthentication shop/policy) spec: there is no workload in the namespace "shop", so the policy holds for nothing\n  Compare the selector with the labels of the pods.',
    ],
  },
  {
    name: "IST0167: a policy that no proxy enforces",
    input: policy("AuthorizationPolicy", "{}") + catalogWorkload("sidecar.istio.io/inject: 'false'"),
    expected: [
      "Warning [IST0167] (AuthorizationPolicy shop/policy) spec: no workload that the policy holds for has a proxy, so nothing enforces it\n  Label the namespace with tulle-injection=enabled and restart the pods.",
    ],
  },
  {
    name: "IST0167: rules about requests at ports without requests",
    input:
      catalogWorkload("") +
      "---\napiVersion: v1\nkind: Service\nmetadata: { name: sql, namespace: shop }\nspec: { selector: { app: catalog }, ports: [{ name: tcp-sql, port: 5432 }, { name: http-x, port: 81 }] }\n" +
      policy(
        "AuthorizationPolicy",
        '{ rules: [{ to: [{ operation: { methods: [GET] } }] }, { to: [{ operation: { paths: [/a], ports: ["81"] } }] }, { from: [{ source: { ipBlocks: [10.0.0.0/8] } }] }] }',
        "allow",
      ) +
      policy(
        "AuthorizationPolicy",
        '{ action: DENY, rules: [{ when: [{ key: source.ip, values: [10.0.0.1] }, { key: "request.headers[x-a]", values: [b] }] }] }',
        "deny",
      ),
    expected: [
      'Warning [IST0167] (AuthorizationPolicy shop/allow) spec.rules[0].to[0].operation.methods: this is about requests, and port 5432 of the Service "sql" speaks tcp: the rule is left out there and allows nothing\n  Give the rule the ports that it is for (to: operation: ports), and the others rules of their own.',
      'Warning [IST0167] (AuthorizationPolicy shop/deny) spec.rules[0].when[1].key: this is about requests, and port 5432 of the Service "sql" speaks tcp: there the rule is judged without this, and matches more than it says\n  Give the rule the ports that it is for (to: operation: ports), and the others rules of their own.',
    ],
  },
  {
    name: "IST0167: conditions on an identity in a mesh without certificates",
    options: { hasAuthority: false },
    input:
      catalogWorkload("") +
      policy(
        "AuthorizationPolicy",
        "{ rules: [{ from: [{ source: { ipBlocks: [10.0.0.0/8] } }, { source: { namespaces: [shop], notPrincipals: [x] } }], when: [{ key: source.serviceAccount, values: [a], notValues: [b] }, { key: source.ip, values: [10.0.0.1] }] }] }",
      ),
    expected: [
      ["from[1].source.namespaces", "no"],
      ["from[1].source.notPrincipals", "every"],
      ["when[0].values", "no"],
      ["when[0].notValues", "every"],
    ].map(
      ([path, which]) =>
        `Warning [IST0167] (AuthorizationPolicy shop/policy) spec.rules[0].${path}: workloads get no certificates here, so connections tell nothing of who calls and ${which} request meets this condition\n  Run the control plane with its certificate authority (--xds-tls), or tell callers apart by their tokens (requestPrincipals).`,
    ),
  },
  {
    name: "IST0167: encryption in a mesh without certificates",
    options: { hasAuthority: false },
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }") +
      destinationRule("{ host: admin, trafficPolicy: { tls: { mode: ISTIO_MUTUAL } } }"),
    expected: [
      "Warning [IST0167] (PeerAuthentication shop/policy) spec: workloads get no certificates here, so ports that should be STRICT take plain text\n  Run the control plane with its certificate authority (--xds-tls).",
      "Warning [IST0167] (DestinationRule shop/rule) spec: workloads get no certificates here, so ISTIO_MUTUAL sends plain text\n  Run the control plane with its certificate authority (--xds-tls).",
    ],
  },
  {
    name: "conditions on identities",
    input:
      catalogWorkload("") +
      policy("AuthorizationPolicy", "{ rules: [{ from: [{ source: { principals: [a], notNamespaces: [shop] } }] }] }"),
    expected: [],
  },
  {
    name: "a PeerAuthentication for the mesh, the namespace, a workload and its ports",
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }", "mesh", "tulle-system") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }") +
      policy(
        "PeerAuthentication",
        "{ selector: { matchLabels: { app: catalog } }, portLevelMtls: { 3000: { mode: PERMISSIVE } } }",
        "catalog",
      ),
    expected: [],
  },
  {
    name: "IST0127: a PeerAuthentication for nothing",
    input: policy("PeerAuthentication", "{ selector: { matchLabels: { app: none } }, mtls: { mode: STRICT } }"),
    expected: [
      'Warning [IST0127] (PeerAuthentication shop/policy) spec.selector: there is no workload with the labels app=none in the namespace "shop", so the policy holds for nothing\n  Compare the selector with the labels of the pods.',
    ],
  },
  {
    name: "IST0167: PeerAuthentications that have no effect",
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ selector: { matchLabels: { app: catalog } } }", "selected", "istio-system") +
      policy(
        "PeerAuthentication",
        "{ selector: { matchLabels: { tulle: ingressgateway } }, mtls: { mode: STRICT } }",
        "gateway",
        "tulle-system",
      ) +
      policy(
        "PeerAuthentication",
        "{ selector: { matchLabels: { app: catalog } }, portLevelMtls: { 80: { mode: STRICT } } }",
      ) +
      `---\n{ apiVersion: v1, kind: Pod, metadata: { name: edge, namespace: shop, labels: { app: edge }, annotations: { inject.tulle.io/templates: gateway } }, spec: { containers: [{ name: istio-proxy }] } }\n` +
      policy("PeerAuthentication", "{ selector: { matchLabels: { app: edge } }, mtls: { mode: STRICT } }", "edge"),
    expected: [
      'Warning [IST0167] (PeerAuthentication istio-system/selected) spec.selector: a PeerAuthentication in "istio-system" is for the whole mesh: one with a selector holds for nothing\n  Leave the selector out, or move the policy to the workloads\' namespace.',
      'Warning [IST0167] (PeerAuthentication tulle-system/gateway) spec.selector: a PeerAuthentication in "tulle-system" is for the whole mesh: one with a selector holds for nothing\n  Leave the selector out, or move the policy to the workloads\' namespace.',
      'Warning [IST0167] (PeerAuthentication shop/policy) spec.portLevelMtls["80"]: no chosen workload listens on port 80\n  Write the port of the pods, not of their Service; known are 3000.',
      "Warning [IST0167] (PeerAuthentication shop/edge) spec.selector: the chosen workloads are gateways, whose TLS is that of their Gateway resources\n  Set servers.tls in the Gateway.",
    ],
  },
  {
    name: "TUL0008: two PeerAuthentications for the same workloads",
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }", "first") +
      policy("PeerAuthentication", "{ mtls: { mode: DISABLE } }", "second") +
      policy("PeerAuthentication", "{ selector: { matchLabels: { app: catalog } } }", "third") +
      policy("PeerAuthentication", "{ selector: { matchLabels: { app: catalog } } }", "fourth"),
    expected: [
      "Warning [TUL0008] (PeerAuthentication shop/second) spec: the PeerAuthentication shop/first is for the same workloads and older, so this one has no effect on them\n  Keep one of the two.",
      "Warning [TUL0008] (PeerAuthentication shop/fourth) spec.selector: the PeerAuthentication shop/third is for the same workloads and older, so this one has no effect on them\n  Keep one of the two.",
    ],
  },
  {
    name: "IST0113: a rule for plain text to a workload that is STRICT, and the other way round",
    input:
      catalogWorkload("") +
      policy("PeerAuthentication", "{ mtls: { mode: STRICT } }", "strict") +
      destinationRule("{ host: catalog, trafficPolicy: { tls: { mode: DISABLE } } }") +
      destinationRule(
        "{ host: admin, trafficPolicy: { portLevelSettings: [{ port: { number: 80 }, tls: { mode: ISTIO_MUTUAL } }] } }",
        "other",
      ) +
      service("bare", "[{ name: http, port: 80 }], selector: { app: bare }") +
      `---\n{ apiVersion: v1, kind: Pod, metadata: { name: bare, namespace: shop, labels: { app: bare, sidecar.istio.io/inject: "false" } }, spec: { containers: [{ name: app }] } }\n` +
      destinationRule("{ host: bare, trafficPolicy: { tls: { mode: ISTIO_MUTUAL } } }", "bare"),
    expected: [
      "Error [IST0113] (DestinationRule shop/rule) spec.trafficPolicy.tls.mode: port 3000 of the Deployment shop/catalog takes mutual TLS of the mesh alone (STRICT), and the rule says DISABLE: no request will pass\n  Leave tls out: callers of the mesh use what the workload takes.",
      "Error [IST0113] (DestinationRule shop/bare) spec.trafficPolicy.tls.mode: port 80 of the Pod shop/bare takes no TLS of the mesh, and the rule says ISTIO_MUTUAL: no request will pass\n  Leave tls out, or let the workload take mutual TLS.",
    ],
  },
  {
    name: "IST0128, IST0129, IST0133: servers that are not checked, Secrets for sidecars",
    input: destinationRule(
      "{ host: admin, trafficPolicy: { tls: { mode: SIMPLE, insecureSkipVerify: true }, portLevelSettings: [{ port: { number: 80 }, tls: { mode: SIMPLE, insecureSkipVerify: true } }, { port: { number: 9090 }, tls: { mode: MUTUAL, credentialName: admin } }] } }",
    ),
    expected: [
      'Warning [IST0128] (DestinationRule shop/rule) spec.trafficPolicy.tls.insecureSkipVerify: the server\'s certificate is not checked: whoever answers is believed\n  Name its authorities in "caCertificates" instead.',
      'Warning [IST0129] (DestinationRule shop/rule) spec.trafficPolicy.portLevelSettings[0].tls.insecureSkipVerify: the server\'s certificate is not checked: whoever answers is believed\n  Name its authorities in "caCertificates" instead.',
      'Info [IST0133] (DestinationRule shop/rule) spec.trafficPolicy.portLevelSettings[1].tls.credentialName: Secrets reach gateways alone: sidecars check the server against the authorities of their machine, and show no certificate\n  For sidecars, name files: "caCertificates", "clientCertificate", "privateKey".',
    ],
  },
  {
    name: "IST0167: conditions on tokens that nobody checks",
    input:
      catalogWorkload("") +
      policy(
        "AuthorizationPolicy",
        "{ selector: { matchLabels: { app: catalog } }, rules: [{ from: [{ source: { requestPrincipals: ['*'] } }] }, { when: [{ key: request.auth.audiences, values: [a] }] }] }",
      ) +
      policy(
        "RequestAuthentication",
        `{ selector: { matchLabels: { tulle: ingressgateway } }, jwtRules: [{ issuer: "https://i", audiences: [a] }] }`,
        "elsewhere",
        "tulle-system",
      ),
    expected: [
      "Warning [IST0167] (AuthorizationPolicy shop/policy) spec.rules[0].from[0].source.requestPrincipals: the policy looks at tokens, and no RequestAuthentication checks them at the workloads that it holds for\n  Add a RequestAuthentication with the same selector.",
    ],
  },
  {
    name: "conditions on tokens that are checked",
    input:
      catalogWorkload("") +
      policy("AuthorizationPolicy", "{ rules: [{ when: [{ key: 'request.auth.claims[a]', values: [a] }] }] }") +
      policy("RequestAuthentication", `{ jwtRules: [{ issuer: "https://i", audiences: [a] }] }`),
    expected: [],
  },
  {
    name: "TUL0006: tokens for anybody",
    input:
      catalogWorkload("") + policy("RequestAuthentication", `{ jwtRules: [{ issuer: "https://issuer.example.com" }] }`),
    expected: [
      'Warning [TUL0006] (RequestAuthentication shop/policy) spec.jwtRules[0]: the rule for https://issuer.example.com names no audiences: tokens of that issuer for any other service pass too\n  Add "audiences" with the name of this service.',
    ],
  },
  {
    name: "IST0149: routes by claims at a gateway that checks no tokens",
    input: virtualService(
      "{ hosts: [shop.example.com], gateways: [public], http: [{ match: [{ headers: { '@request.auth.claims.groups': { exact: admin } } }], route: [{ destination: { host: catalog } }] }] }",
    ),
    expected: [
      'Error [IST0149] (VirtualService shop/rule) spec.http[0].match[0].headers["@request.auth.claims.groups"]: the route looks at claims, and no RequestAuthentication holds for the workloads of the gateway "shop/public"\n  Add one in the namespace of the gateway\'s pods, with their labels as selector.',
    ],
  },
  {
    name: "plain HTTP and TLS on one port",
    input: gateway("a", secure("SIMPLE", "site").replace("443", "80")) + secret("site", pair),
    expected: [
      "Error [IST0145] (Gateway shop/a) spec.servers[0].port: port 80 speaks plain HTTP for the Gateway shop/public on the same pods, so that this HTTPS server has no effect\n  Give one of them another port.",
    ],
  },
  {
    name: "routes of connections that lead nowhere",
    input: virtualService(
      "{ hosts: [shop.example.com], gateways: [public], tcp: [{ route: [{ destination: { host: nowhere } }] }], tls: [{ match: [{ sniHosts: [shop.example.com] }], route: [{ destination: { host: admin } }] }] }",
    ),
    expected: [
      'Error [IST0112] (VirtualService shop/rule) spec.tls[0].route[0].destination.host: the Service "admin" has several ports (80, 9090), and the destination names none\n  Add port.number to the destination.',
      'Error [IST0101] (VirtualService shop/rule) spec.tcp[0].route[0].destination.host: host "nowhere" not found\n  Add a Service "nowhere" to the namespace "shop", or write the full name of a service elsewhere.',
    ],
  },
  {
    name: "Secrets that are there",
    input:
      outside +
      gateway("a", secure("MUTUAL", "site")) +
      gateway("b", secure("SIMPLE", "localhost-dev", "b.example")) +
      secret("site", pair) +
      secret("site-cacert", { cacert: certificate.certificate }),
    expected: [],
  },
  {
    name: "a Secret that is not there, in another namespace, and misspelt",
    input:
      outside +
      gateway("a", secure("SIMPLE", "nowhere-at-all")) +
      gateway("b", secure("SIMPLE", "site", "b.example")) +
      gateway("c", secure("SIMPLE", "wild", "c.example")) +
      secret("site", pair, "shop") +
      secret("wild1", pair),
    expected: [
      `Error [IST0101] (Gateway shop/a) spec.servers[0].tls.credentialName: the Secret "nowhere-at-all" is not there in the namespace "tulle-system", where the gateway's pods run; the server waits for it\n  Add that Secret.`,
      `Error [IST0101] (Gateway shop/b) spec.servers[0].tls.credentialName: the Secret "site" is not there in the namespace "tulle-system", where the gateway's pods run; the server waits for it\n  There is one in "shop": gateways take Secrets of their own namespace alone.`,
      `Error [IST0101] (Gateway shop/c) spec.servers[0].tls.credentialName: the Secret "wild" is not there in the namespace "tulle-system", where the gateway's pods run; the server waits for it\n  Did you mean "wild1"?`,
    ],
  },
  {
    name: "Secrets that hold something else",
    input:
      outside +
      gateway("a", secure("SIMPLE", "empty")) +
      gateway("b", secure("OPTIONAL_MUTUAL", "site", "b.example")) +
      secret("empty", {}) +
      secret("site", pair),
    expected: [
      'Error [IST0161] (Gateway shop/a) spec.servers[0].tls.credentialName: the Secret tulle-system/empty cannot be used: it holds neither "tls.crt" and "tls.key" nor "cert" and "key"',
      'Error [IST0161] (Gateway shop/b) spec.servers[0].tls.credentialName: the Secret tulle-system/site cannot be used: it holds neither "ca.crt" nor "cacert"',
    ],
  },
  {
    name: "a certificate near its end",
    input: outside + gateway("a", secure("SIMPLE", "site")) + secret("site", pair),
    options: { nowMs: Date.now() + 20 * dayMs },
    expected: [/^Warning \[IST0161\] .*: the Secret tulle-system\/site expires soon: it holds until 20/],
  },
  {
    name: "a certificate after its end",
    input: outside + gateway("a", secure("SIMPLE", "site")) + secret("site", pair),
    options: { nowMs: Date.now() + 40 * dayMs },
    expected: [/^Error \[IST0161\] .*: the Secret tulle-system\/site has expired: it held until 20/],
  },
  {
    name: "one certificate at two Gateways",
    input:
      outside +
      gateway("a", secure("SIMPLE", "site")) +
      gateway("b", secure("SIMPLE", "site", "b.example")) +
      secret("site", pair),
    expected: ["a", "b"].map(
      (name) =>
        `Warning [IST0138] (Gateway shop/${name}) spec.servers[0].tls.credentialName: the certificate "site" is shown by several Gateways (shop/a, shop/b): a client that reuses its connection for another name would get 404\n  Put their servers into one Gateway, or use a certificate for each.`,
    ),
  },
  {
    name: "one certificate at two Gateways whose selectors differ and choose the same pods",
    input:
      outside +
      gateway("a", secure("SIMPLE", "site")) +
      gateway("b", secure("SIMPLE", "site", "b.example"), "{}").replace("{ {} }", "{}") +
      secret("site", pair),
    expected: ["a", "b"].map((name) => new RegExp(`\\[IST0138\\] \\(Gateway shop/${name}\\)`)),
  },
  {
    name: "one pair of files at two Gateways",
    input:
      outside +
      ["a", "b"]
        .map((name) =>
          gateway(
            name,
            `{ port: { number: 443, name: a, protocol: HTTPS }, hosts: [${name}.example], tls: { mode: SIMPLE, serverCertificate: /c.pem, privateKey: /k.pem } }`,
          ),
        )
        .join(""),
    expected: ["a", "b"].map(
      (name) =>
        new RegExp(
          `\\[IST0138\\] \\(Gateway shop/${name}\\) spec.servers\\[0\\].tls.serverCertificate: the certificate "/c.pem"`,
        ),
    ),
  },
  {
    name: "a sign-in without gateway, Secret, Service and pages",
    input: login(
      "{ gateways: [publik], clientID: c, clientSecret: { name: c }, provider: { issuer: https://i, backend: { host: login } } }",
    ),
    expected: [
      'Error [IST0101] (BrowserLogin shop/login) spec.gateways[0]: gateway "shop/publik" not found\n  Did you mean "shop/public"?',
      'Error [IST0101] (BrowserLogin shop/login) spec.clientSecret.name: secret "shop/c" not found, so nobody can sign in\n  Put the client\'s secret under "client-secret" of that Secret.',
      'Error [IST0101] (BrowserLogin shop/login) spec.provider.backend.host: host "login.shop.svc.cluster.local" not found\n  The gateway redeems codes there.',
      "Warning [IST0167] (BrowserLogin shop/login) spec.gateways: no VirtualService is bound to its gateways, so there are no pages to sign in for\n  Bind the VirtualService of the pages to one of the gateways.",
    ],
  },
  {
    name: "a sign-in for another host, at a path that a route names, with an empty Secret and a port that is none",
    input:
      virtualService(
        "{ hosts: [shop.example.com], gateways: [public], http: [{ match: [{ uri: { prefix: /oauth2/ } }], route: [{ destination: { host: catalog } }] }] }",
      ) +
      secret("c", {}, "shop") +
      login(
        "{ gateways: [public], hosts: [other.test], clientID: c, clientSecret: { name: c }, provider: { issuer: https://i, backend: { host: catalog, port: { number: 81 } } } }",
      ),
    expected: [
      'Error [IST0101] (BrowserLogin shop/login) spec.clientSecret.name: secret "shop/c" has no key "client-secret", so nobody can sign in\n  Put the client\'s secret under "client-secret" of that Secret.',
      'Error [IST0101] (BrowserLogin shop/login) spec.provider.backend.port.number: service "catalog.shop.svc.cluster.local" has no port 81\n  The gateway redeems codes there.',
      'Warning [IST0132] (BrowserLogin shop/login) spec.hosts[0]: no VirtualService of its gateways has a host in common with "other.test"\n  They have shop.example.com.',
      'Warning [TUL0009] (BrowserLogin shop/login) spec.redirectPath: /oauth2/callback is among the paths of VirtualService "shop/rule", which no longer gets its requests\n  Choose a path that no route names.',
    ],
  },
  {
    name: "a good sign-in",
    input:
      virtualService(
        "{ hosts: [shop.example.com], gateways: [public], http: [{ route: [{ destination: { host: catalog } }] }] }",
      ) +
      secret("c", { "client-secret": "s" }, "shop") +
      login(
        "{ gateways: [public], hosts: ['*.example.com'], clientID: c, clientSecret: { name: c }, provider: { issuer: https://i, backend: { host: catalog } } }",
      ),
    expected: [],
  },
  {
    name: "routes by claims at a gateway that checks tokens",
    input:
      virtualService(
        "{ hosts: [shop.example.com], gateways: [public], http: [{ match: [{ headers: { '@request.auth.claims.groups': { exact: admin } } }], route: [{ destination: { host: catalog } }] }] }",
      ) +
      policy(
        "RequestAuthentication",
        `{ selector: { matchLabels: { tulle: ingressgateway } }, jwtRules: [{ issuer: "https://i", audiences: [a] }] }`,
        "gateway",
        "tulle-system",
      ),
    expected: [],
  },
];

for (const { name, input, options, expected } of cases) {
  test(`analyze: ${name}`, () => {
    const { resources, findings } = loadText(shop + input, "mesh.yaml");
    assert.deepEqual(
      findings.filter(({ code }) => code !== "TUL0001"),
      [],
    );
    const found = analyze(resources, options);
    const texts = found.map(({ place, path, message, ...rest }) => {
      assert.equal(place?.file, "mesh.yaml");
      return renderFinding({ ...rest, message: `${path}: ${message}` });
    });
    // Where dates stand in a text, an expression says what matters.
    const wanted = expected.map((each, index) =>
      typeof each === "string" || each.test(texts[index] ?? "") ? each : "",
    );
    assert.deepEqual(
      texts,
      wanted.map((each, index) => (typeof each === "string" ? each : texts[index])),
    );
  });
}

test("analyze: a finding points to the line of the field", () => {
  const { resources } = loadText(
    "apiVersion: networking.tulle.io/v1\nkind: VirtualService\nmetadata:\n  name: a\nspec:\n  hosts:\n    - a\n  http:\n    - route:\n        - destination:\n            host: nowhere\n",
    "rules/02.yaml",
  );
  const [finding] = analyze(resources);
  assert.deepEqual(finding, {
    code: "IST0101",
    severity: "error",
    message: 'host "nowhere" not found',
    resource: { kind: "VirtualService", namespace: "default", name: "a" },
    path: "spec.http[0].route[0].destination.host",
    place: { file: "rules/02.yaml", line: 11, column: 13 },
    suggestion: 'Add a Service "nowhere" to the namespace "default", or write the full name of a service elsewhere.',
  });
});

test("analyze: every analyzer's codes are known and are found in a case above", () => {
  const tested = cases.flatMap(({ expected }) => expected.map(String).join("\n")).join("\n");
  for (const { name, codes } of analyzers) {
    for (const code of codes) {
      assert.ok(Object.hasOwn(findingCodes, code), `${name}: ${code}`);
      assert.ok(tested.includes(code), `${name}: no case finds ${code}`);
    }
  }
});
