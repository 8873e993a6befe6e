// A client and a host, each of HTTP/1.1 or HTTP/2, that say step by step what a test wants, and write down what they
// see of the other end: how one exchange crosses a proxy.
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import type net from "node:net";
import { errorCodeNames, type HttpVersion } from "../../../../tests/tools/http2-client.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";

export type Fields = Readonly<Record<string, string>>;

const { constants } = http2;

/** What one end of an exchange has seen, in order; pieces of a body that follow one another are one. */
export class Seen {
  readonly #lines: string[] = [];
  #isOver = false;

  add(line: string): void {
    if (!this.#isOver) this.#lines.push(line);
  }

  addData(text: string): void {
    const last = this.#lines.at(-1);
    if (last?.startsWith("data ") === true) this.#lines[this.#lines.length - 1] = last + text;
    else this.add(`data ${text}`);
  }

  addTrailers(trailers: Fields): void {
    const text = Object.entries(trailers).map(([name, value]) => `${name}=${value}`);
    if (text.length > 0) this.add(`trailers ${text.join(" ")}`);
  }

  /** Nothing that comes later says more; a stream that ends as it should does so with NO_ERROR. */
  finish(line: string): void {
    if (line !== "" && !(line === "reset NO_ERROR" && this.#lines.at(-1) === "end")) this.add(line);
    this.#isOver = true;
  }

  get text(): string {
    return this.#lines.join(", ");
  }

  async until(pattern: RegExp): Promise<void> {
    const options = { what: String(pattern), details: () => this.text, intervalMs: 5 };
    await waitFor(() => this.#isOver || pattern.test(this.text), options);
  }

  /** All that will be seen. */
  async whole(): Promise<string> {
    await waitFor(() => this.#isOver, { what: "the end of an exchange", details: () => this.text });
    return this.text;
  }
}

export interface ClientEnd extends Disposable {
  readonly version: HttpVersion;
  readonly seen: Seen;
  write(text: string): void;
  end(trailers?: Fields): void;
  /** Over HTTP/1.1 the connection ends. */
  reset(): void;
}

export interface HostEnd {
  readonly seen: Seen;
  inform(status: number, fields?: Fields): void;
  head(status: number, fields?: Fields): void;
  write(text: string): void;
  end(trailers?: Fields): void;
  /** Both, without a body. */
  answer(status: number): void;
  /** Over HTTP/1.1 the connection ends, whatever the code. */
  reset(code?: number): void;
  /** The connection. */
  close(): void;
}

export interface CrossingHost {
  readonly port: number;
  /** The exchange of that path, once its head has come. */
  of(path: string): Promise<HostEnd>;
  close(): void;
}

const told = (fields: NodeJS.Dict<string | string[]>): string =>
  ["expect", "te", "trailer"]
    .flatMap((name) => (fields[name] === undefined ? [] : [` ${name}=${String(fields[name])}`]))
    .join("");

function openHost(server: http.Server | http2.Http2Server, ends: Map<string, HostEnd>): Promise<CrossingHost> {
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => void sockets.add(socket));
  server.listen(0, "127.0.0.1");
  return once(server, "listening").then(() => ({
    port: (server.address() as net.AddressInfo).port,
    of: (path) => waitFor(() => ends.get(path), { what: `a request for ${path}`, intervalMs: 2 }),
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  }));
}

export function startCrossingHost(version: HttpVersion): Promise<CrossingHost> {
  const ends = new Map<string, HostEnd>();
  if (version === "HTTP/2") {
    const server = http2.createServer();
    server.on("sessionError", () => undefined);
    server.on("stream", (stream: http2.ServerHttp2Stream, head: http2.IncomingHttpHeaders) =>
      ends.set(head[":path"]!, http2HostEnd(stream, head)),
    );
    return openHost(server, ends);
  }
  const server = http.createServer();
  const take = (request: http.IncomingMessage, response: http.ServerResponse): void =>
    void ends.set(request.url!, http1HostEnd(request, response));
  server.on("request", take).on("checkContinue", take).on("checkExpectation", take);
  return openHost(server, ends);
}

function http1HostEnd(request: http.IncomingMessage, response: http.ServerResponse): HostEnd {
  const seen = new Seen();
  seen.add(request.method! + told(request.headers));
  request.on("data", (chunk: Buffer) => seen.addData(chunk.toString()));
  request.on("end", () => {
    seen.addTrailers(request.trailers as Fields);
    seen.add("end");
  });
  request.on("error", () => undefined);
  // A kept connection has one for each of its requests.
  request.socket.setMaxListeners(0).once("close", () => seen.finish("closed"));
  response.on("error", () => undefined);
  response.on("close", () => {
    if (response.writableFinished && request.complete) seen.finish("");
  });
  return {
    seen,
    inform: (status, fields = {}) => {
      const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
      request.socket.write(`HTTP/1.1 ${status} Informational\r\n${lines.join("")}\r\n`);
    },
    head: (status, fields = {}) => {
      response.writeHead(status, fields);
      response.flushHeaders();
    },
    write: (text) => void response.write(text),
    end: (trailers) => {
      if (trailers !== undefined) response.addTrailers(trailers);
      response.end();
    },
    answer: (status) => void response.writeHead(status).end(),
    reset: () => void request.socket.destroy(),
    close: () => void request.socket.destroy(),
  };
}

function http2HostEnd(stream: http2.ServerHttp2Stream, head: http2.IncomingHttpHeaders): HostEnd {
  const seen = new Seen();
  seen.add(head[":method"]! + told(head));
  let trailers: Fields | undefined;
  stream.on("data", (chunk: Buffer) => seen.addData(chunk.toString()));
  stream.on("trailers", (fields: Fields) => seen.addTrailers(fields));
  stream.on("end", () => stream.rstCode === constants.NGHTTP2_NO_ERROR && seen.add("end"));
  stream.on("error", () => undefined);
  stream.on("wantTrailers", () => stream.sendTrailers({ ...trailers }));
  stream.on("close", () => seen.finish(`reset ${errorCodeNames[stream.rstCode ?? 0]}`));
  return {
    seen,
    inform: (status, fields = {}) => stream.additionalHeaders({ ":status": status, ...fields }),
    head: (status, fields = {}) => stream.respond({ ":status": status, ...fields }, { waitForTrailers: true }),
    write: (text) => void stream.write(text),
    end: (fields) => {
      trailers = fields;
      stream.end();
    },
    answer: (status) => stream.respond({ ":status": status }, { endStream: true }),
    reset: (code = constants.NGHTTP2_CANCEL) => stream.close(code),
    close: () => stream.session?.destroy(),
  };
}

export function openClient(version: HttpVersion, port: number, path: string, fields: Fields = {}): ClientEnd {
  return version === "HTTP/2" ? http2Client(port, path, fields) : http1Client(port, path, fields);
}

function http1Client(port: number, path: string, fields: Fields): ClientEnd {
  const seen = new Seen();
  const request = http.request({
    host: "127.0.0.1",
    port,
    method: "POST",
    path,
    agent: false,
    headers: { host: "a", ...fields },
  });
  request.on("continue", () => seen.add("100"));
  request.on("information", ({ statusCode }) => statusCode === 100 || seen.add(String(statusCode)));
  request.on("response", (response) => {
    seen.add(String(response.statusCode));
    response.on("data", (chunk: Buffer) => seen.addData(chunk.toString()));
    response.on("end", () => {
      seen.addTrailers(response.trailers as Fields);
      seen.finish("end");
    });
    response.on("error", () => seen.finish("closed"));
  });
  request.on("error", () => seen.finish("closed"));
  request.on("close", () => seen.finish("closed"));
  request.flushHeaders();
  return {
    version: "HTTP/1.1",
    seen,
    write: (text) => void request.write(text),
    end: (trailers) => {
      if (trailers !== undefined) request.addTrailers(trailers);
      request.end();
    },
    reset: () => void request.socket?.resetAndDestroy(),
    [Symbol.dispose]: () => void request.destroy(),
  };
}

function http2Client(port: number, path: string, fields: Fields): ClientEnd {
  const seen = new Seen();
  const session = http2.connect(`http://127.0.0.1:${port}`);
  session.on("error", () => undefined);
  const stream = session.request(
    { ":method": "POST", ":path": path, ":authority": "a", ...fields },
    { endStream: false, waitForTrailers: true },
  );
  let trailers: Fields | undefined;
  stream.on("continue", () => seen.add("100"));
  stream.on(
    "headers",
    (head: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader) =>
      head[":status"] === 100 || seen.add(String(head[":status"])),
  );
  stream.on("response", (head) => seen.add(String(head[":status"])));
  stream.on("data", (chunk: Buffer) => seen.addData(chunk.toString()));
  stream.on("trailers", (received: Fields) => seen.addTrailers(received));
  stream.on("end", () => stream.rstCode === constants.NGHTTP2_NO_ERROR && seen.add("end"));
  stream.on("error", () => undefined);
  stream.on("wantTrailers", () => stream.sendTrailers({ ...trailers }));
  stream.once("close", () => {
    seen.finish(`reset ${errorCodeNames[stream.rstCode ?? 0]}`);
    session.close();
  });
  return {
    version: "HTTP/2",
    seen,
    write: (text) => void stream.write(text),
    end: (last) => {
      trailers = last;
      stream.end();
    },
    reset: () => stream.close(constants.NGHTTP2_CANCEL),
    [Symbol.dispose]: () => session.destroy(),
  };
}
