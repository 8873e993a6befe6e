// Rows about what is asked: every field of `to`, and every key of `when`.
import {
  type AuthorizationRow,
  forwardedFor,
  httpPort,
  no,
  only,
  operation,
  otherHttpPort,
  principal,
  token,
  when,
  yes,
  workloads,
} from "./authorization-row.ts";

export const operationRows: readonly AuthorizationRow[] = [
  {
    name: "hosts",
    policies: operation({ hosts: ["A.example.com", "b.*", "*.wild.test"], notHosts: ["b.example.com"] }),
    calls: [
      yes("webapp", "in another case", { host: "a.EXAMPLE.com" }),
      yes("webapp", "prefix", { host: "b.example.org" }),
      yes("webapp", "suffix", { host: "x.wild.test" }),
      no("webapp", "not", { host: "b.example.com" }),
      no("webapp", "other", { host: "c.example.com" }),
      no("webapp", "with a port", { host: "a.example.com:3000" }),
      no("webapp", "a dot at the end", { host: "a.example.com." }),
    ],
  },
  {
    name: "ports",
    policies: operation({ ports: [String(httpPort)] }),
    calls: [yes("webapp", "named"), no("webapp", "other", { port: otherHttpPort })],
  },
  {
    name: "not-ports",
    policies: operation({ notPorts: [String(httpPort)] }),
    calls: [no("webapp", "named"), yes("webapp", "other", { port: otherHttpPort })],
  },
  {
    name: "methods",
    policies: operation({ methods: ["GET", "P*", "*ARCH"], notMethods: ["PATCH"] }),
    calls: [
      yes("webapp", "exact"),
      yes("webapp", "prefix", { method: "PUT" }),
      yes("webapp", "suffix", { method: "SEARCH" }),
      no("webapp", "not", { method: "PATCH" }),
      no("webapp", "other", { method: "DELETE" }),
    ],
  },
  {
    name: "methods-present",
    policies: operation({ methods: ["*"] }),
    calls: [yes("webapp", "any", { method: "DELETE" })],
  },
  {
    name: "paths",
    policies: operation({
      paths: ["/paths/exact", "/paths/prefix/*", "*.suffix", "/paths/%2e"],
      notPaths: ["/paths/prefix/not*"],
    }),
    calls: [
      yes("webapp", "exact", { path: "exact" }),
      yes("webapp", "the query is another matter", { path: "exact?a=/paths/other" }),
      no("webapp", "longer", { path: "exact/" }),
      yes("webapp", "prefix", { path: "prefix/a/b" }),
      no("webapp", "not", { path: "prefix/nothing" }),
      yes("webapp", "suffix", { path: "a.suffix" }),
      no("webapp", "a suffix of the query", { path: "a?b=.suffix" }),
      no("webapp", "another case", { path: "EXACT" }),
      no("webapp", "dots are resolved", { path: "prefix/../other" }),
      yes("webapp", "dots are resolved, to the good", { path: "other/../exact" }),
      no("webapp", "encoded dots are resolved", { path: "prefix/%2e%2e/other" }),
      no("webapp", "encoded letters are decoded", { path: "prefix/%6eot" }),
      { ...no("webapp", "a fragment", { path: "exact#a" }), refusal: "400 " },
    ],
  },
  {
    name: "path-templates",
    policies: operation({ paths: ["/path-templates/{*}/parts", "/path-templates/files/{**}"] }),
    calls: [
      yes("webapp", "a segment", { path: "a/parts" }),
      no("webapp", "two segments", { path: "a/b/parts" }),
      no("webapp", "no segment", { path: "/parts" }),
      yes("webapp", "any rest", { path: "files/a/b" }),
      yes("webapp", "no rest", { path: "files/" }),
    ],
  },
  {
    name: "one-of-two-operations",
    policies: [{ rules: [{ to: [{ operation: { methods: ["GET"] } }, { operation: { hosts: ["b.test"] } }] }] }],
    calls: [
      yes("webapp", "the first"),
      yes("webapp", "the second", { method: "POST", host: "b.test" }),
      no("webapp", "neither", { method: "POST" }),
    ],
  },
];

export const conditionRows: readonly AuthorizationRow[] = [
  {
    name: "request-headers",
    policies: when({ key: "request.headers[X-Role]", values: ["admin", "dev-*", "*-ops"], notValues: ["dev-guest"] }),
    calls: [
      yes("webapp", "exact", { headers: { "x-role": "admin" } }),
      yes("webapp", "prefix", { headers: { "x-role": "dev-a" } }),
      yes("webapp", "suffix", { headers: { "x-role": "night-ops" } }),
      no("webapp", "not", { headers: { "x-role": "dev-guest" } }),
      no("webapp", "another case", { headers: { "x-role": "Admin" } }),
      no("webapp", "missing"),
    ],
  },
  {
    name: "request-headers-present",
    policies: when(
      { key: "request.headers[x-there]", values: ["*"] },
      { key: "request.headers[x-not-there]", notValues: ["*"] },
    ),
    calls: [
      yes("webapp", "there", { headers: { "x-there": "a" } }),
      no("webapp", "missing"),
      no("webapp", "what may not be there", { headers: { "x-there": "a", "x-not-there": "b" } }),
    ],
  },
  {
    name: "source-ip",
    policies: when({ key: "source.ip", values: ["127.31.0.0/16"], notValues: ["127.31.7.0/24"] }),
    calls: [
      yes("webapp", "in the range", { from: "127.31.1.1" }),
      no("webapp", "not", { from: "127.31.7.1" }),
      no("webapp", "other", { from: "127.32.1.1" }),
    ],
  },
  {
    name: "source-namespace",
    policies: when({ key: "source.namespace", values: ["shop*"], notValues: ["shop-next"] }),
    calls: only("webapp", "orders"),
  },
  {
    name: "source-trust-domain",
    policies: when({ key: "source.trustDomain", values: ["cluster.local"], notValues: ["*.test"] }),
    calls: only(...workloads),
  },
  {
    name: "source-account",
    policies: when({ key: "source.serviceAccount", values: ["webapp", "shop/orders", "blog/webapp"] }),
    calls: only("webapp", "orders", "blog"),
  },
  {
    name: "source-not-account",
    policies: when({ key: "source.serviceAccount", notValues: ["shop/orders", "blog/webapp"] }),
    calls: only("webapp", "next", "nobody"),
  },
  {
    name: "source-principal",
    policies: when({ key: "source.principal", values: ["*"], notValues: ["cluster.local/ns/blog/*"] }),
    calls: only("webapp", "orders", "next"),
  },
  {
    name: "source-principal-suffix",
    policies: when({ key: "source.principal", values: ["*/sa/orders", principal] }),
    calls: only("webapp", "orders"),
  },
  {
    name: "remote-ip",
    policies: when({ key: "remote.ip", values: ["10.0.0.0/8"], notValues: ["10.1.0.0/16"] }),
    calls: [
      yes("webapp", "in the range", forwardedFor("10.2.1.1")),
      no("webapp", "not", forwardedFor("10.1.1.1")),
      no("webapp", "other", forwardedFor("192.0.2.1")),
    ],
  },
  {
    name: "auth-principal",
    policies: when({
      key: "request.auth.principal",
      values: ["https://issuer.test/*"],
      notValues: ["https://issuer.test/mallory"],
    }),
    calls: [
      yes("webapp", "prefix", token("a")),
      no("webapp", "not", token("mallory")),
      no("webapp", "no token"),
      no("webapp", "another issuer", { claims: { iss: "https://other.test", sub: "a" } }),
    ],
  },
  {
    name: "auth-audiences",
    policies: when({ key: "request.auth.audiences", values: ["shop", "web-*"], notValues: ["public"] }),
    calls: [
      yes("webapp", "named", { claims: { aud: "shop" } }),
      yes("webapp", "one of several", { claims: { aud: ["shop", "b"] } }),
      yes("webapp", "prefix", { claims: { aud: ["parity", "web-a"] } }),
      no("webapp", "not", { claims: { aud: ["shop", "public"] } }),
      no("webapp", "other", { claims: { aud: "parity" } }),
    ],
  },
  {
    name: "auth-presenter",
    policies: when({ key: "request.auth.presenter", values: ["client"], notValues: ["other"] }),
    calls: [
      yes("webapp", "named", { claims: { azp: "client" } }),
      no("webapp", "other", { claims: { azp: "clients" } }),
      no("webapp", "none", token("a")),
    ],
  },
  {
    name: "auth-claims",
    policies: when({
      key: "request.auth.claims[groups]",
      values: ["admin", "dev-*", "*-ops"],
      notValues: ["dev-guest"],
    }),
    calls: [
      yes("webapp", "in a list", { claims: { groups: ["a", "admin"] } }),
      yes("webapp", "a text", { claims: { groups: "dev-a" } }),
      yes("webapp", "suffix", { claims: { groups: ["night-ops"] } }),
      no("webapp", "not", { claims: { groups: ["admin", "dev-guest"] } }),
      no("webapp", "other", { claims: { groups: ["adm"] } }),
      no("webapp", "a number", { claims: { groups: 7 } }),
      no("webapp", "no claim", { claims: {} }),
      no("webapp", "no token"),
    ],
  },
  {
    name: "auth-claims-nested",
    policies: when({ key: "request.auth.claims[realm][roles]", values: ["admin"] }),
    calls: [
      yes("webapp", "there", { claims: { realm: { roles: ["admin"] } } }),
      no("webapp", "elsewhere", { claims: { roles: ["admin"] } }),
      no("webapp", "a text on the way", { claims: { realm: "roles" } }),
    ],
  },
  {
    name: "auth-claims-present",
    policies: when({ key: "request.auth.claims[groups]", values: ["*"] }),
    calls: [yes("webapp", "any", { claims: { groups: "x" } }), no("webapp", "none", { claims: {} })],
  },
  {
    name: "scope",
    policies: when({ key: "request.auth.claims[scope]", values: ["catalog.write"] }),
    calls: [
      yes("webapp", "one of several", { claims: { scope: "openid catalog.write" } }),
      no("webapp", "part of a word", { claims: { scope: "catalog.writes" } }),
    ],
  },
  {
    name: "destination-ip",
    policies: when({ key: "destination.ip", values: ["127.0.0.0/8"], notValues: ["127.1.0.0/16"] }),
    calls: [yes("webapp", "of the workload")],
  },
  {
    name: "destination-ip-other",
    policies: when({ key: "destination.ip", values: ["10.0.0.0/8"] }),
    calls: [no("webapp", "of another")],
  },
  {
    name: "destination-port",
    policies: when({ key: "destination.port", values: [String(httpPort), "80"], notValues: [String(otherHttpPort)] }),
    calls: [yes("webapp", "named"), no("webapp", "not", { port: otherHttpPort })],
  },
  {
    name: "sni",
    policies: when({
      key: "connection.sni",
      values: ["a.test", "outbound_.*", "*.wild.test"],
      notValues: ["b.wild.test"],
    }),
    calls: [
      yes("webapp", "exact", { sni: "a.test" }),
      yes("webapp", "prefix", { sni: "outbound_.3000_._.server.shop.svc.cluster.local" }),
      yes("webapp", "suffix", { sni: "a.wild.test" }),
      no("webapp", "not", { sni: "b.wild.test" }),
      no("webapp", "other", { sni: "c.test" }),
      no("nobody", "plain text has none"),
    ],
  },
  {
    name: "sni-present",
    policies: when({ key: "connection.sni", values: ["*"] }),
    calls: [yes("webapp", "any", { sni: "c.test" }), no("nobody", "plain text has none")],
  },
  {
    name: "filter-metadata",
    policies: when({ key: "experimental.envoy.filters.http.lua[key]", values: ["a"] }),
    calls: [no("webapp", "nothing writes it")],
  },
  {
    name: "not-filter-metadata",
    policies: when({ key: "experimental.envoy.filters.http.lua[key]", notValues: ["a"] }),
    calls: [yes("webapp", "nothing writes it")],
  },
  {
    name: "all-conditions",
    policies: when(
      { key: "source.namespace", values: ["shop"] },
      { key: "request.headers[x-a]", values: ["1"] },
      { key: "destination.port", values: [String(httpPort)] },
    ),
    calls: [
      yes("webapp", "all", { headers: { "x-a": "1" } }),
      no("blog", "two", { headers: { "x-a": "1" } }),
      no("webapp", "two"),
    ],
  },
];
