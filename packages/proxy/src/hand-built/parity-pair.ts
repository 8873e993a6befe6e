// This proxy and a stock Envoy side by side with the same listeners: a filter's parity table sends each call to both and
// compares the answer, what reached the back end, the access log and the statistics.
import fs from "node:fs";
import http from "node:http";
import type net from "node:net";
import os from "node:os";
import path from "node:path";
import { Logging } from "@tulle/telemetry";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { parseBootstrap } from "../bootstrap/read-bootstrap.ts";
import { runProxy } from "../run-proxy.ts";

export interface ParityListener {
  readonly name: string;
  /** HTTP filters before the router, as JSON. */
  readonly filters: readonly object[];
  /** Routes to the back end are made of these; without any, one for every path. */
  readonly routes?: readonly object[];
  readonly manager?: object;
}

export interface ParityCall {
  readonly listener: string;
  readonly method?: string;
  readonly path?: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

export interface Seen {
  readonly status: number;
  readonly responseHeaders: Readonly<Record<string, unknown>>;
  /** What the back end got, or the body of an answer that no back end gave. */
  readonly body: unknown;
  /** The access log's `%RESPONSE_CODE_DETAILS%` and dynamic metadata. */
  readonly details: string;
  readonly metadata: unknown;
}

export interface ParityPair {
  /** What each of the two made of every call, in the calls' order. */
  run(calls: readonly ParityCall[]): Promise<{ readonly ours: readonly Seen[]; readonly envoys: readonly Seen[] }>;
  /** Values of all counters whose name the expression matches, on each. */
  counters(name: RegExp): Promise<{ readonly ours: Counters; readonly envoys: Counters }>;
  stop(): Promise<void>;
}

export type Counters = Readonly<Record<string, number>>;

interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

const extension = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
const address = (port_value: number): object => ({ socket_address: { address: "127.0.0.1", port_value } });

/** Response headers that a filter may set; the others are the connection manager's. */
const comparedResponseHeaders = ["content-type", "content-length", "www-authenticate"];
/** Differ between two proxies by nature. */
const ownRequestHeaders = new Set(["x-request-id", "x-parity", "x-forwarded-for", "x-envoy-expected-rq-timeout-ms"]);

export async function startParityPair(
  listeners: readonly ParityListener[],
  metadataNamespace: string,
): Promise<ParityPair> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-parity-"));
  const backEnd = http.createServer((request, response) => {
    const headers = Object.fromEntries(
      Object.entries(request.headersDistinct)
        .filter(([name]) => !ownRequestHeaders.has(name))
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
    response.end(JSON.stringify({ method: request.method, url: request.url, headers }));
  });
  await new Promise<void>((resolve) => {
    backEnd.listen(0, "127.0.0.1", resolve);
  });
  const { port: backEndPort } = backEnd.address() as net.AddressInfo;
  const logs = { ours: path.join(folder, "ours.log"), envoys: path.join(folder, "envoys.log") };
  const bootstrapOf = (log: string): string => bootstrap(listeners, backEndPort, log, metadataNamespace);

  const proxy = await runProxy({
    bootstrap: parseBootstrap(bootstrapOf(logs.ours), "ours"),
    env: {},
    logging: new Logging({ sink: () => {} }),
  });
  const configFile = path.join(folder, "envoy.json");
  const adminFile = path.join(folder, "admin.txt");
  fs.writeFileSync(configFile, bootstrapOf(logs.envoys));
  const options = ["--disable-hot-restart", "--concurrency", "1", "-l", "error", "--file-flush-interval-msec", "50"];
  const files = ["-c", configFile, "--admin-address-path", adminFile];
  const envoy = await startProcess(await envoyPath(), [...files, ...options]);
  const stop = async (): Promise<void> => {
    await envoy.stop();
    await proxy.close();
    backEnd.close();
    backEnd.closeAllConnections();
    fs.rmSync(folder, { recursive: true });
  };
  try {
    const details = (): string => envoy.output();
    await waitFor(() => fs.existsSync(adminFile) && fs.readFileSync(adminFile, "utf8").includes(":"), {
      what: "Envoy's admin port",
      details,
    });
    const envoyAdmin = Number(fs.readFileSync(adminFile, "utf8").split(":").at(-1));
    const envoyPorts = await waitFor(
      async () => {
        const page = (await get(envoyAdmin, { listener: "", path: "/listeners" })).body;
        const ports = new Map([...page.matchAll(/^(.+)::127\.0\.0\.1:(\d+)$/gm)].map((m) => [m[1]!, Number(m[2])]));
        return ports.size === listeners.length && ports;
      },
      { what: "Envoy's listeners", details },
    );
    const ourPorts = new Map([...proxy.listenerAddresses()].map(([name, [first]]) => [name, first!.port]));
    let sent = 0;
    const runOn = async (ports: ReadonlyMap<string, number>, log: string, calls: readonly ParityCall[]) => {
      const first = sent;
      const answers: Answer[] = [];
      for (const [index, call] of calls.entries()) {
        const headers = { ...call.headers, "x-parity": String(first + index) };
        answers.push(await get(ports.get(call.listener)!, { ...call, headers }));
      }
      const lines = await waitFor(
        () => {
          const read = logLines(log);
          return calls.every((_call, index) => read.has(String(first + index))) && read;
        },
        { what: `the access log ${path.basename(log)}` },
      );
      return answers.map((answer, index) => seen(answer, lines.get(String(first + index))!));
    };
    return {
      stop,
      async run(calls) {
        const ours = await runOn(ourPorts, logs.ours, calls);
        const envoys = await runOn(envoyPorts, logs.envoys, calls);
        sent += calls.length;
        return { ours, envoys };
      },
      async counters(name) {
        const read = async (port: number): Promise<Counters> => {
          const page = (await get(port, { listener: "", path: "/stats?type=Counters" })).body;
          const lines = page.split("\n").map((line) => line.split(": "));
          return Object.fromEntries(
            lines.filter(([stat]) => name.test(stat!)).map(([stat, value]) => [stat!, Number(value)]),
          );
        };
        return { ours: await read(proxy.adminAddress!.port), envoys: await read(envoyAdmin) };
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function bootstrap(
  listeners: readonly ParityListener[],
  backEndPort: number,
  logPath: string,
  metadataNamespace: string,
): string {
  const format = `%REQ(x-parity)%\t%RESPONSE_CODE_DETAILS%\t%DYNAMIC_METADATA(${metadataNamespace})%\n`;
  const router = { name: "router", typed_config: { "@type": extension("filters.http.router.v3.Router") } };
  const managerOf = ({ name, filters, routes, manager }: ParityListener): object => ({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: name,
    route_config: {
      name,
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: (routes ?? [{ match: { prefix: "/" } }]).map((route) => ({ ...route, route: { cluster: "app" } })),
        },
      ],
    },
    http_filters: [...filters, router],
    access_log: [
      {
        name: "envoy.access_loggers.file",
        typed_config: {
          "@type": extension("access_loggers.file.v3.FileAccessLog"),
          path: logPath,
          log_format: { text_format_source: { inline_string: format } },
        },
      },
    ],
    ...manager,
  });
  return JSON.stringify({
    admin: { address: address(0) },
    static_resources: {
      listeners: listeners.map((listener) => ({
        name: listener.name,
        address: address(0),
        filter_chains: [
          {
            filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: managerOf(listener) }],
          },
        ],
      })),
      clusters: [
        {
          name: "app",
          type: "STATIC",
          load_assignment: {
            cluster_name: "app",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(backEndPort) } }] }],
          },
        },
      ],
    },
  });
}

function get(port: number, { path: target = "/", host = "main.test", method = "GET", headers = {} }: ParityCall) {
  return new Promise<Answer>((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port,
      path: target,
      method,
      agent: false,
      headers: { host, ...headers } as http.OutgoingHttpHeaders,
    };
    const request = http.request(options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
    });
    request.on("error", reject);
    request.end();
  });
}

function logLines(file: string): ReadonlyMap<string, { readonly details: string; readonly metadata: string }> {
  const text = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
  const whole = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return new Map(
    whole.map((line) => {
      const [id = "", details = "", metadata = ""] = line.split("\t");
      return [id, { details, metadata }];
    }),
  );
}

function seen(answer: Answer, line: { readonly details: string; readonly metadata: string }): Seen {
  const fromBackEnd = answer.body.startsWith("{");
  const headers = comparedResponseHeaders.map((name) => [name, answer.headers[name]] as const);
  return {
    status: answer.status,
    responseHeaders: fromBackEnd ? {} : Object.fromEntries(headers.filter(([, value]) => value !== undefined)),
    body: fromBackEnd ? (JSON.parse(answer.body) as unknown) : answer.body,
    details: line.details,
    metadata: line.metadata.startsWith("{") ? (JSON.parse(line.metadata) as unknown) : line.metadata,
  };
}
