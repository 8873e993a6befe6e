// The admin interface beside a stock Envoy on the same bootstrap: same statuses, types and texts where both know a
// path.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { type TestContext, after, before, test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { type StartedProcess, startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { parseBootstrap } from "../bootstrap/read-bootstrap.ts";
import { type RunningProxy, runProxy } from "../run-proxy.ts";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-admin-"));

const bootstrap = `
node: {id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local", cluster: a.b}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: ingress
          route_config:
            name: local
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: app}}]}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: app
    type: STATIC
    connect_timeout: 1s
    load_assignment:
      cluster_name: app
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}
        - {endpoint: {address: {socket_address: {address: 127.0.0.2, port_value: 1}}}, health_status: UNHEALTHY}
`;

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly cacheControl: string | undefined;
  readonly body: string;
}

function ask(
  port: number,
  method: string,
  target: string,
  headers: http.OutgoingHttpHeaders = {},
  body = "",
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: "127.0.0.1", port, method, path: target, headers, agent: false },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            type: response.headers["content-type"],
            cacheControl: response.headers["cache-control"],
            body: text,
          }),
        );
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

async function start(): Promise<RunningProxy> {
  const logging = new Logging({ sink: () => {}, level: "warning" });
  const proxy = await runProxy({ bootstrap: parseBootstrap(bootstrap, "test"), env: {}, logging });
  await proxy.ready;
  return proxy;
}

let envoyPort = 0;
let envoyProcess: StartedProcess | undefined;
let proxy: RunningProxy;

before(async () => {
  proxy = await start();
  const portFile = path.join(folder, "admin.txt");
  const configFile = path.join(folder, "bootstrap.yaml");
  fs.writeFileSync(configFile, bootstrap);
  const options = ["--disable-hot-restart", "--concurrency", "1", "-l", "warning", "--admin-address-path", portFile];
  envoyProcess = await startProcess(await envoyPath(), ["-c", configFile, ...options]);
  await waitFor(() => fs.existsSync(portFile) && fs.readFileSync(portFile, "utf8").includes(":"), {
    what: "Envoy's port",
  });
  envoyPort = Number(fs.readFileSync(portFile, "utf8").split(":").at(-1));
  await waitFor(async () => (await ask(envoyPort, "GET", "/ready")).status === 200, { what: "Envoy to be ready" });
});

after(async () => {
  await envoyProcess?.stop();
  await proxy.close();
  fs.rmSync(folder, { recursive: true });
});

/** The two know different loggers, counters and ports: only what both must say alike is left. */
function comparable(answer: Answer): Answer {
  const body = answer.body
    .replace(/(active loggers:\n)[^]*$/, "$1")
    .replace(/(admin commands are:\n)[^]*$/, "$1")
    .replace(/127\.0\.0\.1:\d{4,5}/g, "127.0.0.1:PORT")
    .replace(/"port_value": \d{4,5}/g, '"port_value": PORT')
    // RE2 and re2js word the reason each in their own way.
    .replace(/(Invalid re2 regex: ).*/, "$1")
    .replace(/"last_updated": "[^"]*"/g, '"last_updated": TIME');
  return { ...answer, body };
}

for (const [method, target] of [
  ["GET", "/ready"],
  ["POST", "/ready"],
  ["GET", "/help"],
  ["GET", "/nowhere"],
  ["GET", "/clusters"],
  ["GET", "/clusters?filter=^nothing$"],
  ["GET", "/clusters?format=json"],
  ["GET", "/listeners"],
  ["GET", "/listeners?format=json"],
  ["GET", "/certs"],
  ["GET", "/logging"],
  ["DELETE", "/logging"],
  ["POST", "/logging"],
  ["POST", "/logging?level=info"],
  ["POST", "/logging?level="],
  ["POST", "/logging?level=loud"],
  ["POST", "/logging?http=debug"],
  ["POST", "/logging?http=DEBUG"],
  ["POST", "/logging?nothing=debug"],
  ["POST", "/logging?paths=http:debug,router:info"],
  ["POST", "/logging?paths=http:loud"],
  ["POST", "/logging?paths=nothing:debug"],
  ["POST", "/logging?paths=http"],
  ["POST", "/logging?group=http:debug"],
  ["POST", "/logging?a=b&c=d"],
  ["GET", "/quitquitquit"],
  ["GET", "/healthcheck/fail"],
  ["POST", "/healthcheck/fail"],
  ["GET", "/ready"],
  ["POST", "/healthcheck/ok"],
  ["POST", "/reopen_logs"],
  ["GET", "/drain_listeners"],
  ["GET", "/config_dump?resource=nothing"],
  ["GET", "/config_dump?resource=dynamic_listeners"],
  ["GET", "/config_dump?resource=static_clusters"],
  ["GET", "/config_dump?resource=static_route_configs"],
  ["GET", "/stats?filter=^cluster.app.upstream_rq_timeout$"],
  ["GET", "/stats?filter=^cluster.app.upstream_rq_timeout$&format=json"],
  ["GET", "/stats?filter=*"],
  ["GET", "/stats?filter=^http.ingress.downstream_rq_time$"],
  ["GET", "/stats?filter=^http.ingress.downstream_rq_time$&histogram_buckets=cumulative"],
  ["GET", "/stats?filter=^http.ingress.downstream_rq_time$&histogram_buckets=none&format=json"],
  ["GET", "/stats/prometheus?histogram_buckets=disjoint"],
] as const) {
  test(`${method} ${target} answers as Envoy does`, async () => {
    const ours = comparable(await ask(proxy.adminAddress!.port, method, target));
    const theirs = comparable(await ask(envoyPort, method, target));
    assert.deepEqual(ours, theirs);
  });
}

test("/config_dump has Envoy's sections in Envoy's order", async () => {
  for (const target of ["/config_dump", "/config_dump?include_eds"]) {
    const types = async (port: number): Promise<readonly string[]> => {
      const dump = JSON.parse((await ask(port, "GET", target)).body) as { configs: { "@type": string }[] };
      return dump.configs.map((section) => section["@type"]);
    };
    assert.deepEqual(await types(proxy.adminAddress!.port), await types(envoyPort));
  }
});

test("/server_info says which program answers", async () => {
  const info = JSON.parse((await ask(proxy.adminAddress!.port, "GET", "/server_info")).body) as Record<string, unknown>;
  assert.match(String(info["version"]), /^tulle\//);
  assert.equal(info["state"], "LIVE");
  assert.equal((info["node"] as Record<string, unknown>)["id"], "sidecar~127.0.0.1~a.b~b.svc.cluster.local");
});

test("a changed level holds at once, for all loggers or for one", async () => {
  const { port } = proxy.adminAddress!;
  await ask(port, "POST", "/logging?level=error");
  const { body } = await ask(port, "POST", "/logging?http=debug");
  assert.match(body, /\n {2}http: debug\n/);
  assert.match(body, /\n {2}router: error\n/);
  assert.equal(proxy.logging.logger("http").debugEnabled, true);
  for (const name of [
    "admin",
    "config",
    "connection",
    "filter",
    "http",
    "http2",
    "jwt",
    "main",
    "pool",
    "rbac",
    "router",
    "upstream",
  ]) {
    assert.match(body, new RegExp(`\\n  ${name}: `));
  }
  const form = { "content-type": "application/x-www-form-urlencoded" };
  await ask(port, "POST", "/logging", form, "level=info");
  assert.equal(proxy.logging.logger("router").level, "info");
});

test("Prometheus text has the proxy's counters with Envoy's names", async () => {
  const { body } = await ask(proxy.adminAddress!.port, "GET", "/stats/prometheus");
  assert.match(body, /^# TYPE envoy_cluster_upstream_rq_total counter$/m);
  assert.match(body, /^envoy_cluster_upstream_rq_total\{envoy_cluster_name="app"\} 0$/m);
  assert.match(
    body,
    /^envoy_http_downstream_rq_xx\{envoy_response_code_class="2",envoy_http_conn_manager_prefix="ingress"\} 0$/m,
  );
});

test("OpenMetrics and gzip, where they are asked for", async () => {
  const { port } = proxy.adminAddress!;
  const headers = { accept: "application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "accept-encoding": "gzip" };
  const answer = await fetch(`http://127.0.0.1:${port}/stats/prometheus`, { headers });
  assert.match(answer.headers.get("content-type")!, /^application\/openmetrics-text; version=1\.0\.0/);
  assert.equal(answer.headers.get("content-encoding"), "gzip");
  const text = await answer.text();
  assert.match(text, /\n# EOF\n$/);
  assert.match(text, /^envoy_cluster_upstream_rq_total\{envoy_cluster_name="app"\} 0$/m);
  const plain = await ask(port, "GET", "/stats/prometheus", { "accept-encoding": "gzip;q=0" });
  assert.match(plain.body, /^# TYPE envoy_/m);
  assert.doesNotMatch(plain.body, /EOF/);
});

test("a page of another site may not change anything", async () => {
  const { port } = proxy.adminAddress!;
  const foreign = await ask(port, "POST", "/healthcheck/fail", { origin: "https://elsewhere.example" });
  assert.equal(foreign.status, 403);
  const own = await ask(port, "POST", "/healthcheck/ok", {
    origin: `http://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
  });
  assert.equal(own.status, 200);
});

test("names that somebody has pointed here reach nothing", async () => {
  const { port } = proxy.adminAddress!;
  for (const [host, status] of [
    ["evil.example", 403],
    [`evil.example:${port}`, 403],
    ["a b", 403],
    ["localhost", 200],
    [`[::1]:${port}`, 200],
    ["10.1.2.3:15000", 200],
    ["webapp:15000", 200],
  ] as const) {
    assert.equal((await ask(port, "GET", "/config_dump", { host })).status, status, host);
  }
});

test("a target that is no path is an unknown one", async () => {
  for (const target of ["//", "*", "http://other.example:x/"]) {
    assert.equal((await ask(proxy.adminAddress!.port, "GET", target)).status, 404, target);
  }
});

test("draining answers, and quitting ends the proxy", async (t: TestContext) => {
  const other = await start();
  t.after(() => other.close());
  const { port } = other.adminAddress!;
  assert.equal((await ask(port, "POST", "/drain_listeners")).body, "OK\n");
  assert.equal((await ask(port, "POST", "/quitquitquit")).body, "OK\n");
  assert.equal(await other.ended, 0);
});
