// Sends exact bytes to a proxy and reads the answer until the connection ends or an idle keep-alive answer is complete:
// a table that holds malformed requests cannot use a client that would repair them.
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
}

const answerTimeoutMs = 15_000;

/** All bytes that came back until the peer closed. @throws when it does not close in time */
export function exchangeBytes(host: string, port: number, request: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let received = "";
  const socket = connect({ host, port }, () => socket.write(request, "latin1"));
  socket.setTimeout(answerTimeoutMs, () => {
    socket.destroy();
    reject(new Error(`no end of the answer within ${answerTimeoutMs} ms; so far: ${JSON.stringify(received)}`));
  });
  socket.on("data", (chunk) => (received += chunk.toString("latin1")));
  socket.on("error", (error) => (received === "" ? reject(error) : resolve(received)));
  socket.on("close", () => resolve(received));
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

function parseChunked(text: string): Pick<RawAnswer, "body" | "trailers" | "truncated"> {
  let body = "";
  let rest = text;
  for (;;) {
    const lineEnd = rest.indexOf("\r\n");
    if (lineEnd < 0) return { body, trailers: [], truncated: true };
    const size = Number.parseInt(rest.slice(0, lineEnd), 16);
    if (size === 0) {
      const lines = rest.slice(lineEnd + 2).split("\r\n");
      return { body, trailers: parseHeaders(lines.slice(0, lines.indexOf(""))), truncated: false };
    }
    if (rest.length < lineEnd + 2 + size + 2) return { body, trailers: [], truncated: true };
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size);
    rest = rest.slice(lineEnd + 2 + size + 2);
  }
}

/** The last answer in the bytes, interim ones counted apart; `method` decides whether it has a body (RFC 9112 §6.3). */
export function parseAnswer(bytes: string, method: string): RawAnswer {
  const interim: number[] = [];
  let head = parseHead(bytes);
  while (head.status < 200 && head.status !== 101) {
    interim.push(head.status);
    head = parseHead(head.rest);
  }
  const header = (name: string): string | undefined => head.headers.find(([key]) => key === name)?.[1];
  const common = { status: head.status, headers: head.headers, interim };
  if (header("transfer-encoding")?.toLowerCase() === "chunked") return { ...common, ...parseChunked(head.rest) };
  const length = header("content-length");
  const bodiless = method === "HEAD" || head.status === 204 || head.status === 304;
  const truncated = !bodiless && length !== undefined && head.rest.length < Number(length);
  return { ...common, body: head.rest, trailers: [], truncated };
}
