/**
 * What Istio 1.31 takes and what it refuses (its CRDs and its admission webhook together, asked one by one), so that
 * manifests mean the same to both.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding } from "../findings/finding.ts";
import { analyze } from "../analyzers/analyze.ts";
import { loadText } from "../load/load.ts";

interface Case {
  readonly kind: string;
  readonly spec: string;
  readonly metadata?: string;
}

const groups: Readonly<Record<string, string>> = {
  Gateway: "networking.istio.io/v1",
  VirtualService: "networking.istio.io/v1",
  DestinationRule: "networking.istio.io/v1",
  ServiceEntry: "networking.istio.io/v1",
  WorkloadEntry: "networking.istio.io/v1",
  WorkloadGroup: "networking.istio.io/v1",
  AuthorizationPolicy: "security.istio.io/v1",
  RequestAuthentication: "security.istio.io/v1",
  PeerAuthentication: "security.istio.io/v1",
  Telemetry: "telemetry.istio.io/v1",
};

const of =
  (kind: string, wrap: (text: string) => string = (text) => text) =>
  (...specs: readonly string[]): readonly Case[] =>
    specs.map((spec) => ({ kind, spec: wrap(spec) }));

const gateway = of("Gateway");
const server = of("Gateway", (text) => `{ servers: [{ ${text} }] }`);
const hosts = of(
  "Gateway",
  (text) => `{ servers: [{ port: { number: 80, name: a, protocol: HTTP }, hosts: [${text}] }] }`,
);
const https = of(
  "Gateway",
  (text) => `{ servers: [{ port: { number: 443, name: a, protocol: HTTPS }, hosts: ['*'], tls: { ${text} } }] }`,
);
const plain = of(
  "Gateway",
  (text) => `{ servers: [{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['*'], tls: { ${text} } }] }`,
);
const virtualService = of("VirtualService");
const virtualHosts = of(
  "VirtualService",
  (text) => `{ hosts: [${text}], http: [{ route: [{ destination: { host: a } }] }] }`,
);
const atGateway = of(
  "VirtualService",
  (text) => `{ hosts: [${text}], gateways: [g], http: [{ route: [{ destination: { host: a } }] }] }`,
);
const gateways = of(
  "VirtualService",
  (text) => `{ hosts: [a.b], gateways: [${text}], http: [{ route: [{ destination: { host: a } }] }] }`,
);
const destination = of("VirtualService", (text) => `{ hosts: [a], http: [{ route: [{ destination: { ${text} } }] }] }`);
const route = of(
  "VirtualService",
  (text) => `{ hosts: [a], http: [{ ${text}, route: [{ destination: { host: a } }] }] }`,
);
const action = of("VirtualService", (text) => `{ hosts: [a], http: [{ ${text} }] }`);
const tls = of(
  "VirtualService",
  (text) =>
    `{ hosts: [a.com, '*.b.com'], gateways: [g], tls: [{ match: [${text}], route: [{ destination: { host: a } }] }] }`,
);
const rule = of("DestinationRule", (text) => `{ ${text} }`);
const traffic = of("DestinationRule", (text) => `{ host: a, trafficPolicy: ${text} }`);
const policy = of("AuthorizationPolicy");
const jwt = of("RequestAuthentication", (text) => `{ jwtRules: [{ ${text} }] }`);
const target = of("RequestAuthentication", (text) => `{ ${text} }`);
const peer = of("PeerAuthentication");
const dryRun = (value: string, spec: string, kind = "AuthorizationPolicy"): Case => ({
  kind,
  spec,
  metadata: `{ name: a, annotations: { istio.io/dry-run: "${value}" } }`,
});

const issued = "issuer: a, jwksUri: 'https://a/b'";

const telemetry = of("Telemetry");
const tracing = of("Telemetry", (text) => `{ tracing: [{ ${text} }] }`);
const customTag = of("Telemetry", (text) => `{ tracing: [{ customTags: { ${text} } }] }`);
const metrics = of("Telemetry", (text) => `{ metrics: [{ ${text} }] }`);
const override = of("Telemetry", (text) => `{ metrics: [{ overrides: [{ ${text} }] }] }`);
const tagOverride = of("Telemetry", (text) => `{ metrics: [{ overrides: [{ tagOverrides: { ${text} } }] }] }`);
const accessLogging = of("Telemetry", (text) => `{ accessLogging: [{ ${text} }] }`);

const entry = of("ServiceEntry", (text) => `{ hosts: [a.b], ${text} }`);
const entryHosts = of(
  "ServiceEntry",
  (text) => `{ hosts: [${text}], resolution: STATIC, ports: [{ number: 80, name: a, protocol: HTTP }] }`,
);
const entryPorts = of("ServiceEntry", (text) => `{ hosts: [a.b], resolution: DNS, ports: [${text}] }`);
const endpoints = of(
  "ServiceEntry",
  (text) =>
    `{ hosts: [a.b], resolution: STATIC, ports: [{ number: 80, name: a, protocol: HTTP }], endpoints: [${text}] }`,
);
const workload = of("WorkloadEntry", (text) => `{ ${text} }`);
const group = of("WorkloadGroup", (text) => `{ ${text} }`);

const accepted: readonly Case[] = [
  ...entry(
    "location: MESH_EXTERNAL",
    "resolution: NONE, addresses: [10.0.0.0/8]",
    "resolution: NONE, workloadSelector: { labels: { a: b } }",
    "resolution: STATIC, addresses: [10.0.0.0/8, 10.0.0.1, '::1', 'fd00::/8']",
    "resolution: STATIC",
    "resolution: STATIC, workloadSelector: {}",
    "resolution: STATIC, workloadSelector: { labels: { a: b } }",
    "resolution: DNS, endpoints: [{ address: c.d }, { address: 10.0.0.1 }]",
    "resolution: DNS_ROUND_ROBIN, endpoints: [{ address: c.d }]",
    "exportTo: ['~']",
    "exportTo: [a, '.']",
  ),
  ...entryHosts("a", "'*.a.b'", "'*-c.a.b'", "a.b, c.d", "A.b"),
  ...entryPorts(
    "{ number: 80, name: a }",
    "{ number: 80, name: a, protocol: '' }",
    "{ number: 80, name: a, protocol: http }",
    "{ number: 80, name: a, protocol: GRPC-Web }",
    "{ number: 80, name: a, protocol: Mongo, targetPort: 90 }",
  ),
  ...endpoints(
    "{ address: 10.0.0.1 }",
    "{ address: '::1', ports: { a: 90 }, weight: 4294967295, locality: a/b/c, serviceAccount: x, labels: { a: b } }",
    "{ network: n }",
    "{ address: 'unix:///a' }",
  ),
  ...workload("address: 10.0.0.1", "address: a.b", "network: n", "address: 10.0.0.1, ports: { any: 1 }"),
  ...group(
    "template: {}",
    "template: { serviceAccount: a, ports: { http: 80 } }, metadata: { labels: { a: b } }",
    "template: {}, probe: { httpGet: { port: 80, path: /a, scheme: HTTPS } }",
    "template: {}, probe: { tcpSocket: { port: 80 }, periodSeconds: 0 }",
    "template: {}, probe: { exec: { command: [a] } }",
  ),
  ...hosts("'*'", "a.b", "'*.b'", "10.0.0.1", "ns/a.b", "'*/a.b'", "./a.b", "'*/*'"),
  ...https(
    "mode: SIMPLE, credentialName: a",
    "mode: SIMPLE, credentialNames: [a]",
    "mode: MUTUAL, credentialNames: [a, b]",
    "mode: SIMPLE, credentialName: a, caCertificates: /c",
    "mode: SIMPLE, credentialName: a, serverCertificate: /c",
    "mode: SIMPLE, credentialName: 'A b'",
    "mode: SIMPLE, credentialName: a, cipherSuites: [NONE, AES128-SHA, AES128-SHA]",
    "mode: SIMPLE, credentialName: a, httpsRedirect: true",
    "mode: SIMPLE, tlsCertificates: [{ serverCertificate: a, privateKey: b }]",
    "mode: PASSTHROUGH, credentialName: a",
    "mode: AUTO_PASSTHROUGH, caCertificates: a",
  ),
  ...plain("httpsRedirect: true", "mode: PASSTHROUGH", "mode: AUTO_PASSTHROUGH"),
  ...gateway(
    "{ selector: { 'a b': 'c d' }, servers: [{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['*'] }] }",
    "{ servers: [{ port: { number: 80, name: a, protocol: TCP }, hosts: ['*'] }] }",
  ),
  ...virtualHosts("a", "'*-foo.baz'", "'*foo.baz'", "'*.foo.bar'", "A.b", "10.0.0.1", "a., b"),
  ...atGateway("'*'", "'*-foo.baz'"),
  ...gateways("mesh", "ns/g", "G", "g.ns.svc.cluster.local"),
  ...destination("host: a", "host: '*.a.b'", "host: a, subset: V1", "host: a, subset: ''"),
  ...route(
    "match: [{ uri: {} }]",
    "match: [{ method: {}, headers: { x: {} } }]",
    "match: [{ uri: { prefix: '' } }]",
    "fault: { abort: {} }",
    "fault: { delay: {} }",
    "rewrite: { authority: a }",
    "headers: { request: { set: { a: b } } }",
  ),
  ...action("redirect: { authority: a }", "directResponse: { status: 200 }", "directResponse: { status: 600 }"),
  ...tls(
    "{ sniHosts: [a.com] }",
    "{ sniHosts: [x.b.com] }",
    "{ sniHosts: ['*.b.com'] }",
    "{ sniHosts: ['*.x.b.com'] }",
  ),
  ...rule(
    "host: a",
    "host: '*'",
    "host: '*-a.b'",
    "host: a, subsets: [{ name: V1 }]",
    "host: a, exportTo: ['*']",
    "host: a, exportTo: [.], workloadSelector: { matchLabels: { a: b } }",
  ),
  ...traffic(
    "{ loadBalancer: {} }",
    "{ connectionPool: { tcp: {} } }",
    "{ portLevelSettings: [{ port: {}, tls: {} }] }",
    "{ portLevelSettings: [{ port: { number: 70000 }, tls: {} }] }",
    "{ outlierDetection: { consecutiveLocalOriginFailures: 0 } }",
    "{ outlierDetection: { consecutiveLocalOriginFailures: 3, splitExternalLocalOriginErrors: true } }",
    "{ loadBalancer: { consistentHash: { useSourceIp: true, maglev: { tableSize: 65537 } } } }",
    "{ loadBalancer: { localityLbSetting: { distribute: [{ from: a/*, to: { a/*: 80, b/*: 20 } }] } } }",
    "{ loadBalancer: { localityLbSetting: { failover: [{ from: a, to: b }] } } }",
    "{ tunnel: { targetHost: 10.0.0.1, targetPort: 80 } }",
    "{ connectionPool: { http: { http2KeepAlive: { interval: 1s, timeout: 1s } } } }",
  ),
  ...policy(
    "{}",
    "{ rules: [] }",
    "{ selector: { matchLabels: { 'a b': 'c d' } }, rules: [{}] }",
    "{ targetRefs: [], action: DENY, rules: [{}] }",
  ),
  ...jwt(
    issued,
    "issuer: nobody",
    "jwksUri: 'https://a/b'",
    `${issued}, outputClaimToHeaders: [{ header: x-a_b, claim: a }]`,
  ),
  ...target("selector: {}", "selector: { matchLabels: { 'A ': b } }"),
  ...peer("{}", "{ selector: { matchLabels: { a: b } }, portLevelMtls: { 80: { mode: STRICT } } }", "{ selector: {} }"),
  dryRun("true", "{ rules: [{}] }"),
  dryRun("T", "{ action: DENY, rules: [{}] }"),
  dryRun("0", "{ rules: [{}] }"),
  ...telemetry(
    "{}",
    "{ selector: {} }",
    "{ selector: { matchLabels: {} } }",
    "{ tracing: [{}, {}], metrics: [{}], accessLogging: [{}] }",
    "{ targetRefs: [] }",
    "{ targetRef: { group: gateway.networking.k8s.io, kind: Gateway, name: a } }",
    "{ targetRef: { kind: Service, name: a } }",
    "{ targetRef: { group: gateway.networking.k8s.io, kind: Gateway, name: a, namespace: '' } }",
  ),
  ...tracing(
    "providers: []",
    "providers: [{ name: a }, { name: b }]",
    "match: {}",
    "match: { mode: CLIENT_AND_SERVER }",
    "randomSamplingPercentage: 0",
    "randomSamplingPercentage: 12.345",
    "randomSamplingPercentage: 100",
    "randomSamplingPercentage: null",
    "disableSpanReporting: null, enableIstioTags: null, useRequestIdForTraceSampling: null, disableContextPropagation: null",
  ),
  ...customTag(
    "a: { literal: { value: b } }",
    "a: { header: { name: b } }",
    "a: { environment: { name: B, defaultValue: '' } }",
    "a: { formatter: { value: '%REQ(B)%' } }",
  ),
  ...metrics("reportingInterval: 1ms", "reportingInterval: 5s", "reportingInterval: 1h30m", "providers: [{ name: a }]"),
  ...override("", "disabled: null", "match: {}", "match: { mode: SERVER }", "match: { customMetric: a.b }"),
  ...tagOverride("a: { value: '1' }", "a: { operation: UPSERT, value: request.host }", "a: { operation: REMOVE }"),
  ...accessLogging(
    "disabled: null",
    "filter: { expression: 'true' }",
    "filter: { expression: 'connection.mtls && has(request.headers.x)' }",
    "providers: [{ name: nobody }]",
  ),
];

const refused: readonly Case[] = [
  { kind: "ServiceEntry", spec: "{ hosts: [] }" },
  ...entry(
    "resolution: NONE, endpoints: [{ address: 10.0.0.1 }]",
    "endpoints: [{ address: 10.0.0.1 }]",
    "resolution: SOMEHOW",
    "location: MESH_SOMEWHERE",
    "resolution: DNS, addresses: [10.0.0.0/8]",
    "resolution: STATIC, addresses: [10.0.0.0/33]",
    "resolution: STATIC, addresses: [a.b]",
    "resolution: STATIC, workloadSelector: { labels: { a: b } }, endpoints: [{ address: 10.0.0.1 }]",
    "resolution: STATIC, workloadSelector: { labels: { a: '*' } }",
    "resolution: DNS_ROUND_ROBIN, endpoints: [{ address: c.d }, { address: d.e }]",
    "resolution: DNS, endpoints: [{ address: 'a b' }]",
    "exportTo: [a, a]",
    "exportTo: ['*', a]",
    "exportTo: ['A b']",
  ),
  ...entryHosts("'*'", "a_b.c", "'a.*'", "''"),
  { kind: "ServiceEntry", spec: "{ hosts: ['*.a.b'], resolution: DNS }" },
  {
    kind: "ServiceEntry",
    spec: "{ hosts: [a.b, c.d], resolution: STATIC, ports: [{ number: 80, name: a, protocol: TCP }] }",
  },
  { kind: "ServiceEntry", spec: "{ hosts: [a.b, c.d], resolution: STATIC, ports: [{ number: 80, name: a }] }" },
  ...entryPorts(
    "{ number: 0, name: a }",
    "{ number: 65536, name: a }",
    "{ number: 80 }",
    "{ number: 80, name: 'A b' }",
    "{ number: 80, name: a, protocol: HTTP3 }",
    "{ number: 80, name: a, targetPort: 70000 }",
    "{ number: 80, name: a }, { number: 81, name: a }",
    "{ number: 80, name: a }, { number: 80, name: b }",
  ),
  ...endpoints(
    "{}",
    "{ address: a.b }",
    "{ address: 10.0.0.1, ports: { b: 90 } }",
    "{ address: 10.0.0.1, ports: { a: 0 } }",
    "{ address: 10.0.0.1, labels: { 'a b': c } }",
    "{ address: 10.0.0.1, weight: -1 }",
  ),
  ...workload(
    "",
    "address: 'a b'",
    "address: 10.0.0.1, ports: { 'A b': 1 }",
    "address: 10.0.0.1, labels: { a: 'b c' }",
  ),
  ...group(
    "",
    "template: {}, metadata: { labels: { a: 'b c' } }",
    "template: {}, probe: {}",
    "template: {}, probe: { tcpSocket: { port: 0 } }",
    "template: {}, probe: { httpGet: { port: 80, scheme: FTP } }",
    "template: {}, probe: { httpGet: { port: 80, httpHeaders: [{ name: 'a b' }] } }",
    "template: {}, probe: { exec: { command: [] } }",
    "template: {}, probe: { tcpSocket: { port: 80 }, periodSeconds: -1 }",
  ),
  ...hosts("", "a", "ns/a", "'~/a.b'", "'a b/a.b'", "'*-a.b'", "a_b.c", "300.1.1.1", "'::1'", "'a.*'", "a/b/c.d"),
  ...https(
    "mode: SIMPLE",
    "mode: MUTUAL, serverCertificate: a, privateKey: b",
    "mode: SIMPLE, credentialName: a, credentialNames: [b]",
    "mode: SIMPLE, credentialName: a, serverCertificate: b, privateKey: c",
    "mode: SIMPLE, credentialNames: []",
    "mode: SIMPLE, tlsCertificates: [{ serverCertificate: a }]",
    "mode: SIMPLE, serverCertificate: a, privateKey: b, caCrl: c",
    "mode: ISTIO_MUTUAL, credentialName: a",
    "mode: ISTIO_MUTUAL, credentialNames: [a]",
  ),
  ...plain("mode: SIMPLE, credentialName: a", "privateKey: a", "mode: ISTIO_MUTUAL"),
  ...server(
    "port: { number: 80, name: a, protocol: TCP }, hosts: ['*'], tls: { mode: PASSTHROUGH }",
    "port: { number: 80, name: a, protocol: HTTP, targetPort: 8080 }, hosts: ['*']",
    "port: { number: 80, name: a, protocol: HTTP }, hosts: ['*'], bind: everywhere",
    "port: { number: 443, name: a, protocol: HTTPS }, hosts: ['*']",
  ),
  {
    ...gateway("{ servers: [{ port: { number: 80, name: a, protocol: HTTP }, hosts: ['*'] }] }")[0]!,
    metadata: "{ name: a.b }",
  },
  ...virtualHosts(
    "'*'",
    "a, a",
    "'*.foo.bar', '*.bar'",
    "'*.bar', a.bar",
    "a.bar, '*.bar'",
    "a_b",
    "'a.*'",
    "'**'",
    "300.1.1.1",
  ),
  ...atGateway("'*', a.b", "'*-'"),
  ...gateways("./g", "ns/g.h", "a/b/c", "/g", "a_b"),
  ...destination("host: '*'", "host: 300.1.1.1", "host: a, subset: a_b", "host: a_b"),
  ...route(
    "match: [{ headers: { '@request.auth.claims.a': { exact: b } } }]",
    "match: [{ withoutHeaders: { '@request.auth.claims[a]': { exact: b } } }]",
    "match: [{ method: { prefix: '' } }]",
    "fault: {}",
    "fault: { abort: { http2Error: a } }",
    "fault: { delay: { exponentialDelay: 1s } }",
    "rewrite: {}",
    "rewrite: { uriRegexRewrite: { match: a } }",
    "rewrite: { uri: a, uriRegexRewrite: { match: a, rewrite: b } }",
    "retries: { attempts: 0, retryRemoteLocalities: true }",
    "retries: { retryOn: 5xx }",
  ),
  ...action("redirect: {}", "directResponse: { status: 100 }", "directResponse: { status: 601 }", "name: a"),
  ...tls("", "{ sniHosts: [] }", "{ sniHosts: [c.com] }", "{ sniHosts: ['*.com'] }", "{ sniHosts: ['*.a.com'] }"),
  ...virtualService(
    "{ hosts: [a] }",
    "{ tcp: [{ route: [{ destination: { host: a } }] }] }",
    "{ hosts: [a.b], gateways: [g], tcp: [{ match: [{ destinationSubnets: [here] }], route: [{ destination: { host: a } }] }] }",
  ),
  ...rule(
    "host: 10.0.0.1",
    "host: 'a:80'",
    "host: a, exportTo: ['*', a]",
    "host: a, exportTo: [a, a]",
    "host: a, exportTo: ['~']",
    "host: a, exportTo: [b], workloadSelector: { matchLabels: { a: b } }",
    "host: a, exportTo: ['*'], workloadSelector: { matchLabels: { a: b } }",
    "host: a, subsets: [{ name: a_b }]",
    "host: a, subsets: [{ name: a }, { name: a }]",
    "host: a, workloadSelector: { matchLabels: { a: '*' } }",
  ),
  ...traffic(
    "{}",
    "{ portLevelSettings: [] }",
    "{ portLevelSettings: [{ port: { number: 80 } }] }",
    "{ connectionPool: {} }",
    "{ connectionPool: { http: { http2KeepAlive: { interval: 1s } } } }",
    "{ connectionPool: { http: { h2UpgradePolicy: UPGRADE, useClientProtocol: true } } }",
    "{ outlierDetection: { consecutiveLocalOriginFailures: 3 } }",
    "{ portLevelSettings: [{ port: { number: 80 }, outlierDetection: { consecutiveLocalOriginFailures: 3 } }] }",
    "{ loadBalancer: { consistentHash: { useSourceIp: true, maglev: { tableSize: 4 } } } }",
    "{ loadBalancer: { consistentHash: { useSourceIp: true, maglev: {} } } }",
    "{ loadBalancer: { consistentHash: { httpCookie: { name: a, attributes: [{ name: b }, { name: b }] } } } }",
    "{ loadBalancer: { localityLbSetting: { distribute: [{ from: a/*, to: { a/*: 80 } }] } } }",
    "{ loadBalancer: { localityLbSetting: { distribute: [{ from: a/*, to: { a/*: 80, a/b: 20 } }] } } }",
    "{ loadBalancer: { localityLbSetting: { failover: [{ from: a, to: a }] } } }",
    "{ loadBalancer: { localityLbSetting: {}, zoneAwareLbSetting: {} } }",
    "{ tunnel: { targetHost: a, targetPort: 80 }, proxyProtocol: { version: V1 } }",
    "{ tunnel: { protocol: TCP, targetHost: a, targetPort: 80 } }",
    "{ tls: { mode: MUTUAL, clientCertificate: a } }",
    "{ tls: { mode: SIMPLE, credentialName: a, caCertificates: b } }",
    "{ tls: { mode: SIMPLE, insecureSkipVerify: true, subjectAltNames: [a] } }",
  ),
  ...policy(
    "{ action: DENY }",
    "{ action: DENY, rules: [] }",
    "{ action: CUSTOM, provider: { name: a }, rules: [] }",
    "{ selector: { matchLabels: { a: '*' } } }",
    "{ selector: { matchLabels: { '': a } } }",
    "{ selector: {}, targetRefs: [] }",
    "{ targetRefs: [{ kind: Deployment, name: a }] }",
    "{ targetRefs: [{ kind: Service, name: a, namespace: b }] }",
  ),
  ...jwt(
    "audiences: [a]",
    "jwks: '{\"keys\":[]}'",
    `${issued}, outputClaimToHeaders: [{ header: 'abc%123', claim: a }]`,
    `${issued}, outputClaimToHeaders: [{ header: a, claim: '' }]`,
    `${issued}, fromParams: ['']`,
    "issuer: a, jwksUri: 'ftp://a'",
  ),
  ...target(
    "selector: {}, targetRef: { kind: Service, name: a }",
    "targetRef: { kind: Service, name: a }, targetRefs: [{ kind: Service, name: b }]",
    "targetRef: { kind: Gateway, name: a }",
  ),
  ...peer(
    "{ portLevelMtls: {} }",
    "{ portLevelMtls: { 80: { mode: STRICT } } }",
    "{ selector: { matchLabels: { a: b } }, portLevelMtls: {} }",
    "{ selector: { matchLabels: { a: b } }, portLevelMtls: { 0: { mode: STRICT } } }",
  ),
  ...telemetry(
    "{ selector: {}, targetRefs: [] }",
    "{ selector: {}, targetRef: { group: gateway.networking.k8s.io, kind: Gateway, name: a } }",
    "{ targetRef: { kind: Service, name: a }, targetRefs: [{ kind: Service, name: b }] }",
    "{ targetRef: { kind: Gateway, name: a } }",
    "{ targetRef: { kind: Deployment, name: a } }",
    "{ targetRef: { kind: Service, name: a, namespace: b } }",
    "{ targetRef: { kind: Service } }",
    "{ selector: { matchLabels: { a: '*' } } }",
    "{ selector: { matchLabels: { '': a } } }",
    "{ tracing: {} }",
  ),
  ...tracing(
    "providers: [{}]",
    "providers: [{ name: '' }]",
    "match: { mode: BOTH }",
    "randomSamplingPercentage: 100.1",
    "randomSamplingPercentage: -1",
    "randomSamplingPercentage: '5'",
  ),
  ...customTag(
    "a: { literal: {} }",
    "a: { literal: { value: '' } }",
    "a: { header: {} }",
    "a: { header: { name: '' } }",
    "a: { environment: {} }",
    "a: { formatter: {} }",
    "a: { literal: { value: b }, header: { name: c } }",
    "'': { literal: { value: b } }",
  ),
  ...metrics(
    "providers: [{}]",
    "reportingInterval: 0s",
    "reportingInterval: 500us",
    "reportingInterval: '5'",
    "reportingInterval: often",
  ),
  ...override(
    "match: { metric: REQUESTS }",
    "match: { metric: REQUEST_COUNT, customMetric: a }",
    "match: { customMetric: '' }",
    "match: { mode: BOTH }",
  ),
  ...tagOverride(
    "a: {}",
    "a: { operation: UPSERT }",
    "a: { operation: UPSERT, value: '' }",
    "a: { operation: REMOVE, value: b }",
    "a: { operation: REMOVE, value: '' }",
    "a: { operation: ADD, value: b }",
  ),
  ...accessLogging("filter: { expression: 'a ==' }", "filter: { expression: '' }", "filter: {}", "providers: [{}]"),
  dryRun("maybe", "{ rules: [{}] }"),
  dryRun("true", "{ action: AUDIT, rules: [{}] }"),
  dryRun("true", "{ action: CUSTOM, provider: { name: a }, rules: [{}] }"),
  dryRun("true", "{}", "PeerAuthentication"),
];

/**
 * What Istio takes and no proxy can do, or no Envoy acknowledges, and what is said of it: what stands there is left out
 * alone.
 */
const strictHere: readonly (readonly [Case, RegExp])[] = [
  [customTag("a: {}")[0]!, /does not say where its value comes from/],
  [customTag("a: { formatter: { value: '%NO_OPERATOR%' } }")[0]!, /has no format/],
  [customTag("a: { header: { name: 'b c' } }")[0]!, /names no header/],
  [tagOverride("a: { value: 'b ==' }")[0]!, /is not expected/],
  [tagOverride("a: { value: a }")[0]!, /reads a, which is no attribute/],
  [accessLogging("filter: { expression: 'nosuch(request.path)' }")[0]!, /is no function/],
];

function errorsOf({ kind, spec, metadata = "{ name: a }" }: Case): readonly Finding[] {
  const text = `{ apiVersion: ${groups[kind]}, kind: ${kind}, metadata: ${metadata}, spec: ${spec} }`;
  const { resources, findings } = loadText(text, "case.yaml");
  // What depends on other resources (who is meant, which providers there are) is no part of Istio's verdict.
  const alone = kind === "Telemetry" ? analyze(resources).filter(({ code }) => code === "IST0106") : [];
  return [...findings, ...alone].filter(({ severity }) => severity === "error");
}

for (const [index, each] of accepted.entries()) {
  test(`Istio takes ${index}: ${each.kind} ${each.spec}`, () => {
    // What is not built yet may be refused for another reason than Istio has.
    assert.deepEqual(
      errorsOf(each).filter(({ code }) => code !== "TUL0001"),
      [],
    );
  });
}
for (const [index, each] of refused.entries()) {
  test(`Istio refuses ${index}: ${each.kind} ${each.spec}${each.metadata ?? ""}`, () => {
    assert.notDeepEqual(errorsOf(each), []);
  });
}
for (const [each, reason] of strictHere) {
  test(`Istio takes, and here it is an error: ${each.spec}`, () => {
    const [error, ...others] = errorsOf(each);
    assert.match(error?.message ?? "", reason);
    assert.deepEqual(others, []);
  });
}
