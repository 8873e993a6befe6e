// What needs TLS, a token or a mistake in the configuration, one row each; the plain rules stand in the parity table.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RBACSchema } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import { Place, Problems, problemText } from "../../../fields/problems.ts";
import { fromConfiguration, requestHead } from "../../../testing/from-configuration.ts";
import type { PeerCertificate } from "../../../tls/tls-info.ts";
import { StreamInfo } from "../../../http/stream-info.ts";
import { compileRules } from "./compile-rules.ts";

const any = [{ any: true }];

interface Peer {
  readonly certificate?: Partial<PeerCertificate>;
  readonly serverName?: string;
  readonly metadata?: Record<string, Record<string, unknown>>;
}

function matches(policy: object, { certificate, serverName = "", metadata }: Peer): boolean {
  const problems = new Problems();
  const rules = compileRules(fromConfiguration(RBACSchema, { policies: { p: policy } }), Place.root, problems);
  assert.deepEqual(problems.list, []);
  const request = requestHead();
  const info = new StreamInfo(0, 0, "127.0.0.1:80", "127.0.0.1:4711", serverName);
  info.request = request;
  if (certificate !== undefined) {
    info.downstreamPeerCertificate = { uriSans: [], dnsSans: [], subject: "", ...certificate };
  }
  info.dynamicMetadata = metadata;
  return rules.matchedPolicy(request, info) === "p";
}

const web = "spiffe://cluster.local/ns/shop/sa/web";
const principal = (principal_name: object): object => ({
  permissions: any,
  principals: [{ authenticated: { principal_name } }],
});
const claim = (path: readonly string[], value: object, invert = false): object => ({
  permissions: any,
  principals: [
    { metadata: { filter: "envoy.filters.http.jwt_authn", path: path.map((key) => ({ key })), value, invert } },
  ],
});
const token = (payload: object): Peer => ({ metadata: { "envoy.filters.http.jwt_authn": { payload } } });
const sni = { permissions: [{ requested_server_name: { exact: "a.test" } }], principals: any };
const filterState = {
  permissions: any,
  principals: [{ filter_state: { key: "io.istio.peer_principal", string_match: { exact: web } } }],
};

const rows: readonly {
  readonly name: string;
  readonly policy: object;
  readonly peer: Peer;
  readonly expected: boolean;
}[] = [
  {
    name: "any certificate",
    policy: { permissions: any, principals: [{ authenticated: {} }] },
    peer: { certificate: {} },
    expected: true,
  },
  { name: "no TLS", policy: { permissions: any, principals: [{ authenticated: {} }] }, peer: {}, expected: false },
  { name: "URI SAN", policy: principal({ exact: web }), peer: { certificate: { uriSans: [web] } }, expected: true },
  {
    name: "second URI SAN",
    policy: principal({ exact: web }),
    peer: { certificate: { uriSans: ["x", web] } },
    expected: true,
  },
  {
    name: "another's URI SAN",
    policy: principal({ exact: web }),
    peer: { certificate: { uriSans: [`${web}2`] } },
    expected: false,
  },
  {
    name: "namespace",
    policy: principal({ safe_regex: { regex: ".*/ns/shop/.*" } }),
    peer: { certificate: { uriSans: [web] } },
    expected: true,
  },
  {
    name: "another namespace",
    policy: principal({ safe_regex: { regex: ".*/ns/sho/.*" } }),
    peer: { certificate: { uriSans: [web] } },
    expected: false,
  },
  {
    name: "principal by prefix",
    policy: principal({ prefix: "spiffe://cluster.local/" }),
    peer: { certificate: { uriSans: [web] } },
    expected: true,
  },
  {
    name: "principal by suffix",
    policy: principal({ suffix: "/sa/web" }),
    peer: { certificate: { uriSans: [web] } },
    expected: true,
  },
  {
    name: "DNS SAN",
    policy: principal({ exact: "web.test" }),
    peer: { certificate: { dnsSans: ["web.test"] } },
    expected: true,
  },
  {
    name: "subject",
    policy: principal({ exact: "CN=web" }),
    peer: { certificate: { subject: "CN=web" } },
    expected: true,
  },
  {
    name: "principal of a plain connection",
    policy: principal({ safe_regex: { regex: ".*" } }),
    peer: {},
    expected: false,
  },
  { name: "peer principal", policy: filterState, peer: { certificate: { uriSans: [web] } }, expected: true },
  { name: "no peer principal", policy: filterState, peer: { certificate: { dnsSans: [web] } }, expected: false },
  { name: "server name", policy: sni, peer: { serverName: "a.test" }, expected: true },
  { name: "another server name", policy: sni, peer: { serverName: "b.test" }, expected: false },
  {
    name: "claim",
    policy: claim(["payload", "iss"], { string_match: { exact: "i" } }),
    peer: token({ iss: "i" }),
    expected: true,
  },
  {
    name: "nested claim",
    policy: claim(["payload", "a", "b"], { string_match: { prefix: "x" } }),
    peer: token({ a: { b: "xy" } }),
    expected: true,
  },
  { name: "no token", policy: claim(["payload", "iss"], { string_match: { exact: "i" } }), peer: {}, expected: false },
  {
    name: "inherited name",
    policy: claim(["payload", "constructor"], { present_match: true }),
    peer: token({}),
    expected: false,
  },
  {
    name: "claim in a list",
    policy: claim(["payload", "aud"], { list_match: { one_of: { string_match: { exact: "b" } } } }),
    peer: token({ aud: ["a", "b"] }),
    expected: true,
  },
  {
    name: "text or list",
    policy: claim(["payload", "aud"], {
      or_match: {
        value_matchers: [
          { string_match: { exact: "b" } },
          { list_match: { one_of: { string_match: { exact: "b" } } } },
        ],
      },
    }),
    peer: token({ aud: "b" }),
    expected: true,
  },
  {
    name: "number",
    policy: claim(["payload", "n"], { double_match: { exact: 3 } }),
    peer: token({ n: 3 }),
    expected: true,
  },
  {
    name: "boolean",
    policy: claim(["payload", "f"], { bool_match: false }),
    peer: token({ f: false }),
    expected: true,
  },
  { name: "null", policy: claim(["payload", "f"], { null_match: {} }), peer: token({ f: null }), expected: true },
  { name: "no null", policy: claim(["payload", "f"], { null_match: {} }), peer: token({}), expected: false },
  { name: "inverted", policy: claim(["payload", "f"], { bool_match: true }, true), peer: token({}), expected: true },
];

for (const { name, policy, peer, expected } of rows) {
  test(`${name}: ${expected}`, () => {
    assert.equal(matches(policy, peer), expected);
  });
}

const mistakes: readonly { readonly name: string; readonly policy: object; readonly expected: string }[] = [
  {
    name: "no permission",
    policy: { principals: any },
    expected: 'policies["p"].permissions: value must contain at least 1 item(s)',
  },
  {
    name: "no principal",
    policy: { permissions: any },
    expected: 'policies["p"].principals: value must contain at least 1 item(s)',
  },
  {
    name: "empty permission",
    policy: { permissions: [{}], principals: any },
    expected: 'policies["p"].permissions[0].rule: is required',
  },
  {
    name: "empty principal",
    policy: { permissions: any, principals: [{}] },
    expected: 'policies["p"].principals[0].identifier: is required',
  },
  {
    name: "empty list",
    policy: { permissions: [{ or_rules: {} }], principals: any },
    expected: 'policies["p"].permissions[0].or_rules.rules: value must contain at least 1 item(s)',
  },
  {
    name: "not any",
    policy: { permissions: [{ any: false }], principals: any },
    expected: 'policies["p"].permissions[0].any: value must equal true',
  },
  {
    name: "template",
    policy: { permissions: [{ uri_template: { name: "x" } }], principals: any },
    expected: 'policies["p"].permissions[0].uri_template: this field is not supported',
  },
  {
    name: "regular expression",
    policy: { permissions: [{ url_path: { path: { safe_regex: { regex: "(" } } } }], principals: any },
    expected:
      "policies[\"p\"].permissions[0].url_path.path.safe_regex.regex: invalid regex '(': error parsing regexp: missing closing ): `(`",
  },
  {
    name: "range of ports",
    policy: { permissions: [{ destination_port_range: { start: 5, end: 5 } }], principals: any },
    expected:
      'policies["p"].permissions[0].destination_port_range: range start 5 cannot be greater or equal than range end 5',
  },
  {
    name: "address",
    policy: { permissions: any, principals: [{ remote_ip: { address_prefix: "10.0.0", prefix_len: 8 } }] },
    expected: 'policies["p"].principals[0].remote_ip.address_prefix: malformed IP address: 10.0.0',
  },
  {
    name: "another filter state",
    policy: { permissions: any, principals: [{ filter_state: { key: "x", string_match: { exact: "y" } } }] },
    expected: "policies[\"p\"].principals[0].filter_state.key: only io.istio.peer_principal is known, not 'x'",
  },
  {
    name: "metadata without value",
    policy: { permissions: any, principals: [{ metadata: { filter: "x", path: [{ key: "y" }] } }] },
    expected: 'policies["p"].principals[0].metadata: filter, path and value are required',
  },
];

for (const { name, policy, expected } of mistakes) {
  test(`refused: ${name}`, () => {
    const problems = new Problems();
    compileRules(fromConfiguration(RBACSchema, { policies: { p: policy } }), Place.root, problems);
    assert.deepEqual(problems.list.map(problemText), [expected]);
  });
}
