// Every operator of the table beside a stock Envoy: in text and in JSON, for the same requests. What differs by nature
// (times, ids, ports) is compared by its shape.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { after, before, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { extension, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import { comparableValue as comparable, operatorCommands } from "../testing/operator-commands.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";
import { unavailableOperators } from "./unavailable-operators.ts";

/** These have rows of their own in `byte-operators-parity.test.ts`. */
const commands = operatorCommands.filter(({ name }) => !/_(WIRE|HEADER)_BYTES_/.test(name));
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
  // By its shape alone a time that is not measured would be one, too.
  for (const line of ours.json) assert.notEqual(line["%ROUTE_RESOLUTION_TIME_US%"], 0);
});
