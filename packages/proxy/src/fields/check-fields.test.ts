// A field that is set and not acted on is told of, wherever it stands: no message is read past its row.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DescMessage, type JsonObject, fromBinary } from "@bufbuild/protobuf";
import { ClusterStatusSchema, ClustersSchema, HostStatusSchema } from "@tulle/xds/envoy/admin/v3/clusters_pb";
import { RegexMatcherSchema } from "@tulle/xds/envoy/type/matcher/v3/regex_pb";
import { RouteSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { bootstrapMessage } from "../bootstrap/bootstrap-fields.ts";
import { caresResolverMessage, clusterMessage } from "../compile/cluster-fields.ts";
import { routeMessage } from "../compile/route-fields.ts";
import { secretMessage } from "../compile/tls-fields.ts";
import { extAuthzMessage } from "../filters/http/ext-authz/ext-authz-fields.ts";
import { jwtAuthenticationMessage } from "../filters/http/jwt-authn/jwt-authn-fields.ts";
import { oauth2Message } from "../filters/http/oauth2/oauth2-fields.ts";
import { rbacMessage } from "../filters/http/rbac/rbac-fields.ts";
import { networkExtAuthzMessage } from "../filters/network/ext-authz/network-ext-authz-fields.ts";
import { networkRbacMessage } from "../filters/network/rbac/network-rbac-fields.ts";
import { listenerMessage } from "../listener/listener-fields.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { checkFields } from "./check-fields.ts";
import { type CheckedMessage, checkedMessage } from "./checked-message.ts";
import type { FieldRows } from "./field-row.ts";
import { Place, Problems, problemText } from "./problems.ts";

interface Told {
  readonly name: string;
  readonly message: CheckedMessage;
  readonly config: JsonObject;
  /** The place of the error; a warning's whole text. */
  readonly at: string;
  readonly isWarning?: true;
}

const endpoint = (socketAddress: JsonObject): JsonObject => ({
  load_assignment: {
    cluster_name: "a",
    endpoints: [
      { lb_endpoints: [{ endpoint: { address: { socket_address: { address: "10.0.0.1", ...socketAddress } } } }] },
    ],
  },
});
const policy = (permission: JsonObject): JsonObject => ({
  rules: { policies: { "a b": { permissions: [permission], principals: [{ any: true }] } } },
});

const told: readonly Told[] = [
  {
    name: "a key for client authentication",
    message: oauth2Message,
    config: { config: { private_key_jwt_config: { signing_algorithm: "ES256" } } },
    at: "config.private_key_jwt_config",
  },
  {
    name: "cookies cut into pieces",
    message: oauth2Message,
    config: { config: { token_cookie_chunking: { max_chunks: 2 } } },
    at: "config.token_cookie_chunking",
  },
  {
    name: "a custom matcher, deep in a sign-in",
    message: oauth2Message,
    config: { config: { redirect_path_matcher: { path: { custom: { name: "x" } } } } },
    at: "config.redirect_path_matcher.path.custom",
  },
  {
    name: "retries of token requests by priority",
    message: oauth2Message,
    config: { config: { retry_policy: { retry_priority: { name: "x" } } } },
    at: "config.retry_policy.retry_priority",
  },
  {
    name: "tokens that are not verified",
    message: jwtAuthenticationMessage,
    config: { rules: [{ requires: { requires_any: { requirements: [{ extract_only_without_validation: {} }] } } }] },
    at: "rules[0].requires.requires_any.requirements[0].extract_only_without_validation",
  },
  {
    name: "the status of a failed token, in a map",
    message: jwtAuthenticationMessage,
    config: { providers: { one: { failed_status_in_metadata: "x" } } },
    at: 'providers["one"].failed_status_in_metadata',
  },
  {
    name: "rules by filter state",
    message: jwtAuthenticationMessage,
    config: { filter_state_rules: { name: "x" } },
    at: "filter_state_rules",
  },
  {
    name: "policies by an expression",
    message: rbacMessage,
    config: { rules: { policies: { p: { condition: {} } } } },
    at: 'rules.policies["p"].condition',
  },
  {
    name: "an audit of decisions",
    message: rbacMessage,
    config: { shadow_rules: { audit_logging_options: {} } },
    at: "shadow_rules.audit_logging_options",
  },
  {
    name: "a template of paths, within others",
    message: rbacMessage,
    config: policy({ not_rule: { and_rules: { rules: [{ any: true }, { uri_template: { name: "x" } }] } } }),
    at: 'rules.policies["a b"].permissions[0].not_rule.and_rules.rules[1].uri_template',
  },
  {
    name: "a tree of matchers for connections",
    message: networkRbacMessage,
    config: { matcher: {} },
    at: "matcher",
  },
  {
    name: "decisions about connections that only count",
    message: networkExtAuthzMessage,
    config: { shadow_mode: true },
    at: "shadow_mode",
  },
  {
    name: "an alert to who is denied",
    message: networkExtAuthzMessage,
    config: { send_tls_alert_on_denial: true },
    at: "send_tls_alert_on_denial: ignored: a connection that is denied is closed",
    isWarning: true,
  },
  {
    name: "retries of an authorizer by priority",
    message: extAuthzMessage,
    config: { http_service: { retry_policy: { retry_priority: { name: "x" } } } },
    at: "http_service.retry_policy.retry_priority",
  },
  {
    name: "a resolver of an address",
    message: clusterMessage,
    config: endpoint({ port_value: 1, resolver_name: "x" }),
    at: "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.resolver_name",
  },
  {
    name: "an address in another network namespace",
    message: listenerMessage,
    config: {
      address: { socket_address: { address: "10.0.0.1", port_value: 1, network_namespace_filepath: "/run/netns/a" } },
    },
    at: "address.socket_address.network_namespace_filepath",
  },
  {
    name: "a key whose file is watched by itself",
    message: secretMessage,
    config: { tls_certificate: { private_key: { filename: "/k", watched_directory: { path: "/" } } } },
    at: "tls_certificate.private_key.watched_directory",
  },
  {
    name: "names that are asked for over TCP",
    message: caresResolverMessage,
    config: { dns_resolver_options: { use_tcp_for_dns_lookups: true } },
    at: "dns_resolver_options.use_tcp_for_dns_lookups: ignored: names are asked for over UDP, over TCP where an answer is too long",
    isWarning: true,
  },
  {
    name: "files watched for more than moves",
    message: bootstrapMessage,
    config: { dynamic_resources: { lds_config: { path_config_source: { path: "/l", poll_interval: "1s" } } } },
    at: "dynamic_resources.lds_config.path_config_source.poll_interval",
  },
];

for (const { name, message, config, at, isWarning } of told) {
  test(`told of: ${name}`, () => {
    const problems = new Problems();
    checkFields(message, fromConfiguration(message.schema, config), Place.root, problems);
    assert.deepEqual(problems.list.map(problemText), [isWarning ? at : `${at}: this field is not supported`]);
    assert.equal(problems.hasErrors, isWarning !== true);
  });
}

test("a field that is newer than the descriptors is warned of once, at its place", () => {
  // Route.match (1): fields 200, twice, and 201, both numbers.
  const match = [0xc0, 0x0c, 1, 0xc0, 0x0c, 2, 0xc8, 0x0c, 1];
  const route = fromBinary(RouteSchema, Uint8Array.from([0x0a, match.length, ...match]));
  const problems = new Problems();
  checkFields(routeMessage, route, Place.root, problems);
  assert.deepEqual(problems.list.map(problemText), [
    "match: ignored: field number 200, which is newer than this proxy",
    "match: ignored: field number 201, which is newer than this proxy",
  ]);
  assert.ok(!problems.hasErrors);
});

test("what two parts of the proxy refuse is told once", () => {
  const problems = new Problems();
  problems.error(Place.root.field("a"), "this field is not supported");
  problems.error(Place.root.field("a"), "this field is not supported");
  assert.equal(problems.list.length, 1);
});

interface WrongRows {
  readonly name: string;
  readonly schema: DescMessage;
  readonly rows: readonly FieldRows[];
  readonly expected: RegExp;
}

// Types of which no row has been made.
const generic = ClusterStatusSchema.typeName;
const clusters = ClustersSchema.typeName;
const wrongRows: readonly WrongRows[] = [
  { name: "none", schema: ClustersSchema, rows: [{}], expected: /^Error: \S+Clusters has no row$/ },
  {
    name: "one for the message and none for what it holds",
    schema: ClustersSchema,
    rows: [{ [clusters]: "cluster_statuses" }],
    expected: /ClusterStatus, which \S+Clusters\.cluster_statuses holds, has no row/,
  },
  {
    name: "two",
    schema: ClusterStatusSchema,
    rows: [{ [generic]: "" }, { [generic]: "" }],
    expected: /has two rows/,
  },
  {
    name: "another than before",
    schema: RegexMatcherSchema,
    rows: [{ [RegexMatcherSchema.typeName]: "regex" }],
    expected: /has two rows/,
  },
  {
    name: "one of a field that is not there",
    schema: ClusterStatusSchema,
    rows: [{ [generic]: "x" }],
    expected: /no field x,/,
  },
  {
    name: "one that says two things of a field",
    schema: HostStatusSchema,
    rows: [{ [HostStatusSchema.typeName]: { used: "weight", harmless: { weight: "x" } } }],
    expected: /names weight twice/,
  },
];

for (const { name, schema, rows, expected } of wrongRows) {
  test(`no program with rows such as: ${name}`, () => {
    assert.throws(() => checkedMessage(schema, ...rows), expected);
  });
}
