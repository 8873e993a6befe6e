// Every operator of the table beside a stock Envoy: in text and in JSON, for the same requests. What differs by nature
// (times, ids, ports) is compared by its shape.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { after, before, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { extension, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";
import { operators } from "./operators.ts";
import { unavailableOperators } from "./unavailable-operators.ts";

/** Arguments for those that need or take some; the others are asked for without. */
const args: Readonly<Record<string, readonly string[]>> = {
  REQ: ["(:PATH)", "(X-NONE?X-A)", "(X-A):2"],
  RESP: ["(X-B)", "(:STATUS)"],
  REQUEST_HEADER: ["(X-A)"],
  RESPONSE_HEADER: ["(X-NONE)"],
  TRAILER: ["(X-T)"],
  RESPONSE_TRAILER: ["(X-T)"],
  REQ_WITHOUT_QUERY: ["(:PATH)"],
  PATH: ["", "(WQ)", "(NQ)", "(NQ:PATH)", "(WQ:ORIG)", "(NQ:ORIG_OR_PATH):3"],
  QUERY_PARAM: ["(a)", "(none)"],
  QUERY_PARAMS: ["", "(ORIG)", "(DECODED)"],
  REQUESTED_SERVER_NAME: ["", "(SNI_ONLY)", "(SNI_FIRST)", "(HOST_FIRST:HOST)", "(SNI_FIRST:ORIG)"],
  START_TIME: ["", "(%Y/%m/%d %H:%M:%S.%3f)"],
  START_TIME_LOCAL: ["", "(%H:%M %z)"],
  EMIT_TIME: ["", "(%s)"],
  EMIT_TIME_LOCAL: ["", "(%F)"],
  COMMON_DURATION: [
    ...["DS_RX_BEG:DS_RX_END", "DS_RX_BEG:US_CX_BEG", "US_CX_BEG:US_CX_END:us", "US_TX_BEG:US_TX_END:ns"].map(
      (each) => `(${each})`,
    ),
    ...["US_RX_BEG:US_RX_END", "US_RX_BEG:US_RX_BODY_BEG:us", "DS_TX_BEG:DS_TX_END", "a:b"].map((each) => `(${each})`),
  ],
  RESPONSE_CODE_DETAILS: ["", "(ALLOW_WHITESPACES)"],
  GRPC_STATUS: ["", "(NUMBER)"],
  ENVIRONMENT: ["(NONE)"],
  DYNAMIC_METADATA: ["(none:key)"],
  CLUSTER_METADATA: ["(of:cluster)", "(of)"],
  UPSTREAM_METADATA: ["(of:host)"],
  METADATA: [
    ...["VIRTUAL_HOST:tulle:revision", "VIRTUAL_HOST:of", "ROUTE:of:number", "ROUTE:of:list", "ROUTE:of"].map(
      (each) => `(${each})`,
    ),
    ...["CLUSTER:of:cluster", "UPSTREAM_HOST:of:host", "LISTENER:of:listener"].map((each) => `(${each})`),
    ...["LISTENER_FILTER_CHAIN:of:chain", "DYNAMIC:a:b"].map((each) => `(${each})`),
  ],
  FILTER_STATE: ["(none)"],
  UPSTREAM_FILTER_STATE: ["(none:PLAIN)"],
  CEL: ["(request.path)", "(response.code)", "(request.url_path.contains('/a'))", "(request.headers['x-a']):1"],
  TYPED_CEL: ["(response.code)", "(request.method == 'GET')"],
  COALESCE: [
    '({"operators":["REQUESTED_SERVER_NAME",{"command":"REQ","param":":authority"}]})',
    '({"operators":[{"command":"REQ","param":"x-a","max_length":2}]})',
  ],
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: ["", "(8)"],
  UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: ["", "(31)"],
  DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: ["", "(0)", "(33)"],
};

/** Compared by shape alone: digits and letters are one another's. */
const byShape = new Set(
  `START_TIME START_TIME_LOCAL EMIT_TIME EMIT_TIME_LOCAL DURATION COMMON_DURATION REQUEST_DURATION REQUEST_TX_DURATION
  RESPONSE_DURATION RESPONSE_TX_DURATION UNIQUE_ID STREAM_ID CONNECTION_ID UPSTREAM_LOCAL_ADDRESS UPSTREAM_LOCAL_PORT
  DOWNSTREAM_REMOTE_ADDRESS DOWNSTREAM_REMOTE_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS DOWNSTREAM_DIRECT_REMOTE_PORT
  DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_PORT DOWNSTREAM_DIRECT_LOCAL_ADDRESS DOWNSTREAM_DIRECT_LOCAL_PORT
  REQUEST_HEADERS_BYTES RESPONSE_HEADERS_BYTES`.split(/\s+/),
);

const commands = Object.keys(operators).flatMap((name) =>
  (args[name] ?? [""]).map((argument) => ({ name, text: `%${name}${argument}%` })),
);
const metadata = (values: object): object => ({ filter_metadata: values });

function fileLog(path: string, format: object): object {
  const withoutQuery = { "@type": extension("formatter.req_without_query.v3.ReqWithoutQuery") };
  const log_format = { ...format, formatters: [{ name: "without query", typed_config: withoutQuery }] };
  const config = { "@type": extension("access_loggers.file.v3.FileAccessLog"), path, log_format };
  return { name: "envoy.access_loggers.file", typed_config: config };
}

function bootstrap(port: number, log: string): string {
  const json = Object.fromEntries(commands.map(({ text }) => [text, text]));
  const more = Object.keys(unavailableOperators).map((name) => `%${name}%`);
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "main",
    http_protocol_options: { enable_trailers: true },
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          metadata: metadata({ tulle: { revision: "a1b2" }, of: { host: true } }),
          routes: [
            { match: { path: "/gone" }, direct_response: { status: 410, body: { inline_string: "gone" } } },
            {
              name: "named",
              match: { prefix: "/" },
              route: { cluster: "app" },
              metadata: metadata({ of: { number: 7, list: ["a", 1], text: "t" } }),
            },
          ],
        },
      ],
    },
    http_filters: [router],
    access_log: [
      fileLog(log, { text_format_source: { inline_string: `${commands.map(({ text }) => text).join("\t")}\n` } }),
      fileLog(`${log}.json`, { json_format: json }),
      fileLog(`${log}.omit`, { json_format: json, omit_empty_values: true }),
      fileLog(`${log}.more`, { text_format_source: { inline_string: `${more.join(" ")}\n` } }),
    ],
  };
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  const chain = { name: "the chain", filters, metadata: metadata({ of: { chain: "c" } }) };
  const cluster = staticCluster("app", [port], { metadata: metadata({ of: { cluster: { deep: [1] } } }) }) as {
    load_assignment: { endpoints: { lb_endpoints: { metadata?: object }[] }[] };
  };
  cluster.load_assignment.endpoints[0]!.lb_endpoints[0]!.metadata = metadata({ of: { host: "h" } });
  const listener = {
    name: "main",
    address: loopback(0),
    filter_chains: [chain],
    metadata: metadata({ of: { listener: { a: "b" } } }),
  };
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: { listeners: [listener], clusters: [cluster] },
  });
}

const calls: readonly (readonly [path: string, headers: Readonly<Record<string, string>>])[] = [
  ["/a/b?a=1&c=%20d", { "x-a": "value", "x-envoy-original-path": "/original?a=2" }],
  ["/gone", { "content-type": "application/grpc" }],
  ["/", {}],
];

let sides: Sides;
before(async () => {
  const host = http.createServer((_request, response) => {
    response.writeHead(200, { "x-b": "b", trailer: "x-t" });
    response.write("body");
    response.addTrailers({ "x-t": "t" });
    response.end();
  });
  sides = await startSides(host, 1, bootstrap);
});
after(() => sides?.stop());

async function linesOf({ ports, log }: Side) {
  for (const [path, headers] of calls) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const options = {
      host: "127.0.0.1",
      port: ports.get("main"),
      path,
      headers: { host: "the.host:80", ...headers },
      agent: false,
    };
    http.get(options, (response) => response.resume().on("end", resolve)).on("error", reject);
    await promise;
  }
  const read = (file: string): readonly string[] =>
    (fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "").split("\n").slice(0, -1);
  const files = [log, `${log}.json`, `${log}.omit`];
  await waitFor(() => files.every((file) => read(file).length === calls.length), { what: "the access logs" });
  return {
    text: read(log).map((line) =>
      Object.fromEntries(line.split("\t").map((value, index) => [commands[index]!.text, value])),
    ),
    json: read(`${log}.json`).map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>),
    omit: read(`${log}.omit`).map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>),
  };
}

/** What is to be equal of a value. */
function comparable(name: string, value: unknown): unknown {
  if (!byShape.has(name) || value === null || value === undefined) return value;
  if (typeof value === "number") return "a number";
  return JSON.stringify(value).replace(/[0-9a-f]+/g, "9");
}

test("both write the same for each operator", async () => {
  const [ours, envoys] = [await linesOf(sides.ours), await linesOf(sides.envoy)];
  const differ: string[] = [];
  for (const kind of ["text", "json", "omit"] as const) {
    for (const [index, [path]] of calls.entries()) {
      for (const { name, text } of commands) {
        const own = comparable(name, ours[kind][index]![text]);
        const theirs = comparable(name, envoys[kind][index]![text]);
        if (JSON.stringify(own) !== JSON.stringify(theirs))
          differ.push(`${kind} ${path} ${text}: ${JSON.stringify(own)}, Envoy ${JSON.stringify(theirs)}`);
      }
    }
  }
  assert.deepEqual(differ, []);
});
