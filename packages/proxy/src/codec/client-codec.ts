// An upstream connection as its codec holds it, apart from the streams on it; and which codec a connection gets.
import type { Socket } from "node:net";
import type { Protocol } from "../http/message.ts";
import type { UpstreamTlsInfo } from "../tls/tls-info.ts";
import type { DataPath } from "../worker/data-path.ts";
import { Http1ClientConnection, type Http1ClientSettings } from "./http1/client-connection.ts";
import { Http2ClientConnection, type Http2ClientSettings } from "./http2/http2-client-connection.ts";
import type { RequestSender, ResponseReceiver } from "./stream-codec.ts";

export interface ClientCodec {
  readonly protocol: Protocol;
  /** On the wire, both. */
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** `ip:port` of our side, undefined before the connection is up. */
  readonly localAddress: string | undefined;
  /**
   * So many streams may be opened beside those that are; 0 until the connection is up, and once it is given up.
   * HTTP/1.1: one, while there is none.
   */
  readonly capacity: number;
  /** Needs capacity. */
  open(receiver: ResponseReceiver): RequestSender;
  /** `data` is a view that is valid during the call. */
  onData(data: Buffer): void;
  /** Ends it now; what its streams wait for does not come. */
  destroy(): void;
}

/** Whose connection it is. */
export interface ClientCodecOwner {
  /** `tls` is undefined where the connection is plain. */
  onConnected(tls: UpstreamTlsInfo | undefined): void;
  /** The host has said how many streams it takes at a time; HTTP/1.1 knows that without being told. */
  onStreamLimit(streams: number): void;
  /** A stream is over on both sides; false when the connection cannot carry another one and closes. */
  onStreamEnd(reusable: boolean): void;
  /** The host takes no further streams, and why (RFC 9113 §7). */
  onGoAway?(errorCode: number): void;
  /** The host has said with its answer that the connection ends behind it; HTTP/2 has GOAWAY for that. */
  onLastResponse?(): void;
  /** The host broke the protocol, or flooded: what it did. The connection closes. */
  onConnectionFailure?(what: string): void;
  /** The host answers no pings. The connection closes. */
  onSilence?(): void;
  /** `reason` is set when the connection never came about or broke. */
  onClosed(reason: NodeJS.ErrnoException | undefined): void;
}

/** Limits of a connection, whatever it speaks. */
export type ClientCodecSettings = Http1ClientSettings & Http2ClientSettings;

/** `socket` is being connected; whoever made it feeds what it reads to `onData`. */
export function openClientCodec(
  protocol: "HTTP/1.1" | "HTTP/2",
  socket: Socket,
  owner: ClientCodecOwner,
  settings: ClientCodecSettings,
  dataPath: DataPath,
): ClientCodec {
  if (protocol === "HTTP/2") return new Http2ClientConnection(socket, owner, settings, dataPath);
  return new Http1ClientConnection(socket, owner, settings, dataPath);
}
