// How access logs tell the end of a gRPC call, on this proxy and on a stock Envoy: what trailers say, else heads, else
// the HTTP status.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { after, before, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { extension, fileAccessLog, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";

const operators = [
  ..."%GRPC_STATUS% %GRPC_STATUS(CAMEL_STRING)% %GRPC_STATUS(SNAKE_STRING)% %GRPC_STATUS(NUMBER)%".split(" "),
  ..."%GRPC_STATUS_NUMBER% %TRAILER(x-t)% %TRAILER(none?grpc-status)% %RESPONSE_TRAILER(X-T):1%".split(" "),
].join(" ");
const trailersPass = { http_protocol_options: { enable_trailers: true } };
const clusterOptions = {
  typed_extension_protocol_options: {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": extension("upstreams.http.v3.HttpProtocolOptions"),
      explicit_http_config: trailersPass,
    },
  },
};

function bootstrap(port: number, log: string): string {
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "main",
    ...trailersPass,
    route_config: {
      virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "app" } }] }],
    },
    http_filters: [router],
    access_log: [fileAccessLog(log, `%REQ(:PATH)% %REQ(CONTENT-TYPE)% %RESPONSE_CODE% ${operators}\n`)],
  };
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  const listener = { name: "main", address: loopback(0), filter_chains: [{ filters }] };
  const clusters = [staticCluster("app", [port], clusterOptions)];
  return JSON.stringify({ admin: { address: loopback(0) }, static_resources: { listeners: [listener], clusters } });
}

/** `/trailer/5`, `/head/5`, `/status/404`. */
const host = http.createServer((request, response) => {
  const [, where, value = ""] = request.url!.split("/");
  if (where === "head") response.writeHead(200, { "grpc-status": value }).end();
  else if (where === "status") response.writeHead(Number(value)).end("no gRPC");
  else {
    response.writeHead(200, { trailer: "grpc-status" });
    response.write("body");
    response.addTrailers({ "grpc-status": value, "x-t": "tr" });
    response.end();
  }
});

const paths = [
  ...Array.from({ length: 18 }, (_, status) => `/trailer/${status}`),
  ..."/trailer/99 /trailer/x /trailer/-1 /head/7 /head/0".split(" "),
  ...[200, 301, 400, 401, 403, 404, 429, 500, 502, 503, 504].map((status) => `/status/${status}`),
];
const types = ["application/grpc", "application/grpc+proto", "application/grpc-web", "text/plain"];

let sides: Sides;
before(async () => {
  sides = await startSides(host, 1, bootstrap);
});
after(() => sides?.stop());

async function linesOf({ ports, log }: Side): Promise<readonly string[]> {
  for (const type of types) {
    for (const path of paths) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const options = {
        host: "127.0.0.1",
        port: ports.get("main"),
        path,
        headers: { "content-type": type },
        agent: false,
      };
      http.get(options, (response) => response.resume().on("end", resolve)).on("error", reject);
      await promise;
    }
  }
  const read = (): readonly string[] =>
    (fs.existsSync(log) ? fs.readFileSync(log, "utf8") : "").split("\n").slice(0, -1);
  await waitFor(() => read().length === types.length * paths.length, { what: "the access log" });
  return read();
}

test("both tell the same status", async () => {
  const [ours, envoys] = [await linesOf(sides.ours), await linesOf(sides.envoy)];
  assert.deepEqual(ours, envoys);
  assert.ok(ours.includes("/trailer/5 application/grpc 200 NotFound NotFound NOT_FOUND 5 5 tr 5 t"));
  assert.ok(ours.includes("/trailer/5 text/plain 200 - - - - - tr 5 t"));
});
