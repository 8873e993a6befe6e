// One request to a proxy of a meshed table, by HTTP/1.1 or HTTP/2, in plain text or over TLS with whatever certificate
// the row wants, and what became of it.
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { exchangeStream, type HttpVersion } from "../tools/http2-client.ts";
import type { WorkloadPem } from "../tools/workload-secrets.ts";
import { parseAnswers, type RawAnswer } from "../tools/raw-client.ts";

export interface MeshedCall {
  readonly host: string;
  readonly port: number;
  /** HTTP/1.1 when missing. */
  readonly version?: HttpVersion;
  /** Plain text when missing. */
  readonly tls?: ConnectionOptions;
  /** The client's own address. */
  readonly from?: string;
  readonly method?: string;
  readonly path?: string;
  /** As lines where a name stands twice. */
  readonly headers?: Readonly<Record<string, string>> | readonly (readonly [string, string])[];
}

/** What the application says that it got. */
export interface MeshedEcho {
  readonly app: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type MeshedOutcome =
  | { readonly type: "refused"; readonly reason: string }
  | {
      readonly type: "answered";
      readonly status: number;
      readonly body: string;
      readonly answerHeaders: Readonly<Record<string, string>>;
      readonly echo: MeshedEcho | undefined;
    };

const answerTimeoutMs = 60_000;

/** A client of the mesh, as a sidecar would be: without `workload` it shows no certificate. */
export function meshClient(
  workload: Pick<WorkloadPem, "keyPem" | "chainPem"> | undefined,
  options: ConnectionOptions = {},
): ConnectionOptions {
  return {
    ...(workload === undefined ? {} : { key: workload.keyPem, cert: workload.chainPem }),
    ALPNProtocols: ["istio-http/1.1", "istio", "http/1.1"],
    servername: "outbound_.3000_._.server.shop.svc.cluster.local",
    // The server's side of the handshake is the sidecars' matter, and has rows of its own.
    rejectUnauthorized: false,
    ...options,
  };
}

/** @throws when nobody listens there, or there is no end of the answer */
export function callMeshed(call: MeshedCall): Promise<MeshedOutcome> {
  return call.version === "HTTP/2" ? callByStream(call) : callByBytes(call);
}

function callByBytes(call: MeshedCall): Promise<MeshedOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<MeshedOutcome>();
  const { method = "GET", path = "/" } = call;
  const given = fieldsOf(call);
  const names = new Set(given.map(([name]) => name));
  const usual = Object.entries({ host: "server", connection: "close" }).filter(([name]) => !names.has(name));
  const lines = [...usual, ...given].map(([name, value]) => `${name}: ${value}\r\n`);
  const bytes = `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
  let received = "";
  let reason = closed;
  const socket = open(call);
  socket.once(readyEvent(call), () => socket.write(bytes, "latin1"));
  socket.setTimeout(answerTimeoutMs, () => {
    socket.destroy();
    reject(
      new Error(`no end of the answer within ${answerTimeoutMs} ms; so far: ${JSON.stringify(received.slice(0, 500))}`),
    );
  });
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
    // Envoy keeps a connection that it refuses a request on open for a second.
    if (isWhole(received)) socket.destroy();
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ECONNREFUSED") reject(error);
    reason = error.message;
  });
  socket.on("close", () => {
    if (received === "") resolve({ type: "refused", reason });
    else resolve(outcomeOf(parseAnswers(received, [method]).at(-1)!));
  });
  return promise;
}

async function callByStream(call: MeshedCall): Promise<MeshedOutcome> {
  const { method = "GET", path = "/", tls } = call;
  const headers: Record<string, string | readonly string[]> = {
    ":method": method,
    ":scheme": tls === undefined ? "http" : "https",
    ":authority": "server",
    ":path": path,
  };
  for (const [given, value] of fieldsOf(call)) {
    const name = given.toLowerCase() === "host" ? ":authority" : given.toLowerCase();
    const before = name.startsWith(":") ? undefined : headers[name];
    headers[name] = before === undefined ? value : [before, value].flat();
  }
  const socket = open(call);
  let error: NodeJS.ErrnoException | undefined;
  socket.on("error", (found) => (error = found));
  const answer = await exchangeStream(socket, readyEvent(call), { headers, body: [] });
  if (error?.code === "ECONNREFUSED") throw error;
  return answer === undefined ? { type: "refused", reason: error?.message ?? closed } : outcomeOf(answer);
}

const closed = "closed without an answer";

function open({ host, port, from, tls, version }: MeshedCall): Socket {
  const place = { host, port, ...(from === undefined ? {} : { localAddress: from }) };
  if (tls === undefined) return connectPlain(place);
  return connectTls({ ...place, ...tls, ...(version === "HTTP/2" ? { ALPNProtocols: alpnOfHttp2(tls) } : {}) });
}

/** The same offer, but for the version: `istio-h2` for `istio-http/1.1`. */
function alpnOfHttp2({ ALPNProtocols = [] }: ConnectionOptions): readonly string[] {
  return (ALPNProtocols as readonly string[]).map((name) => name.replace("http/1.1", "h2"));
}

function readyEvent({ tls }: MeshedCall): "connect" | "secureConnect" {
  return tls === undefined ? "connect" : "secureConnect";
}

function fieldsOf({ headers = {} }: MeshedCall): readonly (readonly [string, string])[] {
  return Array.isArray(headers) ? (headers as readonly (readonly [string, string])[]) : Object.entries(headers);
}

function isWhole(received: string): boolean {
  const headEnd = received.indexOf("\r\n\r\n");
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(received.slice(0, headEnd + 2))?.[1];
  return length !== undefined && received.length >= headEnd + 4 + Number(length);
}

function outcomeOf(answer: RawAnswer): MeshedOutcome {
  const isEcho = answer.headers.some(([name, value]) => name === "content-type" && value === "application/json");
  const echo = isEcho ? (JSON.parse(answer.body) as MeshedEcho) : undefined;
  const { status, body, headers } = answer;
  return { type: "answered", status, body, answerHeaders: Object.fromEntries(headers), echo };
}

/** The caller as the application is told (XFCC): the URI of its certificate, undefined for none. */
export function callerOf(outcome: MeshedOutcome): string | undefined {
  const header = outcome.type === "answered" ? outcome.echo?.headers["x-forwarded-client-cert"] : undefined;
  return header === undefined ? undefined : /(?:^|;)URI=([^;,]*)/.exec(header)?.[1];
}
