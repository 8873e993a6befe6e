// Header values beyond ASCII in access logs, byte by byte beside a stock Envoy: text and JSON. Envoy writes what is no
// UTF-8 raw into text, so that its log is none either; ours always is.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import { after, before, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { extension, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";

const fileLog = (path: string, format: object): object => ({
  name: "envoy.access_loggers.file",
  typed_config: { "@type": extension("access_loggers.file.v3.FileAccessLog"), path, log_format: format },
});

function bootstrap(port: number, log: string): string {
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "main",
    route_config: {
      virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "app" } }] }],
    },
    http_filters: [router],
    access_log: [
      fileLog(log, { text_format_source: { inline_string: "%REQ(X-ROW)% [%REQ(X-VALUE)%] [%REQ(X-VALUE):2%]\n" } }),
      fileLog(`${log}.json`, {
        json_format: {
          row: "%REQ(X-ROW)%",
          value: "%REQ(X-VALUE)%",
          text: "<%REQ(X-VALUE)%>",
          cut: "%REQ(X-VALUE):2%",
        },
      }),
    ],
  };
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  const listener = { name: "main", address: loopback(0), filter_chains: [{ filters }] };
  const clusters = [staticCluster("app", [port])];
  return JSON.stringify({ admin: { address: loopback(0) }, static_resources: { listeners: [listener], clusters } });
}

const host = http.createServer((_request, response) => response.end("ok"));
const values: readonly string[] = [
  "plain",
  "gr\xc3\xbc\xc3\x9f",
  "\xe6\x97\xa5\xe6\x9c\xac",
  "\xf0\x9f\x98\x80",
  "caf\xe9",
  "\xff\xfe",
  "\xc3(",
  "a\xc3",
  "\xed\xa0\x80",
  "\xc0\xaf",
  "\xf4\x90\x80\x80",
  "\xc2\x9b31m",
  "\x9b31m",
  "\xe2\x80\xae",
  "a\tb",
  'say "x" \\ /',
  "\x7f",
  "\x01",
  "\x1b[31m",
  "<&>'",
  "\xe2\x80\xa8",
  "\xef\xbb\xbfx",
  "\xc3\xbc\xff",
  "\xef\xbf\xbd",
];

let sides: Sides;
before(async () => {
  sides = await startSides(host, 1, bootstrap);
});
after(() => sides?.stop());

async function send(port: number, row: number, value: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = net.connect(port, "127.0.0.1", () => {
    socket.write(
      Buffer.from(
        `GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-row: ${row}\r\nx-value: ${value}\r\n\r\n`,
        "latin1",
      ),
    );
  });
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
  socket.on("end", () => resolve(text.slice(9, 12))).on("error", reject);
  return promise;
}

async function linesOf({ ports, log }: Side) {
  const statuses: string[] = [];
  for (const [row, value] of values.entries()) statuses.push(await send(ports.get("main")!, row, value));
  const read = (path: string): string[] =>
    (fs.existsSync(path) ? fs.readFileSync(path, "latin1") : "").split("\n").slice(0, -1);
  await waitFor(() => read(log).length === values.length && read(`${log}.json`).length === values.length, {
    what: "the access logs",
  });
  return { statuses, text: read(log), json: read(`${log}.json`) };
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
function isUtf8(bytes: string): boolean {
  try {
    utf8.decode(Buffer.from(bytes, "latin1"));
    return true;
  } catch {
    return false;
  }
}

/** Of a log's bytes. */
const parsed = (line: string): unknown => JSON.parse(Buffer.from(line, "latin1").toString());

/** What is between brackets and is not UTF-8, as ours has it: each byte as the character of that number. */
const inUtf8 = (line: string): string =>
  line.replace(/\[([^\]]*)\]/g, (whole, value: string) =>
    isUtf8(value) ? whole : `[${Buffer.from(value).toString("latin1")}]`,
  );

test("what is UTF-8 stands in both logs byte by byte, and what is not is equal in JSON, and UTF-8 in ours", async () => {
  const [ours, envoys] = [await linesOf(sides.ours), await linesOf(sides.envoy)];
  assert.deepEqual(ours.statuses, envoys.statuses);
  assert.deepEqual(ours.json.map(parsed), envoys.json.map(parsed));
  assert.deepEqual(ours.text, envoys.text.map(inUtf8));
  assert.ok(ours.text.every(isUtf8));
  // Where Envoy's own bytes are UTF-8, so is the whole line the same.
  const same = values.flatMap((value, row) => (isUtf8(value) && isUtf8(value.slice(0, 2)) ? [row] : []));
  assert.ok(same.length >= 8);
  for (const row of same) assert.equal(ours.json[row], envoys.json[row]);
  assert.ok(
    envoys.text.some((line) => !isUtf8(line)),
    "or this test shows nothing",
  );
});
