// A connection as access logs, metrics and rules see it: a stream without a request.
import type { ConnectionInfo } from "../../connection/connection-info.ts";
import { StreamInfo } from "../../http/stream-info.ts";
import { HeaderMap } from "../../http/header-map.ts";
import type { RequestHead } from "../../http/message.ts";

/** What rules on a path find where there is no request: nothing. Rules on headers are refused with their configuration. */
export const noRequest: RequestHead = {
  method: "",
  scheme: "",
  authority: "",
  path: "",
  protocol: "HTTP/1.1",
  headers: new HeaderMap(),
  hasHost: false,
  upgrade: undefined,
};

/** Times of its beginning, of the wall clock and the monotonic one; rules ask for neither. */
export function connectionStreamInfo(connection: ConnectionInfo, wallMs = 0, monotonicMs = 0): StreamInfo {
  const { localAddress, remoteAddress, serverName } = connection;
  const info = new StreamInfo(wallMs, monotonicMs, localAddress, remoteAddress, serverName);
  info.downstreamPeerCertificate = connection.tls?.peer;
  info.downstreamTls = connection.tls;
  info.dynamicMetadata = connection.dynamicMetadata;
  info.isConnection = true;
  info.responseFlags = connection.responseFlags;
  info.responseCodeDetails = connection.responseCodeDetails;
  info.connectionProtocol = connection.protocol;
  info.accessLogType = "TcpConnectionEnd";
  return info;
}
