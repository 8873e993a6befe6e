// The access logs of a listener: one line for each connection, when it has ended (Envoy: Listener.access_log).
import type { ConnectionInfo } from "./connection-info.ts";
import type { DataPath } from "../worker/data-path.ts";
import { connectionStreamInfo } from "../filters/network/connection-stream-info.ts";
import { responseFlags } from "../http/response-flags.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { AccessLog } from "../access-log/access-log.ts";

export class ConnectionLog {
  readonly #logs: readonly AccessLog[];
  readonly #connection: ConnectionInfo;
  readonly #dataPath: DataPath;
  readonly #startTimeMs: number;
  readonly #startMonotonicMs: number;

  constructor(logs: readonly AccessLog[], connection: ConnectionInfo, dataPath: DataPath) {
    this.#logs = logs;
    this.#connection = connection;
    this.#dataPath = dataPath;
    this.#startMonotonicMs = logs.length === 0 ? 0 : dataPath.turn.nowMs;
    this.#startTimeMs = logs.length === 0 ? 0 : dataPath.clock.wallAtMs(this.#startMonotonicMs);
  }

  end(): void {
    if (this.#logs.length === 0) return;
    const info = this.#connection.session ?? this.#withoutSession();
    info.accessLogType = "NotSet";
    info.durationMs = this.#dataPath.turn.nowMs - this.#startMonotonicMs;
    for (const log of this.#logs) log.log(info);
  }

  /** Of a connection that no TCP proxy has passed on. */
  #withoutSession(): StreamInfo {
    const connection = this.#connection;
    const info = connectionStreamInfo(connection, this.#startTimeMs, this.#startMonotonicMs);
    // Envoy writes no flag of a refused handshake, so that nothing but the reason's text tells it from a good
    // connection.
    const isRefused = connection.transportFailureReason !== undefined;
    info.responseFlags = connection.responseFlags | (isRefused ? responseFlags.DPE.bit : 0);
    info.downstreamTransportFailureReason = connection.transportFailureReason;
    info.responseCodeDetails = connection.responseCodeDetails;
    info.isWithoutId = true;
    info.bytesReceived = connection.bytesReceived;
    info.bytesSent = connection.bytesSent;
    info.connectionTerminationDetails = connection.terminationDetails;
    info.downstreamCloseType = connection.closeType;
    return info;
  }
}
