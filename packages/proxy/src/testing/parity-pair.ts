// This proxy and a stock Envoy side by side with the same listeners: a filter's parity table sends each call to both
// and compares the answer, what reached the back end, the access log and the statistics. Each call goes over HTTP/1.1
// and over HTTP/2.
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import type { Http2Server } from "node:http2";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { Logging } from "@tulle/telemetry";
import { exchangeStreams, type HttpVersion } from "../../../../tests/tools/http2-client.ts";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { parseBootstrap } from "../bootstrap/read-bootstrap.ts";
import { runProxy } from "../run-proxy.ts";
import { type ParityListener, type ParityResources, parityBootstrap } from "./parity-bootstrap.ts";

export interface ParityCall {
  readonly listener: string;
  readonly method?: string;
  readonly path?: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Parts of a body that is sent in chunks; one part alone goes with its length. */
  readonly body?: readonly string[];
  /** Why a client of HTTP/2 cannot say it. */
  readonly http1Alone?: string;
}

interface SeenOnce {
  /** 0 = the stream was reset. */
  readonly status: number;
  readonly responseHeaders: Readonly<Record<string, unknown>>;
  /** What the back end got, or the body of an answer that no back end gave. */
  readonly body: unknown;
  /** The access log's `%RESPONSE_CODE_DETAILS%` and dynamic metadata. */
  readonly details: string;
  readonly metadata: unknown;
}

/** Over HTTP/1.1, with the same over HTTP/2 or the reason why there is none. */
export interface Seen extends SeenOnce {
  readonly overHttp2: SeenOnce | string;
}

export interface ParityPair {
  /** What each of the two made of every call, in the calls' order. */
  run(calls: readonly ParityCall[]): Promise<{ readonly ours: readonly Seen[]; readonly envoys: readonly Seen[] }>;
  /** One call, for tables whose next call depends on the answer. */
  ask(side: "ours" | "envoys", call: ParityCall, version?: HttpVersion): Promise<Answer>;
  /** Values of all counters whose name the expression matches, on each. */
  counters(name: RegExp): Promise<{ readonly ours: Counters; readonly envoys: Counters }>;
  stop(): Promise<void>;
}

export type Counters = Readonly<Record<string, number>>;

/** Without those that are 0, which the one proxy makes at its start and the other when they are needed. */
export function movedCounters(counters: Counters): Counters {
  return Object.fromEntries(Object.entries(counters).filter(([, value]) => value > 0));
}

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** Response headers that a filter may set; the others are the connection manager's. */
const comparedResponseHeaders = "content-type content-length www-authenticate grpc-status grpc-message".split(" ");
/** Differ between two proxies by nature. */
const ownRequestHeaders = new Set(["x-request-id", "x-parity", "x-forwarded-for", "x-envoy-expected-rq-timeout-ms"]);

export interface Side {
  /** Ports of the listeners by name. */
  readonly ports: ReadonlyMap<string, number>;
  readonly adminPort: number;
  readonly log: string;
  stop(): Promise<void>;
}

export async function startParityPair(
  listeners: readonly ParityListener[],
  metadataNamespace: string,
  more: ParityResources = {},
): Promise<ParityPair> {
  const sides = await startSides(backEnd(), listeners.length, (port, log) =>
    parityBootstrap(listeners, port, log, metadataNamespace, more),
  );
  const { ours, envoy } = sides;
  let sent = 0;
  const reasons = new Map<string, number>();
  return {
    async run(calls) {
      const first = sent;
      sent += calls.length;
      for (const { http1Alone } of calls) {
        if (http1Alone !== undefined) reasons.set(http1Alone, (reasons.get(http1Alone) ?? 0) + 1);
      }
      return { ours: await runOn(ours, calls, first), envoys: await runOn(envoy, calls, first) };
    },
    ask: (side, call, version = "HTTP/1.1") =>
      clients[version]((side === "ours" ? ours : envoy).ports.get(call.listener)!, call),
    async counters(name) {
      return { ours: await countersOf(ours, name), envoys: await countersOf(envoy, name) };
    },
    async stop() {
      for (const [why, count] of reasons) console.log(`${count} calls over HTTP/1.1 alone: ${why}`);
      await sides.stop();
    },
  };
}

export interface Sides {
  readonly ours: Side;
  readonly envoy: Side;
  readonly stop: () => Promise<void>;
}

/** Both proxies before one back end, which is to listen yet. */
export async function startSides(
  server: http.Server | Http2Server,
  listenerCount: number,
  bootstrapFor: (backEndPort: number, log: string) => string,
): Promise<Sides> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-parity-"));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as net.AddressInfo;
  const bootstrap = (log: string): string => bootstrapFor(port, log);
  const ours = await startOurs(path.join(folder, "ours.log"), bootstrap);
  const envoy = await startEnvoy(folder, listenerCount, bootstrap);
  return {
    ours,
    envoy,
    async stop() {
      await envoy.stop();
      await ours.stop();
      server.close();
      if ("closeAllConnections" in server) server.closeAllConnections();
      fs.rmSync(folder, { recursive: true });
    },
  };
}

/** Tells what it was sent. */
function backEnd(): http.Server {
  return http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const received = Buffer.concat(chunks).toString();
    const headers = Object.fromEntries(
      Object.entries(request.headersDistinct)
        .filter(([name]) => !ownRequestHeaders.has(name))
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
    const { method, url } = request;
    response.end(JSON.stringify({ method, url, headers, ...(received !== "" && { body: received }) }));
  });
}

export async function startOurs(log: string, bootstrapFor: (log: string) => string): Promise<Side> {
  const proxy = await runProxy({
    bootstrap: parseBootstrap(bootstrapFor(log), "ours"),
    env: {},
    logging: new Logging({ sink: () => {} }),
  });
  await proxy.ready;
  return {
    ports: new Map([...proxy.listenerAddresses()].map(([name, [first]]) => [name, first!.port])),
    adminPort: proxy.adminAddress!.port,
    log,
    stop: () => proxy.close(),
  };
}

export async function startEnvoy(
  folder: string,
  listenerCount: number,
  bootstrapFor: (log: string) => string,
): Promise<Side> {
  const log = path.join(folder, "envoy.log");
  const configFile = path.join(folder, "envoy.json");
  const adminFile = path.join(folder, "admin.txt");
  fs.writeFileSync(configFile, bootstrapFor(log));
  const options = [
    "--disable-hot-restart",
    "--concurrency",
    "1",
    "-l",
    "error",
    "--file-flush-interval-msec",
    "50",
    "--drain-strategy",
    "immediate",
  ];
  const files = ["-c", configFile, "--admin-address-path", adminFile];
  const envoy = await startProcess(await envoyPath(), [...files, ...options]);
  const details = (): string => envoy.output();
  await waitFor(() => fs.existsSync(adminFile) && fs.readFileSync(adminFile, "utf8").includes(":"), {
    what: "Envoy's admin port",
    details,
  });
  const adminPort = Number(fs.readFileSync(adminFile, "utf8").split(":").at(-1));
  const ports = await waitFor(
    async () => {
      const page = (await get(adminPort, { ...adminCall, path: "/listeners" })).body;
      const found = new Map([...page.matchAll(/^(.+?)::.*:(\d+)$/gm)].map((m) => [m[1]!, Number(m[2])]));
      return found.size === listenerCount && found;
    },
    { what: "Envoy's listeners", details },
  );
  const stop = async (): Promise<void> => void (await envoy.stop());
  return { ports, adminPort, log, stop };
}

/** The admin interface answers to its own names alone. */
const adminCall = { listener: "", host: "127.0.0.1" };

/** Calls one after the other, numbered from `first`, which the access log repeats. */
async function runOn({ ports, log }: Side, calls: readonly ParityCall[], first: number): Promise<readonly Seen[]> {
  const made: { readonly id: string; readonly answer: Answer }[] = [];
  const make = async (id: string, call: ParityCall, ask: typeof get): Promise<void> => {
    const answer = await ask(ports.get(call.listener)!, { ...call, headers: { ...call.headers, "x-parity": id } });
    made.push({ id, answer });
  };
  for (const [index, call] of calls.entries()) {
    await make(String(first + index), call, get);
    if (call.http1Alone === undefined) await make(`${first + index} over HTTP/2`, call, getOverHttp2);
  }
  const missing = (): readonly string[] => {
    const read = logLines(log);
    return made.filter(({ id }) => !read.has(id)).map(({ id, answer }) => `${id}: ${answer.status} ${answer.body}`);
  };
  await waitFor(() => missing().length === 0, {
    what: `the access log ${path.basename(log)}`,
    details: () => missing().join("\n"),
  });
  const lines = logLines(log);
  const byId = new Map(made.map(({ id, answer }) => [id, seen(answer, lines.get(id)!)]));
  return calls.map(({ http1Alone }, index) => ({
    ...byId.get(String(first + index))!,
    overHttp2: http1Alone ?? byId.get(`${first + index} over HTTP/2`)!,
  }));
}

/** The pattern is one of RE2, too: of thousands of lines the proxy writes those alone. */
export async function countersOf({ adminPort }: Side, name: RegExp): Promise<Counters> {
  const target = `/stats?type=Counters&filter=${encodeURIComponent(name.source)}`;
  const page = (await get(adminPort, { ...adminCall, path: target })).body;
  const lines = page.split("\n").map((line) => line.split(": "));
  return Object.fromEntries(lines.filter(([stat]) => name.test(stat!)).map(([stat, value]) => [stat!, Number(value)]));
}

function get(
  port: number,
  { path: target = "/", host = "main.test", method = "GET", headers = {}, body: sent = [] }: ParityCall,
) {
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
    for (const part of sent.slice(0, -1)) request.write(part);
    request.end(sent.at(-1));
  });
}

async function getOverHttp2(
  port: number,
  { path: target = "/", host = "main.test", method = "GET", headers = {}, body = [] }: ParityCall,
): Promise<Answer> {
  const socket = net.connect(port, "127.0.0.1");
  await once(socket, "connect");
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const fields = {
    ":method": method,
    ":scheme": "http",
    ":authority": host,
    ":path": target,
    ...Object.fromEntries(given),
    ...(body.length === 1 && { "content-length": String(Buffer.byteLength(body[0]!)) }),
  };
  const [answer] = await exchangeStreams(socket, [{ headers: fields, body }]);
  const cookies = answer!.headers.filter(([name]) => name === "set-cookie").map(([, value]) => value);
  return {
    status: answer!.status,
    headers: { ...Object.fromEntries(answer!.headers), ...(cookies.length > 0 && { "set-cookie": cookies }) },
    body: Buffer.from(answer!.body, "latin1").toString(),
  };
}

export const clients: Readonly<Record<HttpVersion, typeof get>> = { "HTTP/1.1": get, "HTTP/2": getOverHttp2 };

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

function seen(answer: Answer, line: { readonly details: string; readonly metadata: string }): SeenOnce {
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
