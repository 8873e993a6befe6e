// Runs bytes through one side of the HTTP/1.1 codec on a fake socket and says what came out of it as plain data.
import { Logging } from "@tulle/telemetry";
import { Http1ClientConnection } from "../codec/http1/client-connection.ts";
import type { Http1ServerSettings } from "../codec/http1/http1-server-settings.ts";
import { Http1ServerConnection } from "../codec/http1/server-connection.ts";
import type { HttpProtocolError, RequestReceiver, ResponseReceiver, ResponseSender } from "../codec/stream-codec.ts";
import { DataPath } from "../worker/data-path.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import { FakeSocket } from "./fake-socket.ts";
import { ManualClock } from "./manual-clock.ts";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly headers: readonly string[];
  readonly body: string;
  readonly trailers?: readonly string[];
  readonly upgrade?: string;
}

export interface SeenServerSide {
  readonly requests: readonly SeenRequest[];
  /** Status and details of the refusal, when there was one. */
  readonly error?: string;
  readonly closed: boolean;
}

export const defaultServerSettings: Http1ServerSettings = {
  maxHeadBytes: 60 * 1024,
  maxFieldCount: 100,
  acceptHttp10: false,
  allowAbsoluteUrl: true,
  enableTrailers: true,
  bufferLimitBytes: 1024 * 1024,
  idleTimeoutMs: 0,
  headersTimeoutMs: 0,
  delayedCloseMs: 1000,
};

// One for all probes: it holds buffers and a wheel of timers, and a million of them would take gigabytes.
const dataPath = new DataPath({ logging: new Logging({ level: "off" }), clock: new ManualClock() });

/** Answers each request with 200 when it is complete; `chunks` are fed one by one. */
export function readRequests(
  chunks: readonly Buffer[],
  settings: Partial<Http1ServerSettings> = {},
): SeenServerSide & { written: string } {
  const requests: SeenRequest[] = [];
  let error: string | undefined;
  const fake = new FakeSocket();
  const respond = (sender: ResponseSender): void =>
    sender.sendResponseHead({ status: 200, headers: new HeaderMap(), upgrade: undefined }, true);
  const newStream = (sender: ResponseSender): RequestReceiver => {
    let head: RequestHead | undefined;
    let body = "";
    const finish = (trailers?: HeaderMap): void => {
      const { method, path, authority, headers, upgrade } = head!;
      requests.push({
        method,
        path,
        authority,
        headers: headers.entries,
        body,
        ...(trailers === undefined ? {} : { trailers: trailers.entries }),
        ...(upgrade === undefined ? {} : { upgrade }),
      });
      respond(sender);
    };
    return {
      onRequestHead: (received, endStream) => {
        head = received;
        if (endStream || received.upgrade !== undefined) finish();
      },
      onRequestData: (chunk, endStream) => {
        body += chunk.toString("latin1");
        if (endStream) finish();
      },
      onRequestTrailers: finish,
      onDownstreamReset: () => undefined,
      onRequestError: (received) => refuse(sender, received),
      onResponseWritten: () => undefined,
      onDownstreamDrained: () => undefined,
    };
  };
  const refuse = (sender: ResponseSender, received: HttpProtocolError): void => {
    error = `${received.status} ${received.details}`;
    sender.sendResponseHead({ status: received.status, headers: new HeaderMap(), upgrade: undefined }, true);
  };
  const connection = new Http1ServerConnection(
    fake.socket,
    {
      newStream,
      onConnectionError: refuse,
      onConnectionIdle: () => undefined,
      onStreamEnd: () => undefined,
      onConnectionClosed: () => undefined,
    },
    { ...defaultServerSettings, ...settings },
    dataPath,
  );
  for (const chunk of chunks) if (!fake.ended && !fake.destroyed) connection.onData(chunk);
  const closed = fake.ended || fake.destroyed;
  const { written } = fake;
  // Its timers would hold it.
  fake.destroy();
  return { requests, ...(error === undefined ? {} : { error }), closed, written };
}

export interface SeenResponse {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
  readonly trailers?: readonly string[];
}

export interface SeenClientSide {
  readonly informational: readonly number[];
  readonly response?: SeenResponse;
  readonly reset?: string;
  /** The connection may carry another request. */
  readonly reusable: boolean;
}

export interface ReadResponseOptions {
  readonly method?: string;
  /** The back end ends its side after the last chunk. */
  readonly ended?: boolean;
  readonly upgrade?: string;
}

/** Sends one request and feeds the answer. */
export function readResponse(chunks: readonly Buffer[], options: ReadResponseOptions = {}): SeenClientSide {
  const informational: number[] = [];
  let response: { status: number; headers: readonly string[]; body: string; trailers?: readonly string[] } | undefined;
  let complete = false;
  let reset: string | undefined;
  let reusable = false;
  const fake = new FakeSocket();
  const connection = new Http1ClientConnection(
    fake.socket,
    {
      onConnected: () => undefined,
      onStreamLimit: () => undefined,
      onStreamEnd: (isReusable) => {
        reusable = isReusable;
      },
      onClosed: () => {
        reusable = false;
      },
    },
    { maxHeadBytes: 60 * 1024, maxFieldCount: 100, enableTrailers: true, bufferLimitBytes: 1024 * 1024 },
    dataPath,
  );
  fake.emit("connect");
  const receiver: ResponseReceiver = {
    onInformational: (status) => informational.push(status),
    onResponseHead: (head, endStream) => {
      response = { status: head.status, headers: head.headers.entries, body: "" };
      complete = endStream;
    },
    onResponseData: (chunk, endStream) => {
      response = { ...response!, body: response!.body + chunk.toString("latin1") };
      complete = endStream;
    },
    onResponseTrailers: (trailers) => {
      response = { ...response!, trailers: trailers.entries };
      complete = true;
    },
    onUpstreamReset: (reason) => {
      reset = reason;
    },
    onUpstreamDrained: () => undefined,
  };
  connection.open(receiver);
  const head: RequestHead = {
    method: options.method ?? "GET",
    scheme: "http",
    authority: "a",
    path: "/",
    protocol: "HTTP/1.1",
    headers: new HeaderMap(),
    hasHost: true,
    upgrade: options.upgrade,
  };
  connection.sendRequestHead(head, options.upgrade === undefined);
  dataPath.turn.flushRound();
  for (const chunk of chunks) if (!fake.destroyed) connection.onData(chunk);
  if (options.ended === true && !fake.destroyed) fake.emit("end");
  const seenReset = reset;
  const isReusable = reusable;
  fake.destroy();
  return {
    informational,
    ...(response !== undefined && (complete || seenReset === undefined) ? { response } : {}),
    ...(seenReset === undefined ? {} : { reset: seenReset }),
    reusable: isReusable,
  };
}

/** The text as latin1 bytes, cut in two at `at`; the empty half is left out. */
export function cutAt(text: string, at: number): Buffer[] {
  const bytes = Buffer.from(text, "latin1");
  return [bytes.subarray(0, at), bytes.subarray(at)].filter((part) => part.length > 0);
}
