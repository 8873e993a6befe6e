// Which route configurations are refused, and what of a table is kept when another comes.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import { accepted, fromConfiguration, problemsOf, requestHead } from "../testing/from-configuration.ts";
import type { RouteTable } from "../route/route-table.ts";
import { compileEncodedRoutes, compileRouteConfiguration } from "./compile-route-configuration.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { type Compiled } from "../fields/problems.ts";
import { added, encoded, outcome, routes, scope, to } from "../testing/route-tables.ts";

const refused: readonly { readonly name: string; readonly json: object; readonly expected: readonly string[] }[] = [
  {
    name: "a domain twice",
    json: {
      name: "r",
      virtual_hosts: [
        { name: "a", domains: ["x.com"] },
        { name: "b", domains: ["y.com", "X.com"] },
      ],
    },
    expected: [
      "virtual_hosts[1].domains[1]: Only unique values for domains are permitted. Duplicate entry of domain X.com in route r",
    ],
  },
  {
    name: "line ends in what becomes part of a head",
    json: routes([
      to("c", { prefix: "/a" }, { prefix_rewrite: "/x HTTP/1.1\r\nx: y", host_rewrite_literal: "a\nb" }),
      { match: { prefix: "/" }, redirect: { host_redirect: "a\r", path_redirect: "/\0" } },
    ]),
    expected: [
      "virtual_hosts[0].routes[0].route.prefix_rewrite: control characters are not allowed",
      "virtual_hosts[0].routes[0].route.host_rewrite_literal: control characters are not allowed",
      "virtual_hosts[0].routes[1].redirect.path_redirect: control characters are not allowed",
      "virtual_hosts[0].routes[1].redirect.host_redirect: control characters are not allowed",
    ],
  },
  {
    name: "two wildcards",
    json: {
      name: "r",
      virtual_hosts: [
        { name: "a", domains: ["*"] },
        { name: "b", domains: ["*"] },
      ],
    },
    expected: ["virtual_hosts[1].domains[0]: Only a single wildcard domain is permitted in route r"],
  },
  {
    name: "a virtual host's name twice",
    json: {
      name: "r",
      virtual_hosts: [
        { name: "a", domains: ["x"] },
        { name: "a", domains: ["y"] },
      ],
    },
    expected: [
      "virtual_hosts[1]: Only unique names for virtual hosts are permitted. Duplicate entry of virtual host a",
    ],
  },
  {
    name: "no domains",
    json: { name: "r", virtual_hosts: [{ name: "a" }] },
    expected: ["virtual_hosts[0].domains: value must contain at least 1 item(s)"],
  },
  {
    name: "a bad regex",
    json: routes([to("c", { safe_regex: { regex: "(?=a)" } })]),
    expected: [
      "virtual_hosts[0].routes[0].match.safe_regex.regex: invalid regex '(?=a)': error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
    ],
  },
  {
    name: "weights of nothing",
    json: routes([{ match: { prefix: "/" }, route: { weighted_clusters: { clusters: [{ name: "a", weight: 0 }] } } }]),
    expected: [
      "virtual_hosts[0].routes[0].route.weighted_clusters: Sum of weights in the weighted_cluster must be greater than 0.",
    ],
  },
  {
    name: "fields that would change behaviour",
    json: routes([to("c", { prefix: "/" }, { request_mirror_policies: [{ cluster: "m" }], hedge_policy: {} })]),
    expected: [
      "virtual_hosts[0].routes[0].route.request_mirror_policies: this field is not supported",
      "virtual_hosts[0].routes[0].route.hedge_policy: this field is not supported",
    ],
  },
  {
    name: "an unknown filter's configuration",
    json: routes([
      {
        ...to("c", { prefix: "/" }),
        typed_per_filter_config: {
          limit: { "@type": "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit" },
        },
      },
    ]),
    expected: [
      `virtual_hosts[0].routes[0].typed_per_filter_config["limit"]: Didn't find a registered implementation for type: 'envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit'`,
    ],
  },
  {
    name: "a protected header and an unknown operator",
    json: routes([
      {
        ...to("c", { prefix: "/" }),
        request_headers_to_add: [added(":path", "/x"), added("x", "%NO_SUCH%")],
        request_headers_to_remove: ["host"],
      },
    ]),
    expected: [
      "virtual_hosts[0].routes[0].request_headers_to_remove[0]: :-prefixed or host headers may not be removed",
      "virtual_hosts[0].routes[0].request_headers_to_add[0]: :-prefixed or host headers may not be modified",
      "virtual_hosts[0].routes[0].request_headers_to_add[1].header.value: Not supported field in StreamInfo: NO_SUCH",
    ],
  },
  {
    name: "a body that is too large",
    json: routes(
      [{ match: { prefix: "/" }, direct_response: { status: 200, body: { inline_string: "12345" } } }],
      {},
      { max_direct_response_body_size_bytes: 4 },
    ),
    expected: ["virtual_hosts[0].routes[0].direct_response.body: response body size is 5 bytes; maximum is 4"],
  },
  {
    name: "a missing cluster, when it is asked for",
    json: routes([to("nowhere", { prefix: "/" })], {}, { validate_clusters: true }),
    expected: ["virtual_hosts[0].routes[0].route.cluster: route: unknown cluster 'nowhere'"],
  },
];

for (const { name, json, expected } of refused) {
  test(`refused: ${name}`, async () => {
    const message = fromConfiguration(RouteConfigurationSchema, json);
    const options = { clusterExists: () => false };
    assert.deepEqual(problemsOf(compileRouteConfiguration(message, scope, options)), expected);
    assert.deepEqual(problemsOf(await compileEncodedRoutes(encoded(json), scope, options)), expected);
  });
}

test("compiling in slices gives the same table and lets other work run", async () => {
  const many = Array.from({ length: 5000 }, (_, index) => to(`c${index}`, { path: `/${index}` }));
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const result = accepted(await compileEncodedRoutes(encoded(routes(many)), scope));
  isDone = true;
  assert.equal(outcome(result, { path: "/4999" }), "c4999");
  assert.ok(turns > 1, "nothing else ran");
});

const twoHosts = (first: object[], second: object[], configuration: object = {}): Uint8Array =>
  encoded({
    name: "r",
    virtual_hosts: [
      { name: "first", domains: ["first"], routes: first },
      { name: "second", domains: ["second"], routes: second },
    ],
    ...configuration,
  });

const matchOf = (of: RouteTable, authority: string) => of.match(requestHead({ authority }), () => 0);

for (const { name, next, isKept } of [
  { name: "the same", next: twoHosts([to("a", { prefix: "/" })], [to("c", { prefix: "/" })]), isKept: true },
  { name: "another", next: twoHosts([to("b", { prefix: "/" })], [to("c", { prefix: "/" })]), isKept: false },
  {
    name: "the same in another table",
    next: twoHosts([to("a", { prefix: "/" })], [], { request_headers_to_remove: ["x-a"] }),
    isKept: false,
  },
]) {
  test(`a virtual host that comes again as ${name} is ${isKept ? "kept" : "compiled"}`, async () => {
    const before = twoHosts([to("a", { prefix: "/" })], [to("b", { prefix: "/" })]);
    const previous = accepted(await compileEncodedRoutes(before, scope));
    const match = matchOf(previous, "first");
    const after = accepted(await compileEncodedRoutes(next, scope, { previous }));
    assert.equal(matchOf(after, "first") === match, isKept);
    assert.equal(matchOf(previous, "first"), match, "the table before answers as it did");
    assert.deepEqual(after.clusterNames, accepted(await compileEncodedRoutes(next, scope)).clusterNames);
  });
}

test("a virtual host that is checked against clusters is checked when it comes again", async () => {
  const bytes = twoHosts([to("a", { prefix: "/" })], [], { validate_clusters: true });
  const previous = accepted(await compileEncodedRoutes(bytes, scope, { clusterExists: () => true }));
  const result = await compileEncodedRoutes(bytes, scope, { clusterExists: () => false, previous });
  assert.deepEqual(problemsOf(result), ["virtual_hosts[0].routes[0].route.cluster: route: unknown cluster 'a'"]);
});

test("a body from a file is what the file held when the route came", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tulle-route-"));
  t.after(() => rm(folder, { recursive: true }));
  const filename = join(folder, "body");
  await writeFile(filename, "then");
  const direct = { match: { prefix: "/" }, direct_response: { status: 200, body: { filename } } };
  const before = accepted(await compileEncodedRoutes(encoded(routes([direct])), scope));
  await rm(filename);
  assert.equal(outcome(before, {}), "200 then");
});

test("a file is read again with each change of its table", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tulle-route-"));
  t.after(() => rm(folder, { recursive: true }));
  const filename = join(folder, "body");
  const direct = { match: { prefix: "/" }, direct_response: { status: 200, body: { filename } } };
  await writeFile(filename, "then");
  const previous = accepted(await compileEncodedRoutes(twoHosts([direct], []), scope));
  await writeFile(filename, "now");
  const next = twoHosts([direct], [to("a", { prefix: "/" })]);
  assert.equal(
    outcome(accepted(await compileEncodedRoutes(next, scope, { previous })), { authority: "first" }),
    "200 now",
  );
});

test("a virtual host that is kept does not keep the response that it came with", async () => {
  const direct = { match: { prefix: "/" }, direct_response: { status: 200, body: { inline_bytes: "YWI=" } } };
  const settings = {
    typed_per_filter_config: {
      jwt: { "@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig", disabled: true },
    },
  };
  const compile = (second: object[], previous?: RouteTable): Promise<Compiled<RouteTable>> =>
    compileEncodedRoutes(new Uint8Array(twoHosts([direct], second, settings)), scope, { previous });
  const first = await (async () => {
    const bytes = new Uint8Array(twoHosts([direct], [], settings));
    const compiled = accepted(await compileEncodedRoutes(bytes, scope));
    matchOf(compiled, "first");
    return { compiled, bytes: new WeakRef(bytes.buffer) };
  })();
  const kept = accepted(await compile([to("a", { prefix: "/" })], first.compiled));
  Reflect.deleteProperty(first, "compiled");
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const isGone = (): boolean => {
    collect();
    return first.bytes.deref() === undefined;
  };
  // What has just run may be held for a turn or two by code that is being compiled.
  await waitFor(isGone, { what: "the response to go" });
  assert.equal(outcome(kept, { authority: "first" }), "200 ab");
});

for (const { name, bytes } of [
  { name: "in the table", bytes: twoHosts([], []).subarray(0, 5) },
  { name: "in a host", bytes: Buffer.from([0x12, 0x02, 0x1a, 0x05]) },
  { name: "in a route", bytes: Buffer.from([0x12, 0x04, 0x1a, 0x02, 0x0a, 0x05]) },
]) {
  test(`what is cut short ${name} is refused`, async () => {
    const problems = problemsOf(await compileEncodedRoutes(bytes, scope));
    assert.match(problems.at(-1) ?? "", /^cannot be decoded: /);
  });
}

test("what cannot be compiled for its first request answers 503, and is told of once", async () => {
  const log: LogEntry[] = [];
  const own = detachedScope({ logging: new Logging({ sink: (entry) => log.push(entry) }) });
  const host = (name: string): object => ({ name, domains: [name], routes: [to("c", { prefix: "/" })] });
  const bytes = encoded({ name: "r", virtual_hosts: [host("a"), host("b")] });
  const compiled = await compileEncodedRoutes(bytes, own);
  const table = accepted(compiled);
  assert.equal(outcome(table, { authority: "a" }), "c");
  // As if what was found good were not what is there now.
  bytes.fill(0xff);
  assert.equal(outcome(table, { authority: "b" }), "503 ");
  assert.equal(outcome(table, { authority: "b" }), "503 ");
  assert.equal(outcome(table, { authority: "a" }), "c");
  assert.deepEqual(
    log.map(({ level, fields }) => [level, fields?.["name"]]),
    [["error", "b"]],
  );
});
