// Runs bytes through one side of the HTTP/2 codec on a fake socket and says what came out of it as plain data, which
// must not depend on how the bytes were cut.
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { frameTypes, preface } from "../codec/http2/frame.ts";
import { Http2ClientConnection } from "../codec/http2/http2-client-connection.ts";
import { defaultHttp2Options } from "../codec/http2/http2-options.ts";
import { Http2ServerConnection } from "../codec/http2/http2-server-connection.ts";
import { http2StatsOf } from "../codec/http2/http2-stats.ts";
import type { RequestReceiver, ResponseSender } from "../codec/stream-codec.ts";
import { HeaderMap } from "../http/header-map.ts";
import { DataPath } from "../worker/data-path.ts";
import { FakeSocket } from "./fake-socket.ts";
import { ManualClock } from "./manual-clock.ts";

// One for all probes, as for those of HTTP/1.1.
export const dataPath = new DataPath({ logging: new Logging({ level: "off" }), clock: new ManualClock() });

export const settings = {
  http2: defaultHttp2Options,
  http2Stats: http2StatsOf(new MetricRegistry()),
  bufferLimitBytes: 1024 * 1024,
  maxHeadBytes: 60 * 1024,
  maxFieldCount: 100,
  enableTrailers: true,
  idleTimeoutMs: 0,
  headersTimeoutMs: 0,
  delayedCloseMs: 1000,
  streamsBeforeSettings: 100,
};

export interface SeenHttp2Side {
  /** Of each stream, by its place among them: heads, bodies, ends. */
  readonly streams: readonly string[];
  /** Why the connection has ended. */
  readonly failure: string | undefined;
  readonly isClosed: boolean;
  /** What was written in answer, frame by frame, without credit for what was read, which follows the cuts. */
  readonly frames: readonly string[];
  readonly writtenBytes: number;
}

const text = (headers: HeaderMap): string => JSON.stringify(headers.entries);

/** What follows the preface, which comes first; each whole request is answered with 200. */
export function readHttp2Requests(chunks: readonly Buffer[]): SeenHttp2Side {
  const fake = new FakeSocket();
  const streams: string[] = [];
  let failure: string | undefined;
  const newStream = (sender: ResponseSender): RequestReceiver => {
    const at = streams.push("") - 1;
    const say = (what: string): void => void (streams[at] += what);
    const end = (isEnd: boolean): void => {
      if (isEnd) sender.sendResponseHead({ status: 200, headers: new HeaderMap() }, true);
    };
    return {
      onRequestHead: ({ method, path, authority, headers }, endStream) => {
        say(`${method} ${path} ${authority} ${text(headers)} `);
        end(endStream);
      },
      onRequestData: (chunk, endStream) => {
        say(chunk.toString("latin1"));
        end(endStream);
      },
      onRequestTrailers: (trailers) => {
        say(` trailers ${text(trailers)}`);
        end(true);
      },
      onDownstreamReset: (reason) => say(` reset ${reason}`),
      onRequestError: ({ details }) => say(` error ${details}`),
      onResponseWritten: () => undefined,
      onDownstreamDrained: () => undefined,
    };
  };
  const owner = {
    newStream,
    onConnectionError: (sender: ResponseSender, { status, details }: { status: number; details: string }): void => {
      streams.push(` refused ${details}`);
      sender.sendResponseHead({ status, headers: new HeaderMap() }, true);
    },
    onConnectionIdle: () => undefined,
    onStreamEnd: () => undefined,
    onConnectionFailure: (what: string): void => void (failure = what),
    onConnectionClosed: () => undefined,
  };
  const connection = new Http2ServerConnection(fake.socket, owner, settings, dataPath);
  feed(fake, (chunk) => connection.onData(chunk), [Buffer.from(preface, "latin1"), ...chunks]);
  return seen(fake, streams, failure, 0);
}

/** Of a host that has been asked three things. */
export function readHttp2Answers(chunks: readonly Buffer[]): SeenHttp2Side {
  const fake = new FakeSocket();
  let failure: string | undefined;
  const owner = {
    onConnected: () => undefined,
    onStreamLimit: () => undefined,
    onStreamEnd: () => undefined,
    onConnectionFailure: (what: string): void => void (failure = what),
    onClosed: () => undefined,
  };
  const connection = new Http2ClientConnection(fake.socket, owner, settings, dataPath);
  fake.emit("connect");
  const streams = ["", "", ""];
  for (const at of streams.keys()) {
    const say = (what: string): void => void (streams[at] += what);
    const sender = connection.open({
      onInformational: (status, headers) => say(`${status} ${text(headers)} `),
      onResponseHead: ({ status, headers }, endStream) => say(`${status} ${text(headers)} ${endStream ? "END" : ""}`),
      onResponseData: (chunk, endStream) => say(`${chunk.toString("latin1")}${endStream ? "END" : ""}`),
      onResponseTrailers: (trailers) => say(` trailers ${text(trailers)}`),
      onUpstreamReset: (reason) => say(` reset ${reason}`),
      onUpstreamDrained: () => undefined,
    });
    const head = { scheme: "http", authority: "a", path: "/", protocol: "HTTP/2", hasHost: true } as const;
    sender.sendRequestHead({ ...head, method: "GET", headers: new HeaderMap(), upgrade: undefined }, true);
  }
  feed(fake, (chunk) => connection.onData(chunk), chunks);
  return seen(fake, streams, failure, preface.length);
}

function feed(fake: FakeSocket, onData: (chunk: Buffer) => void, chunks: readonly Buffer[]): void {
  dataPath.turn.flushRound();
  for (const chunk of chunks) {
    if (fake.ended || fake.destroyed) break;
    onData(chunk);
    dataPath.turn.flushRound();
  }
}

function seen(fake: FakeSocket, streams: string[], failure: string | undefined, skipped: number): SeenHttp2Side {
  const isClosed = fake.ended || fake.destroyed;
  const bytes = Buffer.from(fake.written, "latin1");
  // Its timers would hold it.
  const before = [...streams];
  fake.destroy();
  const frames: string[] = [];
  for (let at = skipped; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    const whole = bytes.subarray(at, at + 9 + bytes.readUIntBE(at, 3)).toString("hex");
    if (bytes[at + 3] !== frameTypes.windowUpdate) frames.push(whole);
  }
  return { streams: before, failure, isClosed, frames, writtenBytes: bytes.length };
}
