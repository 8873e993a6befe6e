// Every operator in the logs of a TCP proxy and of a listener, beside a stock Envoy, in text and in JSON: connections
// that end well, that find no host, that are reset, and that no filter chain takes.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import { after, before, test } from "node:test";
import { freePort, waitFor } from "../../../../tests/tools/processes.ts";
import { extension, fileAccessLog, loopback, staticCluster } from "../testing/envoy-json.ts";
import { comparableValue, operatorCommands } from "../testing/operator-commands.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";

/** What belongs to requests alone has a formatter of its own, which is not there. */
const commands = operatorCommands.filter(({ name }) => name !== "REQ_WITHOUT_QUERY");
const refusingPort = await freePort();
const listeners = ["app", "down", "empty", "none"] as const;
type ListenerName = (typeof listeners)[number];

function jsonLog(path: string): object {
  const json_format = Object.fromEntries(commands.map(({ text }) => [text, text]));
  return {
    name: "envoy.access_loggers.file",
    typed_config: { "@type": extension("access_loggers.file.v3.FileAccessLog"), path, log_format: { json_format } },
  };
}

function bootstrap(port: number, log: string): string {
  const line = `${commands.map(({ text }) => text).join("\t")}\n`;
  const logs = (name: string): readonly object[] => [
    fileAccessLog(`${log}.${name}`, line),
    jsonLog(`${log}.${name}.json`),
  ];
  const listener = (name: ListenerName): object => ({
    name,
    address: loopback(0),
    access_log: logs(`${name}.listener`),
    filter_chains: [
      {
        name: "the chain",
        // Nobody comes from there.
        ...(name === "none" && {
          filter_chain_match: { source_prefix_ranges: [{ address_prefix: "10.9.9.9", prefix_len: 32 }] },
        }),
        filters: [
          {
            name: "envoy.filters.network.tcp_proxy",
            typed_config: {
              "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
              stat_prefix: name,
              cluster: name === "none" ? "app" : name,
              access_log: logs(name),
            },
          },
        ],
      },
    ],
  });
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: listeners.map(listener),
      clusters: [staticCluster("app", [port]), staticCluster("down", [refusingPort]), staticCluster("empty", [])],
    },
  });
}

let sides: Sides;
before(async () => {
  const host = http.createServer((request, response) => {
    if (request.url === "/reset") return void request.socket.resetAndDestroy();
    response.end("ok");
  });
  sides = await startSides(host, listeners.length, bootstrap);
});
after(() => sides?.stop());

async function exchange(port: number, sent: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = net.connect(port, "127.0.0.1", () => socket.write(sent));
  socket.on("error", () => undefined).on("close", () => resolve());
  socket.resume();
  await promise;
}

interface Row {
  readonly name: string;
  readonly listener: ListenerName;
  readonly path: string;
  /** The logs that hear of it. */
  readonly logs: readonly string[];
}

const rows: readonly Row[] = [
  { name: "a connection that ends well", listener: "app", path: "/", logs: ["app", "app.listener"] },
  { name: "one that the host resets", listener: "app", path: "/reset", logs: ["app", "app.listener"] },
  { name: "one whose host refuses", listener: "down", path: "/", logs: ["down", "down.listener"] },
  { name: "one that finds no host", listener: "empty", path: "/", logs: ["empty", "empty.listener"] },
  { name: "one that no filter chain takes", listener: "none", path: "/", logs: ["none.listener"] },
];

const linesOf = ({ log }: Side, name: string): readonly string[] => {
  const file = `${log}.${name}`;
  return (fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "").split("\n").slice(0, -1);
};

for (const { name, listener, path, logs } of rows) {
  test(`${name}: both write the same for each operator`, async () => {
    const seen: Readonly<Record<string, unknown>>[] = [];
    for (const side of [sides.ours, sides.envoy]) {
      const files = logs.flatMap((log) => [log, `${log}.json`]);
      const counts = files.map((file) => linesOf(side, file).length);
      await exchange(side.ports.get(listener)!, `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
      const isWhole = (): boolean => files.every((file, index) => linesOf(side, file).length > counts[index]!);
      await waitFor(isWhole, { what: "the lines" });
      const values: Record<string, unknown> = {};
      for (const log of logs) {
        const text = linesOf(side, log).at(-1)!.split("\t");
        const json = JSON.parse(linesOf(side, `${log}.json`).at(-1)!) as Readonly<Record<string, unknown>>;
        for (const [index, { name: operator, text: command }] of commands.entries()) {
          values[`${log} ${command}`] = comparableValue(operator, text[index]);
          values[`${log} ${command} in JSON`] = comparableValue(operator, json[command]);
        }
      }
      seen.push(values);
    }
    assert.deepEqual(seen[0], seen[1]);
  });
}
