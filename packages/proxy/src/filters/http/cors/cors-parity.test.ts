// Calls of pages of other origins on this proxy and on a stock Envoy with the same policies: what the browser is told,
// who answers a preflight, what reaches the host, and the counters.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { versions } from "../../../../../../tests/tools/http2-client.ts";
import { extension } from "../../../testing/envoy-json.ts";
import { type ParityCall, type ParityPair, startParityPair } from "../../../testing/parity-pair.ts";

const name = "envoy.filters.http.cors";
const policy = (settings: object): object => ({
  typed_per_filter_config: { [name]: { "@type": extension("filters.http.cors.v3.CorsPolicy"), ...settings } },
});
const percent = (numerator: number): object => ({ default_value: { numerator } });
const origins = { allow_origin_string_match: [{ exact: "https://a.test" }, { prefix: "https://b." }] };

/** By the first part of the path. */
const policies: Readonly<Record<string, object>> = {
  bare: origins,
  none: {},
  full: {
    ...origins,
    allow_methods: "GET,PUT",
    allow_headers: "content-type,x-grpc-web",
    expose_headers: "grpc-status,grpc-message",
    max_age: "600",
    allow_credentials: true,
    allow_private_network_access: true,
  },
  star: { allow_origin_string_match: [{ exact: "*" }], allow_methods: "*", allow_headers: "*" },
  regex: { allow_origin_string_match: [{ safe_regex: { regex: "https://[a-z]+\\.c\\.test" } }] },
  strict: { ...origins, forward_not_matching_preflights: false, allow_credentials: true, allow_methods: "GET" },
  off: { ...origins, filter_enabled: percent(0) },
  shadow: { ...origins, filter_enabled: percent(0), shadow_enabled: percent(100) },
  both: { ...origins, filter_enabled: percent(100), shadow_enabled: percent(100) },
};

const listeners = [
  {
    name: "routes",
    filters: [{ name, typed_config: { "@type": extension("filters.http.cors.v3.Cors") } }],
    routes: Object.entries(policies).map(([prefix, each]) => ({ match: { prefix: `/${prefix}/` }, ...policy(each) })),
  },
  {
    name: "levels",
    filters: [{ name, typed_config: { "@type": extension("filters.http.cors.v3.Cors") } }],
    manager: {
      route_config: {
        name: "levels",
        ...policy({ max_age: "7", expose_headers: "x-outermost" }),
        virtual_hosts: [
          {
            name: "all",
            domains: ["*"],
            ...policy({ ...origins, allow_methods: "GET", allow_headers: "x-outer", allow_credentials: true }),
            routes: [
              {
                match: { prefix: "/own/" },
                route: { cluster: "app" },
                ...policy({ allow_headers: "x-own", allow_credentials: false }),
              },
              { match: { prefix: "/direct" }, direct_response: { status: 200, body: { inline_string: "direct" } } },
              { match: { prefix: "/missing" }, route: { cluster: "no-such-cluster" } },
              { match: { prefix: "/" }, route: { cluster: "app" } },
            ],
          },
        ],
        validate_clusters: false,
      },
    },
  },
];

const asked = { "access-control-request-method": "PUT", "access-control-request-headers": "x-one,x-two" };
const privately = { ...asked, "access-control-request-private-network": "true" };
const paths = [
  ...Object.keys(policies).map((prefix) => ({ listener: "routes", path: `/${prefix}/` })),
  ...["/", "/own/", "/direct", "/missing"].map((path) => ({ listener: "levels", path })),
];
const calls: readonly ParityCall[] = paths.flatMap((place) => [
  place,
  ...["https://a.test", "https://b.example", "https://x.c.test", "https://evil.test", "null", ""].flatMap((origin) => [
    { ...place, headers: { origin } },
    { ...place, method: "OPTIONS", headers: { origin, ...privately } },
  ]),
  { ...place, method: "OPTIONS", headers: { origin: "https://a.test" } },
  { ...place, method: "OPTIONS", headers: { origin: "https://a.test", "access-control-request-method": "" } },
  { ...place, method: "OPTIONS", headers: asked },
  { ...place, method: "PUT", headers: { origin: "https://a.test", ...asked } },
]);

let pair: ParityPair;
before(async () => {
  pair = await startParityPair(listeners, "none");
});
after(() => pair?.stop());

async function heard(side: "ours" | "envoys", call: ParityCall, version: (typeof versions)[number]): Promise<unknown> {
  const { status, headers, body } = await pair.ask(side, call, version);
  const told = Object.entries(headers).filter(([field]) => /^access-control-|^content-length$|^vary$/.test(field));
  const fromHost = body.startsWith("{");
  return { status, fromHost, body: fromHost ? "" : body, ...Object.fromEntries(told) };
}

test("both tell browsers the same, and count alike", async () => {
  for (const version of versions) {
    for (const call of calls) {
      const [ours, envoys] = [await heard("ours", call, version), await heard("envoys", call, version)];
      assert.deepEqual(ours, envoys, JSON.stringify({ version, ...call }));
    }
  }
  const { ours, envoys } = await pair.counters(/\.cors\./);
  assert.deepEqual(ours, envoys);
  assert.ok(ours["http.routes.cors.origin_valid"]! > 50);
  const { ours: seen, envoys: seenByEnvoy } = await pair.run([
    { listener: "routes", path: "/full/", method: "OPTIONS", headers: { origin: "https://a.test", ...asked } },
  ]);
  assert.deepEqual(seen, seenByEnvoy);
  assert.equal(seen[0]!.details, "cors_response");
});
