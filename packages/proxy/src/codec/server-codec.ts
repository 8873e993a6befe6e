// A downstream connection as its codec holds it, apart from the streams on it.
import type { Protocol } from "../http/message.ts";
import type { HttpProtocolError, RequestReceiver, ResponseSender } from "./stream-codec.ts";

export interface ServerCodec {
  /** What the connection speaks; a request of HTTP/1.0 on it says so itself. */
  readonly protocol: Protocol;
  /** On the wire, both. */
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** `data` is a view that is valid during the call. */
  onData(data: Buffer): void;
  /** Takes no further requests, and tells the client so: HTTP/1.1 with the next response head, which is the last. */
  drain(): void;
  /** Ends the connection with the answer of the request in hand, or now where there is none. */
  closeWhenAnswered(): void;
  /** Ends it after what has been written. */
  close(): void;
  /** Ends it now; what has been written goes as far as the kernel takes it at once. */
  destroy(): void;
}

/** Whose connection it is: makes a receiver for each request. */
export interface ServerCodecOwner {
  newStream(sender: ResponseSender): RequestReceiver;
  /** Bytes arrived that are no request; the owner answers through the sender, and the connection ends. */
  onConnectionError(sender: ResponseSender, error: HttpProtocolError): void;
  /** The connection has been idle for too long and closes. */
  onConnectionIdle(): void;
  /** We have ended the connection, and the client has not taken its end in time. */
  onCloseTimeout?(): void;
  /** A stream is over on both sides. */
  onStreamEnd(): void;
  /** The peer broke the protocol, or flooded: what it did, in the word of the metric where there is one. */
  onConnectionFailure?(what: string): void;
  onConnectionClosed(): void;
}
