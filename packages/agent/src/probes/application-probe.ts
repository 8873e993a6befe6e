// A probe of the application that its agent asks in the kubelet's place: the kubelet has no certificate, and is refused
// where the workload takes mutual TLS alone. What counts as well, redirects and time-outs are the kubelet's.
import type { IncomingMessage } from "node:http";
import { connect as connectHttp2, type ClientHttp2Session, constants, type IncomingHttpHeaders } from "node:http2";
import { request as requestOverTls } from "node:https";
import { connect, isIPv6, type Socket } from "node:net";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { request } = process.getBuiltinModule("node:http");

export type ApplicationProbe = { readonly timeoutMs: number; readonly port: number } & (
  | {
      readonly kind: "http";
      readonly isTls: boolean;
      readonly path: string;
      readonly headers: readonly (readonly [name: string, value: string])[];
    }
  | { readonly kind: "tcp" }
  | { readonly kind: "grpc"; readonly service: string }
);

export interface ProbedAddress {
  readonly address: string;
  /** What capture lets through to the application; undefined where nothing is captured. */
  readonly from: string | undefined;
}

/** An HTTP status for the kubelet; anything but 2xx is no success. */
export interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
}

/** Some applications tell a kubelet's questions from others by how it calls itself. */
const userAgent = "kube-probe/tulle";
const maxRedirects = 10;

/** Never rejects. */
export async function askProbe(probe: ApplicationProbe, at: ProbedAddress): Promise<ProbeAnswer> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), probe.timeoutMs);
  try {
    switch (probe.kind) {
      case "http":
        return await askHttp(probe, at, limit.signal);
      case "tcp":
        return await askTcp(probe, at, limit.signal);
      case "grpc":
        return await askGrpc(probe, at, limit.signal);
    }
  } catch (error) {
    const text = limit.signal.aborted ? `no answer in ${probe.timeoutMs} ms` : (error as Error).message;
    return { status: 500, text };
  } finally {
    clearTimeout(timer);
  }
}

type Of<Kind extends ApplicationProbe["kind"]> = Extract<ApplicationProbe, { readonly kind: Kind }>;

/**
 * Well is 200 to 399. It is asked again where it is redirected to within the same host; a redirect to another one is
 * well as it is (Kubernetes: pkg/probe/http).
 */
async function askHttp(probe: Of<"http">, at: ProbedAddress, signal: AbortSignal): Promise<ProbeAnswer> {
  const host = isIPv6(at.address) ? `[${at.address}]` : at.address;
  let url = new URL(probe.path || "/", `${probe.isTls ? "https" : "http"}://${host}:${probe.port}`);
  const { hostname } = url;
  for (let asked = 0; asked <= maxRedirects; asked += 1) {
    const { statusCode: status = 0, headers } = await get(url, probe, at, signal);
    const isRedirect = [301, 302, 303, 307, 308].includes(status) && headers.location !== undefined;
    if (!isRedirect) return { status: status >= 300 && status < 400 ? 200 : status, text: `it answered ${status}` };
    const next = new URL(headers.location!, url);
    if (next.hostname !== hostname || !/^https?:$/.test(next.protocol)) {
      return { status: 200, text: `it redirects to ${next.host}` };
    }
    url = next;
  }
  return { status: 500, text: `it redirects more than ${maxRedirects} times` };
}

async function get(
  url: URL,
  { headers }: Of<"http">,
  { from }: ProbedAddress,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const lines = new Map<string, string[]>([
    ["user-agent", [userAgent]],
    ["accept", ["*/*"]],
  ]);
  const own = new Set<string>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    if (own.has(key)) lines.get(key)!.push(value);
    else lines.set(key, [value]);
    own.add(key);
  }
  const sent = (url.protocol === "https:" ? requestOverTls : request)(
    {
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port,
      path: `${url.pathname}${url.search}`,
      headers: Object.fromEntries(
        [...lines].map(([name, values]) => [name, values.length === 1 ? values[0]! : values]),
      ),
      ...(from === undefined ? {} : { localAddress: from }),
      agent: false,
      // Kubernetes: the kubelet skips the verification of the certificate.
      rejectUnauthorized: false,
      signal,
    },
    // The head is all that counts.
    (response) => (resolve(response), response.destroy()),
  );
  sent.on("error", reject);
  sent.end();
  return promise;
}

async function askTcp({ port }: Of<"tcp">, at: ProbedAddress, signal: AbortSignal): Promise<ProbeAnswer> {
  const socket = open(port, at);
  try {
    await until(socket, "connect", signal);
    return { status: 200, text: "it takes connections" };
  } finally {
    socket.destroy();
  }
}

function open(port: number, { address, from }: ProbedAddress): Socket {
  return connect({ host: address, port, ...(from === undefined ? {} : { localAddress: from }) });
}

async function until(socket: Socket, event: "connect", signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once(event, () => resolve()).on("error", reject);
  signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
  await promise;
}

const serving = 1;

/** grpc.health.v1.Health/Check, without TLS, as a kubelet asks. */
async function askGrpc({ port, service }: Of<"grpc">, at: ProbedAddress, signal: AbortSignal): Promise<ProbeAnswer> {
  const socket = open(port, at);
  let session: ClientHttp2Session | undefined;
  try {
    await until(socket, "connect", signal);
    const host = isIPv6(at.address) ? `[${at.address}]` : at.address;
    session = connectHttp2(`http://${host}:${port}`, { createConnection: () => socket });
    const { message, status } = await check(session, service, signal);
    if (status !== "0") return { status: 503, text: `its health service answered with status ${status || "none"}` };
    const isServing = statusIn(message) === serving;
    return isServing ? { status: 200, text: "SERVING" } : { status: 503, text: "it is not SERVING" };
  } finally {
    session?.destroy();
    socket.destroy();
  }
}

/** Of an answer: a message of a byte or two. */
const maxAnswerBytes = 1024;

async function check(
  session: ClientHttp2Session,
  service: string,
  signal: AbortSignal,
): Promise<{ readonly message: Buffer; readonly status: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ message: Buffer; status: string }>();
  session.on("error", reject);
  const stream = session.request(
    {
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": userAgent,
    },
    { signal },
  );
  let status = "";
  let body = Buffer.alloc(0);
  const take = ({ "grpc-status": told }: IncomingHttpHeaders): void => {
    if (typeof told === "string") status = told;
  };
  stream.on("response", take).on("trailers", take).on("error", reject);
  stream.on("data", (chunk: Buffer) => {
    body = Buffer.concat([body, chunk]);
    if (body.length > maxAnswerBytes) stream.destroy(new Error("its health service answers more than a status"));
  });
  stream.on("end", () => resolve({ message: body.subarray(5), status }));
  stream.on("close", () => reject(new Error("its health service ended the call")));
  stream.end(healthRequest(service));
  return promise;
}

/** Field 1, a text, in a message of gRPC: not compressed, its length. */
function healthRequest(service: string): Buffer {
  const name = Buffer.from(service);
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, ...varint(name.length)]), name]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function varint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >> 7)];
}

/** Field 1, a number; missing is UNKNOWN. */
function statusIn(message: Buffer): number {
  return message[0] === 0x08 ? (message[1] ?? 0) : 0;
}
