// The same routes on this proxy and on a stock Envoy: each request must reach the back end alike, or be answered alike.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { type StartedProcess, startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { parseBootstrap } from "../bootstrap/read-bootstrap.ts";
import { type RunningProxy, runProxy } from "../run-proxy.ts";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-parity-"));
const type = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;

const to = (match: object, extra: object = {}, route: object = {}): object => ({
  match,
  route: { cluster: "app", ...route },
  ...extra,
});
const add = (key: string, value: string, append_action = "APPEND_IF_EXISTS_OR_ADD"): object => ({
  header: { key, value },
  append_action,
});

const mainRoutes = [
  to({ path: "/exact" }, { name: "exact" }),
  to({ prefix: "/case", case_sensitive: false }, { name: "case" }),
  to({ path_separated_prefix: "/sep" }, { name: "sep" }),
  to({ safe_regex: { regex: "/re/[0-9]+" } }, { name: "re" }),
  to({ prefix: "/q", query_parameters: [{ name: "a", string_match: { exact: "1" } }] }, { name: "query" }),
  to({ prefix: "/q", query_parameters: [{ name: "b", present_match: true }] }, { name: "query present" }),
  to({ prefix: "/h", headers: [{ name: "x-n", range_match: { start: "1", end: "10" } }] }, { name: "range" }),
  to(
    { prefix: "/h", headers: [{ name: "x-i", string_match: { exact: "v" }, invert_match: true }] },
    { name: "inverted" },
  ),
  to(
    {
      prefix: "/h",
      headers: [{ name: "x-e", string_match: { exact: "v" }, invert_match: true, treat_missing_header_as_empty: true }],
    },
    { name: "empty" },
  ),
  to({ prefix: "/m", headers: [{ name: ":method", string_match: { exact: "PUT" } }] }, { name: "method" }),
  to({ prefix: "/rw/" }, {}, { prefix_rewrite: "/new/" }),
  to({ path: "/rwx" }, {}, { prefix_rewrite: "/new" }),
  to({ safe_regex: { regex: "/rwr/.*" } }, {}, { prefix_rewrite: "/all" }),
  to({ prefix: "/rx" }, {}, { regex_rewrite: { pattern: { regex: "/(\\w)(\\w)" }, substitution: "/\\2\\1-\\0" } }),
  to({ prefix: "/rz" }, {}, { regex_rewrite: { pattern: { regex: "b*" }, substitution: "-" } }),
  to({ prefix: "/hl" }, {}, { host_rewrite_literal: "new.host", append_x_forwarded_host: true }),
  to({ prefix: "/hh" }, {}, { host_rewrite_header: "x-host" }),
  to(
    { prefix: "/hr" },
    {},
    { host_rewrite_path_regex: { pattern: { regex: "^/hr/(.+)$" }, substitution: "\\1.host" } },
  ),
  to({ prefix: "/ah" }, {}, { auto_host_rewrite: true }),
  to(
    { prefix: "/add" },
    {
      request_headers_to_add: [
        add("x-a", "route"),
        add("x-b", "%REQ(:path)%|%REQ(x-none)%|%PROTOCOL%|100%%"),
        add("x-c", "new", "ADD_IF_ABSENT"),
        add("x-d", "new", "OVERWRITE_IF_EXISTS"),
        add("x-e", "new", "OVERWRITE_IF_EXISTS_OR_ADD"),
        add("x-f", "%REQ(x-none)%"),
      ],
      request_headers_to_remove: ["x-gone"],
      response_headers_to_add: [add("y-a", "%RESPONSE_CODE%"), add("y-b", "%REQ(x-c)%")],
      response_headers_to_remove: ["y-gone"],
    },
  ),
  { match: { prefix: "/rd/https" }, redirect: { https_redirect: true } },
  { match: { prefix: "/rd/host" }, redirect: { host_redirect: "other:81", response_code: "FOUND" } },
  { match: { prefix: "/rd/port" }, redirect: { port_redirect: 8443 } },
  { match: { prefix: "/rd/path" }, redirect: { path_redirect: "/there", response_code: "SEE_OTHER" } },
  { match: { prefix: "/rd/own" }, redirect: { path_redirect: "/there?x=1" } },
  { match: { prefix: "/rd/strip" }, redirect: { path_redirect: "/there", strip_query: true } },
  {
    match: { prefix: "/rd/keep" },
    redirect: { https_redirect: true, strip_query: true, response_code: "PERMANENT_REDIRECT" },
  },
  { match: { prefix: "/rd/pre/" }, redirect: { prefix_rewrite: "/x/", response_code: "TEMPORARY_REDIRECT" } },
  {
    match: { prefix: "/rd/re" },
    redirect: { regex_rewrite: { pattern: { regex: "/(\\d)" }, substitution: "/n\\1" } },
  },
  {
    match: { prefix: "/direct" },
    direct_response: { status: 418, body: { inline_string: "short" } },
    response_headers_to_add: [add("y-a", "%REQ(:path)%")],
  },
  to({ prefix: "/missing" }, {}, { cluster: "nowhere", cluster_not_found_response_code: "NOT_FOUND" }),
  to({ prefix: "/header" }, {}, { cluster: undefined, cluster_header: "x-cluster" }),
  to({ prefix: "/known" }, { name: "known" }),
];

const routeConfig = {
  name: "r",
  validate_clusters: false,
  request_headers_to_add: [add("x-a", "table"), add("x-level", "table", "OVERWRITE_IF_EXISTS_OR_ADD")],
  virtual_hosts: [
    { name: "main", domains: ["main.test", "main.test:*"], routes: mainRoutes, include_request_attempt_count: true },
    ...["*.wild.test", "*-x.wild.test", "pre.*", "exact.wild.test", "port.test:8080"].map((domain) => ({
      name: domain,
      domains: [domain],
      request_headers_to_add: [add("x-level", "host", "OVERWRITE_IF_EXISTS_OR_ADD"), add("x-vhost", domain)],
      routes: [to({ prefix: "/" })],
    })),
    { name: "tls", domains: ["tls.test"], require_tls: "ALL", routes: [to({ prefix: "/" })] },
  ],
};

interface Call {
  readonly path?: string;
  readonly host?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const paths = `
/exact
/exact?q=1
/exact/
/Exact
/CASE/x
/sep
/sep/a
/sepa
/sep?a
/re/12
/re/12/x
/q?a=1
/q?a=2&a=1
/q?b
/q?c
/q?a=%31
/rw/a?b=c
/rwx?b
/rwr/a?b
/rx/ab/cd?ef=/gh
/rzabbc
/hl/a
/hh/a
/hr/name
/ah/a
/add?x
/rd/https/a?b
/rd/host/a?b
/rd/port
/rd/path/a?b
/rd/own?b
/rd/strip?b
/rd/keep/a?b
/rd/pre/a?b
/rd/re/1?2
/direct/a
/missing
/header
/h
/m
/none
/
`;

const calls: readonly Call[] = [
  ...paths
    .trim()
    .split("\n")
    .map((target): Call => ({ path: target })),
  { path: "/h", headers: { "x-n": "9" } },
  { path: "/h", headers: { "x-n": "10", "x-e": "v" } },
  { path: "/h", headers: { "x-n": "nine", "x-i": "v", "x-e": "v" } },
  { path: "/h", headers: { "x-i": "w" } },
  { path: "/m", method: "PUT" },
  { path: "/hh/a", headers: { "x-host": "from.header" } },
  {
    path: "/add",
    headers: { "x-a": "own", "x-c": "own", "x-d": "own", "x-e": "own", "x-gone": "1", "x-level": "own" },
  },
  { path: "/header", headers: { "x-cluster": "app" } },
  { path: "/rd/https", host: "main.test:80" },
  { path: "/rd/port", host: "main.test:80" },
  { host: "a.wild.test" },
  { host: "A.Wild.Test" },
  { host: "exact.wild.test" },
  { host: "b-x.wild.test" },
  { host: "-x.wild.test" },
  { host: "wild.test" },
  { host: ".wild.test" },
  { host: "pre.fix.org" },
  { host: "pre.a.wild.test" },
  { host: "port.test:8080" },
  { host: "port.test" },
  { host: "tls.test", path: "/a?b" },
  { host: "nobody.test" },
];

interface Seen {
  readonly status: number;
  readonly location: string | undefined;
  readonly responseHeaders: Readonly<Record<string, unknown>>;
  /** What the back end got, or the body of an answer that no back end gave. */
  readonly body: unknown;
}

function call(
  port: number,
  { path: target = "/", host = "main.test", method = "GET", headers = {} }: Call,
): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path: target, method, headers: { host, ...headers }, agent: false };
    const request = http.request(options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => {
        const ours = Object.entries(response.headers).filter(([name]) => name.startsWith("y-"));
        resolve({
          status: response.statusCode ?? 0,
          location: response.headers.location,
          responseHeaders: Object.fromEntries(ours),
          body: text.startsWith("{") ? (JSON.parse(text) as unknown) : text,
        });
      });
    });
    request.on("error", reject);
    request.end();
  });
}

const backEnd = http.createServer((request, response) => {
  // Ids differ by nature, and so may the order in which headers are added.
  const headers = Object.fromEntries(
    Object.entries(request.headers)
      .filter(([name]) => name !== "x-request-id")
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  response.setHeader("y-gone", "1");
  response.end(JSON.stringify({ method: request.method, url: request.url, headers }));
});

let proxy: RunningProxy;
let envoyProcess: StartedProcess | undefined;
let envoyPort = 0;

function bootstrap(appPort: number, listenerPort: number): string {
  const address = (port_value: number): object => ({ socket_address: { address: "127.0.0.1", port_value } });
  const manager = {
    "@type": type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "s",
    route_config: routeConfig,
    http_filters: [{ name: "router", typed_config: { "@type": type("filters.http.router.v3.Router") } }],
  };
  const endpoint = { endpoint: { address: address(appPort), hostname: "endpoint.host" } };
  return JSON.stringify({
    admin: { address: address(0) },
    static_resources: {
      listeners: [
        {
          name: "l",
          address: address(listenerPort),
          filter_chains: [
            { filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] },
          ],
        },
      ],
      clusters: [
        {
          name: "app",
          type: "STATIC",
          load_assignment: { cluster_name: "app", endpoints: [{ lb_endpoints: [endpoint] }] },
        },
      ],
    },
  });
}

before(async () => {
  await new Promise<void>((resolve) => {
    backEnd.listen(0, "127.0.0.1", resolve);
  });
  const text = bootstrap((backEnd.address() as net.AddressInfo).port, 0);
  const logging = new Logging({ sink: () => {} });
  proxy = await runProxy({ bootstrap: parseBootstrap(text, "test"), env: {}, logging });
  const configFile = path.join(folder, "bootstrap.json");
  const portFile = path.join(folder, "admin.txt");
  fs.writeFileSync(configFile, text);
  const options = ["--disable-hot-restart", "--concurrency", "1", "-l", "error", "--admin-address-path", portFile];
  envoyProcess = await startProcess(await envoyPath(), ["-c", configFile, ...options]);
  await waitFor(() => fs.existsSync(portFile) && fs.readFileSync(portFile, "utf8").includes(":"), {
    what: "Envoy's port",
  });
  const adminPort = Number(fs.readFileSync(portFile, "utf8").split(":").at(-1));
  envoyPort = await waitFor(
    async () => {
      const listeners = await call(adminPort, { path: "/listeners" });
      return Number(/^l::127\.0\.0\.1:(\d+)/.exec(String(listeners.body))?.[1]);
    },
    { what: "Envoy's listener" },
  );
});

after(async () => {
  await envoyProcess?.stop();
  await proxy.close();
  backEnd.close();
  backEnd.closeAllConnections();
  fs.rmSync(folder, { recursive: true });
});

for (const one of calls) {
  test(`${one.method ?? "GET"} ${one.host ?? ""}${one.path ?? "/"} ${JSON.stringify(one.headers ?? {})}`, async () => {
    const ours = await call(proxy.listenerAddresses().get("l")![0]!.port, one);
    assert.deepEqual(ours, await call(envoyPort, one));
  });
}
