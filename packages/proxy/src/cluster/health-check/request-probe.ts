// A health check by a request, of HTTP or of gRPC, on a connection that it keeps for the next one. What the request is,
// and what its answer means, is the check's affair.
import { type ClientCodec, type ClientCodecOwner, openClientCodec } from "../../codec/client-codec.ts";
import { streamsOfUnknownHost } from "../../codec/http2/http2-client-connection.ts";
import type { RequestSender, ResponseReceiver } from "../../codec/stream-codec.ts";
import type { HeaderMap } from "../../http/header-map.ts";
import type { RequestHead, ResponseHead } from "../../http/message.ts";
import { connectSocket } from "../../upstream/connect-socket.ts";
import type { UpstreamProtocol } from "../cluster.ts";
import {
  activeFailure,
  answerTooLong,
  type CheckResult,
  type CheckTarget,
  networkFailure,
  type Probe,
} from "./probe.ts";

/** Envoy's defaults for responses, as a pool's. */
const maxResponseHeadBytes = 80 * 1024;
const maxResponseFieldCount = 100;

/** So long an answer may be, however little of it is kept: one that never ends would be read until the time-out. */
const maxAnswerBytes = 1024 * 1024;

export interface CheckAnswer {
  readonly head: ResponseHead;
  /** No more than `maxBodyBytes` of it. */
  readonly body: Buffer;
  readonly trailers: HeaderMap | undefined;
}

export interface CheckRequest {
  readonly protocol: UpstreamProtocol;
  readonly alpnProtocols: readonly string[] | undefined;
  readonly reusesConnection: boolean;
  readonly maxBodyBytes: number;
  readonly body: Buffer | undefined;
  head(): RequestHead;
  judge(answer: CheckAnswer): CheckResult;
}

export class RequestProbe implements Probe {
  readonly #target: CheckTarget;
  readonly #request: CheckRequest;
  readonly #onResult: (result: CheckResult) => void;
  #connection: CheckConnection | undefined = undefined;
  #exchange: CheckExchange | undefined = undefined;

  constructor(target: CheckTarget, request: CheckRequest, onResult: (result: CheckResult) => void) {
    this.#target = target;
    this.#request = request;
    this.#onResult = onResult;
  }

  begin(): void {
    if (this.#connection?.takesRequests === false) this.#closeConnection();
    this.#connection ??= new CheckConnection(this.#target, this.#request, (connection) => {
      if (connection !== this.#connection) return;
      this.#connection = undefined;
      this.#end(this.#exchange, networkFailure);
    });
    const exchange = new CheckExchange(this.#request, (ended, result) => this.#end(ended, result));
    this.#exchange = exchange;
    this.#connection.begin(exchange);
  }

  giveUp(): void {
    this.close();
  }

  close(): void {
    this.#exchange = undefined;
    this.#closeConnection();
  }

  #closeConnection(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.close();
  }

  /** What was given up says nothing any more. */
  #end(exchange: CheckExchange | undefined, result: CheckResult): void {
    if (exchange === undefined || exchange !== this.#exchange) return;
    this.#exchange = undefined;
    if (!this.#request.reusesConnection) {
      this.#connection?.closeSoon();
      this.#connection = undefined;
    }
    this.#onResult(result);
  }
}

class CheckConnection implements ClientCodecOwner {
  readonly #onClosed: (connection: CheckConnection) => void;
  readonly #codec: ClientCodec;
  #waiting: CheckExchange | undefined = undefined;
  #isUp = false;
  #hasStream = false;
  #closesSoon = false;

  constructor(target: CheckTarget, request: CheckRequest, onClosed: (connection: CheckConnection) => void) {
    const { endpoint, cluster, dataPath } = target;
    this.#onClosed = onClosed;
    const socket = connectSocket(endpoint, cluster, dataPath, (chunk) => this.#codec.onData(chunk), {
      serverName: undefined,
      verifiesServerName: false,
      defaultProtocols: request.protocol === "HTTP/2" ? ["h2"] : ["http/1.1"],
      alpnProtocols: request.alpnProtocols,
    });
    const settings = {
      http2: cluster.http2,
      http2Stats: cluster.http2Stats,
      streamsBeforeSettings: streamsOfUnknownHost,
      maxHeadBytes: maxResponseHeadBytes,
      maxFieldCount: maxResponseFieldCount,
      enableTrailers: false,
      bufferLimitBytes: cluster.perConnectionBufferLimitBytes,
    };
    this.#codec = openClientCodec(request.protocol, socket, this, settings, dataPath);
  }

  /** False once the host has said that it takes no more, or has not ended the last. */
  get takesRequests(): boolean {
    return !this.#isUp || this.#codec.capacity > 0;
  }

  begin(exchange: CheckExchange): void {
    if (this.#isUp) this.#open(exchange);
    else this.#waiting = exchange;
  }

  close(): void {
    this.#codec.destroy();
  }

  /** Once the codec is done with the stream that it tells of. */
  closeSoon(): void {
    this.#closesSoon = true;
    if (!this.#hasStream) this.close();
  }

  #open(exchange: CheckExchange): void {
    this.#hasStream = true;
    exchange.send(this.#codec.open(exchange));
  }

  onConnected(): void {
    this.#isUp = true;
    const exchange = this.#waiting;
    this.#waiting = undefined;
    if (exchange !== undefined) this.#open(exchange);
  }

  onStreamLimit(): void {
    // There is one stream at a time.
  }

  onStreamEnd(): void {
    this.#hasStream = false;
    if (this.#closesSoon) this.close();
  }

  onClosed(): void {
    this.#onClosed(this);
  }
}

/** One request and its answer. */
class CheckExchange implements ResponseReceiver {
  readonly #request: CheckRequest;
  readonly #onEnd: (exchange: CheckExchange, result: CheckResult) => void;
  #head: ResponseHead | undefined = undefined;
  #sender: RequestSender | undefined = undefined;
  /** What is kept of the body stands at its begin: chunks may be of a byte each. */
  #kept: Buffer = Buffer.alloc(0);
  #keptBytes = 0;
  #bodyBytes = 0;

  constructor(request: CheckRequest, onEnd: (exchange: CheckExchange, result: CheckResult) => void) {
    this.#request = request;
    this.#onEnd = onEnd;
  }

  send(sender: RequestSender): void {
    this.#sender = sender;
    const { body } = this.#request;
    sender.sendRequestHead(this.#request.head(), body === undefined);
    if (body !== undefined) sender.sendRequestData(body, true);
  }

  onInformational(): void {
    // The answer is yet to come.
  }

  onResponseHead(head: ResponseHead, endStream: boolean): void {
    this.#head = head;
    if (endStream) this.#judge(undefined);
  }

  onResponseData(chunk: Buffer, endStream: boolean): void {
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes > Math.max(maxAnswerBytes, this.#request.maxBodyBytes)) {
      this.#onEnd(this, answerTooLong);
      this.#sender?.resetStream("local_reset");
      return;
    }
    this.#keep(chunk.subarray(0, this.#request.maxBodyBytes - this.#keptBytes));
    if (endStream) this.#judge(undefined);
  }

  #keep(part: Buffer): void {
    const neededBytes = this.#keptBytes + part.length;
    if (neededBytes > this.#kept.length) {
      const grown = Buffer.allocUnsafe(2 * neededBytes);
      this.#kept.copy(grown, 0, 0, this.#keptBytes);
      this.#kept = grown;
    }
    part.copy(this.#kept, this.#keptBytes);
    this.#keptBytes = neededBytes;
  }

  onResponseTrailers(trailers: HeaderMap): void {
    this.#judge(trailers);
  }

  onUpstreamReset(): void {
    this.#onEnd(this, networkFailure);
  }

  onUpstreamDrained(): void {
    // Bodies of checks are small.
  }

  #judge(trailers: HeaderMap | undefined): void {
    const head = this.#head;
    const body = this.#kept.subarray(0, this.#keptBytes);
    this.#onEnd(this, head === undefined ? activeFailure() : this.#request.judge({ head, body, trailers }));
  }
}
