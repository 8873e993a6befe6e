// Sends requests over HTTP/2 by Node's own client, one after the other on a connection that is there, and tells each
// answer as the client of HTTP/1.1 does (raw-client.ts).
import { once } from "node:events";
import http2 from "node:http2";
import type { Socket } from "node:net";
import type { RawAnswer } from "./raw-client.ts";

/** What the client of a row speaks. */
export type HttpVersion = "HTTP/1.1" | "HTTP/2";
export const versions: readonly HttpVersion[] = ["HTTP/1.1", "HTTP/2"];

export interface Http2Request {
  /** Pseudo-headers first; several values are several fields. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** A DATA frame for each; the last ends the stream, and so does the head where there is none. */
  readonly body: readonly string[];
  readonly trailers?: Readonly<Record<string, string>>;
  /** The body waits for the first head of an answer, interim or final. */
  readonly isBodyLate?: boolean;
}

/** Every text of a request. */
export function mapTexts(request: Http2Request, map: (text: string) => string): Http2Request {
  const { headers, body } = request;
  const mapped = Object.entries(headers).map(([name, value]) => [
    name,
    typeof value === "string" ? map(value) : value.map(map),
  ]);
  return { ...request, headers: Object.fromEntries(mapped) as Http2Request["headers"], body: body.map(map) };
}

/** By number (RFC 9113 §7). */
export const errorCodeNames: readonly string[] = (
  "NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR " +
  "REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY HTTP_1_1_REQUIRED"
).split(" ");

const answerTimeoutMs = 60_000;

/** Rows repeat fields that no client should; Node's types do not know of it. */
const lenient = { strictSingleValueFields: false };

/** An answer of the status 0 is one that never came. @throws when there is no end of one in time */
export async function exchangeStreams(socket: Socket, requests: readonly Http2Request[]): Promise<RawAnswer[]> {
  const session = http2.connect("http://any", { createConnection: () => socket, ...lenient });
  // Each stream tells what it means to it.
  session.on("error", () => undefined);
  try {
    const answers: RawAnswer[] = [];
    for (const request of requests) {
      if (session.closed || session.destroyed) break;
      answers.push(await exchange(session, request));
    }
    return answers;
  } finally {
    const isClosed = socket.destroyed || once(socket, "close");
    if (session.destroyed) socket.destroy();
    else session.close();
    await isClosed;
  }
}

/** One request on a connection that is still to be made: none when it is refused, there or later. */
export async function exchangeStream(
  socket: Socket,
  made: "connect" | "secureConnect",
  request: Http2Request,
): Promise<RawAnswer | undefined> {
  try {
    await once(socket, made);
  } catch {
    return undefined;
  }
  const [answer] = await exchangeStreams(socket, [request]);
  return answer?.status === 0 ? undefined : answer;
}

type Fields = (readonly [string, string])[];

function exchange(session: http2.ClientHttp2Session, request: Http2Request): Promise<RawAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>();
  const { headers, body, trailers, isBodyLate = false } = request;
  const stream = session.request(headers as http2.OutgoingHttpHeaders, {
    endStream: body.length === 0 && trailers === undefined,
    waitForTrailers: trailers !== undefined,
  });
  const interim: number[] = [];
  let status = 0;
  let fields: Fields = [];
  let trailerFields: Fields = [];
  let received = "";
  let isEnded = false;
  const sendBody = (): void => {
    if (body.length === 0 && trailers === undefined) return;
    for (const part of body.slice(0, -1)) stream.write(part, "latin1");
    stream.end(body.at(-1) ?? "", "latin1");
  };
  if (!isBodyLate) sendBody();
  stream.on("wantTrailers", () => stream.sendTrailers({ ...trailers }));
  if (isBodyLate) stream.once("headers", sendBody);
  stream.on("headers", (head) => interim.push(head[":status"] as unknown as number));
  stream.on("response", (head, _flags, raw) => {
    status = head[":status"] as unknown as number;
    fields = fieldsOf(raw).filter(([name]) => name !== ":status");
  });
  stream.on("trailers", (_head, _flags, raw) => (trailerFields = fieldsOf(raw)));
  stream.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
  stream.on("end", () => (isEnded = true));
  stream.on("error", () => undefined);
  stream.on("close", () => {
    const { rstCode } = stream;
    const truncated = status !== 0 && (!isEnded || rstCode !== 0);
    const reset = rstCode === 0 ? {} : { reset: errorCodeNames[rstCode] ?? String(rstCode) };
    resolve({ status, headers: fields, body: received, interim, trailers: trailerFields, truncated, ...reset });
  });
  stream.setTimeout(answerTimeoutMs, () => {
    reject(new Error(`no end of the answer within ${answerTimeoutMs} ms; so far: ${status} ${received.slice(0, 500)}`));
    stream.destroy();
  });
  return promise;
}

/** Of name, value, name, value, …, as they came. */
function fieldsOf(raw: readonly string[] | undefined): Fields {
  return Array.from(
    { length: (raw ?? []).length / 2 },
    (_, index) => [raw![2 * index]!, raw![2 * index + 1]!] as const,
  );
}
