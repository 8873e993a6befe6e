// A connection as access logs, metrics and rules see it: a stream without a request.
import type { ConnectionInfo } from "../../listener/connection-info.ts";
import type { DataPath } from "../../worker/data-path.ts";
import { StreamInfo } from "../../http/stream-info.ts";

/** Times of its beginning, of the wall clock and the monotonic one; rules ask for neither. */
export function connectionStreamInfo(connection: ConnectionInfo, wallMs = 0, monotonicMs = 0): StreamInfo {
  const { localAddress, remoteAddress, serverName } = connection;
  const info = new StreamInfo(wallMs, monotonicMs, localAddress, remoteAddress, serverName);
  info.downstreamPeerCertificate = connection.tls?.peer;
  info.downstreamTls = connection.tls;
  info.dynamicMetadata = connection.dynamicMetadata;
  info.listener = connection.listener;
  info.isConnection = true;
  info.responseFlags = connection.responseFlags;
  info.responseCodeDetails = connection.responseCodeDetails;
  info.connectionProtocol = connection.protocol;
  info.accessLogType = "TcpConnectionEnd";
  return info;
}

/** Of one that begins now. */
export function beginningStreamInfo(connection: ConnectionInfo, { clock, turn }: DataPath): StreamInfo {
  const { nowMs } = turn;
  return connectionStreamInfo(connection, clock.wallAtMs(nowMs), nowMs);
}
