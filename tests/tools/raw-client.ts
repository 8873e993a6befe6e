// Sends exact bytes to a proxy and reads what comes back until the connection ends: a table that holds malformed
// requests cannot use a client that would repair them.
import { connect } from "node:net";

export interface RawAnswer {
  readonly status: number;
  /** Lower-case names in the order of arrival; repeated headers stay apart. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  /** Statuses of interim (1xx) answers that came first. */
  readonly interim: readonly number[];
  readonly trailers: readonly (readonly [string, string])[];
  /** The body did not arrive whole: the connection ended before its announced end. */
  readonly truncated: boolean;
  /** The code that ended its stream; over HTTP/2. */
  readonly reset?: string;
}

export interface Exchange {
  readonly host: string;
  readonly port: number;
  /** The client's own address. */
  readonly from: string;
  readonly bytes: string;
  /** Sent after the first complete head (interim or final) of an answer. */
  readonly afterHead?: string | undefined;
}

const answerTimeoutMs = 60_000;

export interface Received {
  /** `ip:port` of our side. */
  readonly client: string;
  readonly received: string;
}

/** All bytes that came back until the peer closed. @throws when it does not close in time */
export function exchangeBytes({ host, port, from, bytes, afterHead }: Exchange): Promise<Received> {
  const { promise, resolve, reject } = Promise.withResolvers<Received>();
  let received = "";
  let client = "";
  let later = afterHead;
  const socket = connect({ host, port, localAddress: from }, () => {
    client = `${socket.localAddress}:${socket.localPort}`;
    socket.write(bytes, "latin1");
  });
  socket.setTimeout(answerTimeoutMs, () => {
    socket.destroy();
    const start = JSON.stringify(received.slice(0, 500));
    reject(new Error(`no end of the answer within ${answerTimeoutMs} ms; so far: ${start}`));
  });
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
    if (later === undefined || !received.includes("\r\n\r\n")) return;
    socket.write(later, "latin1");
    later = undefined;
  });
  socket.on("error", (error) => (received === "" ? reject(error) : resolve({ client, received })));
  socket.on("close", () => resolve({ client, received }));
  return promise;
}

interface Head {
  readonly status: number;
  readonly headers: (readonly [string, string])[];
  readonly rest: string;
}

function parseHeaders(lines: readonly string[]): (readonly [string, string])[] {
  return lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
}

function parseHead(text: string): Head {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) throw new Error(`no complete head in ${JSON.stringify(text)}`);
  const [statusLine, ...lines] = text.slice(0, end).split("\r\n");
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(statusLine!)?.[1];
  if (status === undefined) throw new Error(`not a status line: ${JSON.stringify(statusLine)}`);
  return { status: Number(status), headers: parseHeaders(lines), rest: text.slice(end + 4) };
}

interface Body {
  readonly body: string;
  readonly trailers: readonly (readonly [string, string])[];
  readonly truncated: boolean;
  readonly rest: string;
}

function parseChunked(text: string): Body {
  let body = "";
  let rest = text;
  for (;;) {
    const lineEnd = rest.indexOf("\r\n");
    if (lineEnd < 0) return { body, trailers: [], truncated: true, rest: "" };
    const size = Number.parseInt(rest.slice(0, lineEnd), 16);
    if (size === 0) {
      const lines = rest.slice(lineEnd + 2).split("\r\n");
      const end = lines.indexOf("");
      const trailers = parseHeaders(lines.slice(0, end));
      return { body, trailers, truncated: false, rest: lines.slice(end + 1).join("\r\n") };
    }
    if (rest.length < lineEnd + 2 + size + 2) {
      return { body: body + rest.slice(lineEnd + 2), trailers: [], truncated: true, rest: "" };
    }
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size);
    rest = rest.slice(lineEnd + 2 + size + 2);
  }
}

/** The method decides whether there is a body (RFC 9112 §6.3). */
function parseBody(head: Head, method: string): Body {
  const header = (name: string): string | undefined => head.headers.find(([key]) => key === name)?.[1];
  const bodiless = method === "HEAD" || head.status === 204 || head.status === 304;
  if (bodiless) return { body: "", trailers: [], truncated: false, rest: head.rest };
  if (header("transfer-encoding")?.toLowerCase() === "chunked") return parseChunked(head.rest);
  const length = header("content-length");
  if (length === undefined) return { body: head.rest, trailers: [], truncated: false, rest: "" };
  const body = head.rest.slice(0, Number(length));
  return { body, trailers: [], truncated: body.length < Number(length), rest: head.rest.slice(body.length) };
}

/**
 * The answers in the bytes, one for each method; an answer that never came is missing, and bytes after the last are an
 * error.
 */
export function parseAnswers(bytes: string, methods: readonly string[]): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = bytes;
  for (const method of methods) {
    if (rest === "") break;
    const interim: number[] = [];
    let head = parseHead(rest);
    while (head.status < 200 && head.status !== 101) {
      interim.push(head.status);
      head = parseHead(head.rest);
    }
    const { rest: after, ...body } = parseBody(head, method);
    rest = after;
    answers.push({ status: head.status, headers: head.headers, interim, ...body });
  }
  if (rest !== "") throw new Error(`bytes after the last answer: ${JSON.stringify(rest.slice(0, 200))}`);
  return answers;
}
