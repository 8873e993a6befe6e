// One request to a proxy of a meshed table, in plain text or over TLS with whatever certificate the row wants, and what
// became of it.
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import type { WorkloadPem } from "../tools/workload-secrets.ts";
import { parseAnswers } from "../tools/raw-client.ts";

export interface MeshedCall {
  readonly host: string;
  readonly port: number;
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
export function callMeshed({
  host,
  port,
  tls,
  from,
  method = "GET",
  path = "/",
  headers = {},
}: MeshedCall): Promise<MeshedOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<MeshedOutcome>();
  const given = Array.isArray(headers) ? (headers as readonly (readonly [string, string])[]) : Object.entries(headers);
  const names = new Set(given.map(([name]) => name));
  const usual = Object.entries({ host: "server", connection: "close" }).filter(([name]) => !names.has(name));
  const lines = [...usual, ...given].map(([name, value]) => `${name}: ${value}\r\n`);
  const bytes = `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
  let received = "";
  let reason = "closed without an answer";
  const place = { host, port, ...(from === undefined ? {} : { localAddress: from }) };
  const socket: Socket = tls === undefined ? connectPlain(place) : connectTls({ ...place, ...tls });
  socket.once(tls === undefined ? "connect" : "secureConnect", () => socket.write(bytes, "latin1"));
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
    else resolve(outcomeOf(received, method));
  });
  return promise;
}

function isWhole(received: string): boolean {
  const headEnd = received.indexOf("\r\n\r\n");
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(received.slice(0, headEnd + 2))?.[1];
  return length !== undefined && received.length >= headEnd + 4 + Number(length);
}

function outcomeOf(received: string, method: string): MeshedOutcome {
  const answer = parseAnswers(received, [method]).at(-1)!;
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
