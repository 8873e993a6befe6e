// Secrets of sign-ins, in queries, fragments and headers, however they are written: they stand in no line of any kind
// of log and in no span, of both proxies, whatever the formats ask for.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { ExportLogsServiceRequestSchema } from "@tulle/xds/opentelemetry/proto/collector/logs/v1/logs_service_pb";
import { stringify } from "yaml";
import { AccessLogService } from "../../packages/proxy/src/testing/access-log-service.ts";
import { TraceCollector } from "../../packages/proxy/src/testing/trace-collector.ts";
import { exchangeStream } from "../tools/http2-client.ts";
import { MeshedProxies, type ProxyKind, type RunningPod } from "../tools/meshed-proxies.ts";
import { waitFor } from "../tools/processes.ts";
import { exchangeBytes } from "../tools/raw-client.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { serviceManifests, telemetry } from "./telemetry/telemetry-stage.ts";

const namespace = "shop";
const outboundPort = 15_007;
const appPort = 3000;
const kinds: readonly ProxyKind[] = ["tulle", "envoy"];

/** A part of it is enough to know it by: a limit may have cut the rest. */
const part = "Zq9";
const secret = part.repeat(6);

interface Row {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Before there is a span; logged it is. */
  readonly isRefused?: true;
}

const headers = {
  authorization: `Bearer ${secret}`,
  cookie: `sid=${secret}; b=1`,
  "proxy-authorization": secret,
  "x-api-key": secret,
};
const rows: Readonly<Record<string, Row>> = {
  "a code and a state": { path: `/cb?code=${secret}&state=${secret}` },
  "tokens and hints": { path: `/cb?x=1&id_token_hint=${secret}&access_token=${secret}&client_secret=${secret}` },
  "names in upper case": { path: `/cb?CODE=${secret}&State=${secret}` },
  "names that are escaped": { path: `/cb?c%6fde=${secret}&%73tate=${secret}&%63%6F%64%65=${secret}` },
  "escapes that are none": { path: `/cb?%zz=1&a%=2&%ff;c%6fde=${secret}&code=%${secret}` },
  "parameters parted by semicolons": { path: `/cb?a=1;code=${secret};${secret}` },
  "a value with what parts others": { path: `/cb?code=${secret};${secret}?${secret}&a=1` },
  "one name several times": { path: `/cb?code=1&code=${secret}&code=&code=${secret}` },
  "a name with brackets": { path: `/cb?code[]=${secret}&code%5B1%5D=${secret}` },
  "blanks round a name": { path: `/cb?+code=${secret}&%20state%20=${secret}` },
  "two question marks": { path: `/cb??code=${secret}&a=?&state=${secret}` },
  "an address in a value": { path: `/in?to=/cb?code=${secret}` },
  "an escaped address in a value": { path: `/in?to=https%3A%2F%2Fa%2Fcb%3Fcode%3D${secret}%26state%3D${secret}` },
  "one escaped twice": { path: `/in?to=%2Fin%3Fto%3D%252Fcb%253Fcode%253D${secret}` },
  "a fragment": { path: `/cb?a=1#access_token=${secret}`, isRefused: true },
  "a fragment without a query": { path: `/cb#access_token=${secret}&state=${secret}`, isRefused: true },
  "a limit that cuts within a value": { path: `/${"a".repeat(28)}?code=${secret}` },
  "a limit of spans that cuts within a value": { path: `/${"a".repeat(240)}?code=${secret}` },
  "a path of 6,000 characters": { path: `/${"a".repeat(3000)}?${"b=1&".repeat(750)}code=${secret}` },
  "addresses in headers": {
    path: "/",
    headers: {
      referer: `https://a.test/cb?code=${secret}#access_token=${secret}`,
      "x-original-uri": `/cb?code=${secret}`,
      "x-forwarded-uri": `/cb?token=${secret}`,
    },
  },
  "credentials in headers": { path: "/", headers },
};

/** What no configuration keeps an Envoy from. */
const envoyTells: Readonly<Record<string, string>> = {
  "a fragment without a query": "it leaves out what comes behind a question mark alone, and refuses the request",
};

const operators = [
  ":PATH",
  "X-ENVOY-ORIGINAL-PATH?:PATH",
  "REFERER",
  "X-ORIGINAL-URI",
  "X-FORWARDED-URI",
  "COOKIE",
  "AUTHORIZATION",
  "X-NONE?PROXY-AUTHORIZATION",
  "X-API-KEY",
]
  .flatMap((name) => [`REQ(${name})`, `REQ(${name}):40`, `REQUEST_HEADER(${name})`, `STREAM_INFO_REQ(${name})`])
  .concat(
    "PATH PATH(WQ) PATH(WQ:PATH) PATH(WQ:ORIG) RESP(LOCATION) RESP(SET-COOKIE) RESPONSE_HEADER(Location) TRAILER(SET-COOKIE)",
    "QUERY_PARAM(code) QUERY_PARAM(CODE) QUERY_PARAM(state) QUERY_PARAMS QUERY_PARAMS(ORIG) QUERY_PARAMS(DECODED)",
    "CEL(request.path) CEL(request.query) CEL(request.referer) TYPED_CEL([request.path]) CEL(request.url_path)",
    "CEL(request.headers['authorization']) CEL(request.headers.cookie) CEL(response.headers['location'])",
    "RESPONSE_CODE_DETAILS RESPONSE_FLAGS DYNAMIC_METADATA(envoy.filters.http.jwt_authn) REQ_WITHOUT_QUERY(COOKIE)",
    'COALESCE({"operators":[{"command":"REQ","param":"cookie"},{"command":"REQ","param":":path"}]})',
  )
  .flatMap((texts) => (texts.includes(" ") && !texts.startsWith("COALESCE") ? texts.split(" ") : [texts]));
const text = `%REQ(X-ROW)% ${operators.map((operator) => `%${operator}%`.replace(/(\)):40%$/, "$1:40%")).join(" ")}`;
const labels = Object.fromEntries([
  ["row", "%REQ(X-ROW)%"],
  ...operators.map((operator, index) => [`of-${index}`, `%${operator}%`] as const),
]);
/** What asks for nothing that would have to be rewritten. */
const plainText = "%REQ(X-ROW)% %RESP(LOCATION)% %CEL(request.path)%";
/** The author wants no query at all, and has asked for more besides. */
const ownText = "%REQ(X-ROW)% %REQ_WITHOUT_QUERY(:PATH)% %RESP(LOCATION)% %CEL(request.query)% %REQ(COOKIE)%";
const askedHeaders = [...Object.keys(headers), "referer", "x-original-uri", ":path"];

const service = "collector.observability.svc.cluster.local";
const mesh = (folder: string): object => {
  const file = (name: string, logFormat: object) => ({
    name,
    envoyFileAccessLog: { path: `${folder}/${name}`, logFormat },
  });
  return {
    extensionProviders: [
      file("text", { text }),
      file("json", { labels }),
      file("plain", { text: plainText }),
      file("own", { text: ownText }),
      file("filtered", { text }),
      { name: "stdout", envoyFileAccessLog: { path: "/dev/stdout", logFormat: { text: `to stdout ${text}` } } },
      { name: "records", envoyOtelAls: { service, port: 4317, logFormat: { text, labels } } },
      {
        name: "entries",
        envoyHttpAls: {
          service,
          port: 9000,
          additionalRequestHeadersToLog: ["x-row", ...askedHeaders],
          additionalResponseHeadersToLog: ["location", "set-cookie"],
        },
      },
      { name: "spans", opentelemetry: { service, port: 4318, http: { path: "/v1/traces" } } },
    ],
  };
};
const logs = ["text", "json", "plain", "own", "filtered", "stdout", "records", "entries"];
const customTags = Object.fromEntries([
  ...askedHeaders.map((name, index) => [`header-${index}`, { header: { name } }] as const),
  ...["%REQ(:PATH)%", "%REQ(COOKIE)% %REQ(REFERER)%", "%QUERY_PARAMS% %RESP(LOCATION)%"].map(
    (value, index) => [`format-${index}`, { formatter: { value } }] as const,
  ),
]);
const spec = {
  tracing: [{ providers: [{ name: "spans" }], randomSamplingPercentage: 100, customTags }],
  accessLogging: logs.map((name) => ({
    providers: [{ name }],
    ...(name === "filtered" && { filter: { expression: "request.path != '' && response.code < 1000" } }),
  })),
};

/** Through the proxy as a client by HTTP/1.1 in absolute form; straight to it as a server by HTTP/1.1 and HTTP/2. */
const ways = ["absolute", "origin", "http2"] as const;

describe("secrets stand in no log and in no span", () => {
  const open = new AsyncDisposableStack();
  const folder = temporaryFolder("tulle-secrets-");
  const collector = new TraceCollector();
  const service9000 = new AccessLogService();
  let proxies: MeshedProxies;
  let left: Readonly<Record<string, readonly string[]>> = {};

  const callName = (kind: ProxyKind, row: string, way: string): string =>
    `${kind}-${Object.keys(rows).indexOf(row)}-${way}.`;

  async function startApplication({ appAddress }: RunningPod): Promise<AsyncDisposable> {
    const location = `https://a.test/cb?code=${secret}&state=${secret}#access_token=${secret}`;
    const app = createServer((_request, response) => {
      response.writeHead(302, { location, "set-cookie": `sid=${secret}` }).end();
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    app.listen(appPort, appAddress, resolve);
    await promise;
    return app;
  }

  async function call(kind: ProxyKind, name: string, way: (typeof ways)[number]): Promise<void> {
    const { address } = proxies.pod(`server-${kind}`);
    const { path: asked, headers: own = {} } = rows[name]!;
    const host = `server-${kind}.${namespace}.svc.cluster.local:${appPort}`;
    const all = { ...own, "x-row": callName(kind, name, way), "user-agent": callName(kind, name, way) };
    if (way === "http2") {
      const socket = connect(appPort, address);
      const pseudo = { ":method": "GET", ":scheme": "http", ":authority": host, ":path": asked };
      await exchangeStream(socket, "connect", { headers: { ...pseudo, ...all }, body: [] });
      return;
    }
    const target = way === "absolute" ? `http://${host}${asked}` : asked;
    const lines = Object.entries({ host, ...all, connection: "close" }).map(([each, value]) => `${each}: ${value}`);
    await exchangeBytes({
      host: address,
      port: way === "absolute" ? outboundPort : appPort,
      from: "127.0.0.1",
      bytes: `GET ${target} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`,
    });
  }

  /** What each kind of log has so far, an item a line. */
  function read(): typeof left {
    const output = kinds.map((kind) => proxies.output(`server-${kind}`)).join("\n");
    const files = ["text", "json", "plain", "own", "filtered"].map(
      (name) => [name, linesOf(path.join(folder, name))] as const,
    );
    const schema = ExportLogsServiceRequestSchema;
    const records = collector.logs.flatMap((body) =>
      fromBinary(schema, body).resourceLogs.flatMap(({ scopeLogs }) =>
        scopeLogs.flatMap(({ logRecords }) => logRecords),
      ),
    );
    const text9000 = service9000.messages.flatMap(({ httpLogs }) => httpLogs?.logEntry ?? []);
    return {
      ...Object.fromEntries(files),
      stdout: output.split("\n").filter((line) => line.includes("to stdout ")),
      records: records.map((record) =>
        JSON.stringify(record, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
      ),
      entries: text9000.map((entry) => JSON.stringify(entry)),
      spans: collector.spans.map((span) => JSON.stringify(span)),
    };
  }

  before(
    async () => {
      const ports = await collector.start();
      open.defer(() => collector.close());
      const alsPort = await service9000.start();
      open.defer(() => service9000.close());
      const configMap = {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "tulle", namespace: "tulle-system" },
        data: { mesh: stringify(mesh(folder)) },
      };
      const manifests = [
        configMap,
        ...serviceManifests("collector", {
          "grpc-otlp": [4317, ports.grpcPort],
          "http-otlp": [4318, ports.httpPort],
          "grpc-als": [9000, alsPort],
        }),
        telemetry("all", namespace, spec),
      ];
      proxies = open.use(
        await MeshedProxies.start({
          pods: kinds.map((proxy) => ({ name: `server-${proxy}`, namespace, proxy })),
          ports: [appPort],
          manifests: manifests.map((each) => JSON.stringify(each)).join("\n---\n"),
          startApplication,
        }),
      );
      for (const kind of kinds) {
        for (const name of Object.keys(rows)) for (const way of ways) await call(kind, name, way);
      }
      await Promise.all(kinds.map((kind) => proxies.admin(`server-${kind}`, "/drain_listeners", "POST")));
      const missing = (): readonly string[] => {
        left = read();
        return kinds.flatMap((kind) =>
          Object.keys(rows).flatMap((row) =>
            ways.flatMap((way) =>
              [...logs, ...(rows[row]!.isRefused === true ? [] : ["spans"])]
                .filter((log) => !left[log]!.some((item) => item.includes(callName(kind, row, way))))
                .map((log) => `${log} of ${callName(kind, row, way)}`),
            ),
          ),
        );
      };
      await waitFor(() => missing().length === 0, {
        what: "an item of each call in each log",
        intervalMs: 100,
        details: () => missing().slice(0, 20).join(),
      });
    },
    { timeout: 180_000 },
  );
  after(() => open.disposeAsync());

  for (const kind of kinds) {
    for (const row of Object.keys(rows)) {
      const why = kind === "envoy" ? envoyTells[row] : undefined;
      test(`${kind}: ${row}${why === undefined ? "" : `, told: ${why}`}`, () => {
        const told = Object.entries(left).filter(([log, items]) => {
          const own = items.filter((item) => item.includes(callName(kind, row, "").slice(0, -1)));
          return own.some((item) => shownTo(kind, log, item).includes(part));
        });
        const names = told.map(([log]) => log);
        if (why === undefined) assert.deepEqual(names, []);
        else assert.ok(names.length > 0);
      });
    }
  }
});

/** An Envoy tells the access log service addresses as they are, whatever its configuration says: the rest counts. */
function shownTo(kind: ProxyKind, log: string, item: string): string {
  if (kind === "tulle" || log !== "entries") return item;
  const told = new Set(["path", "originalPath", "referer", ":path", "x-original-uri", "location"]);
  return JSON.stringify(JSON.parse(item, (key, value: unknown) => (told.has(key) ? "" : value)));
}

function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    return [];
  }
}
