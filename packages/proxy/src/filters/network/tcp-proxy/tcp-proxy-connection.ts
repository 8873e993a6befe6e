// One downstream connection of a TCP proxy: finds a host, passes bytes both ways within the buffer limits, passes each
// side's end on by itself, and tells metrics and access logs in the end, once (Envoy: `TcpProxy::Filter`).
import { countRequest } from "../../../upstream/cluster-load.ts";
import type { Socket } from "node:net";
import type { Cluster, Host } from "../../../cluster/cluster.ts";
import { dynamicPortKey } from "../dynamic-port.ts";
import { SocketOutput } from "../../../worker/socket-output.ts";
import type { StreamResetReason } from "../../../codec/stream-codec.ts";
import type { DownstreamConnection, DownstreamConnectionOptions } from "../../../listener/downstream-connection.ts";
import { closeTypeOf } from "../../../worker/close-type.ts";
import { CallbackTimer } from "../../../worker/timer-wheel.ts";
import { type ResponseFlag, responseFlags } from "../../../http/response-flags.ts";
import type { AccessLogType } from "../../../http/access-log-type.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import type { Slot } from "../../../runtime/slot.ts";
import { resetSocket } from "../../../upstream/reset-socket.ts";
import { TcpConnection, type TcpConnectionOwner } from "../../../upstream/tcp-connection.ts";
import { beginningStreamInfo } from "../connection-stream-info.ts";
import type { TcpProxySettings } from "./tcp-proxy-settings.ts";
import { endSession, logSession, reportSession } from "./tcp-session-account.ts";

/**
 * - `connecting`: the client is not read; a host is being tried.
 * - `open`: bytes go both ways; either side may have ended its own.
 * - `flushing`: the client has gone in peace, and the host has not taken all of what it sent.
 * - `closed`.
 */
type State = "connecting" | "open" | "flushing" | "closed";

export class TcpProxyConnection implements DownstreamConnection, TcpConnectionOwner {
  readonly #settings: TcpProxySettings;
  readonly #options: DownstreamConnectionOptions;
  readonly #info: StreamInfo;
  readonly #clusterSlot: Slot<Cluster> | undefined;
  readonly #socket: Socket;
  readonly #output: SocketOutput;
  readonly #idleTimer = new CallbackTimer(() => this.#onIdleTimer());
  readonly #durationTimer = new CallbackTimer(() => this.#onMaxDuration());
  readonly #reportTimer = new CallbackTimer(() => this.#report("continues"));
  /** Undefined where it is logged at its end alone. */
  readonly #logTimer: CallbackTimer | undefined;
  #state: State = "connecting";
  #cluster: Cluster | undefined = undefined;
  #upstream: TcpConnection | undefined = undefined;
  /**
   * Of the client, before there is a host to have it: what listener filters have looked at, or what came in one piece
   * with the end of the handshake. A host gets it once it has been found good.
   */
  readonly #early: Buffer[] = [];
  #clientHasEnded = false;
  #isUpstreamPaused = false;
  /** The client broke the connection off. */
  #wasReset = false;
  #wasDestroyed = false;
  #lastActivityMs = 0;

  constructor(settings: TcpProxySettings, options: DownstreamConnectionOptions) {
    const { dataPath, info } = options;
    const { turn } = dataPath;
    this.#settings = settings;
    this.#options = options;
    this.#info = beginningStreamInfo(info, dataPath);
    this.#clusterSlot = settings.chooseCluster(info);
    const isPeriodic = settings.logFlush.intervalMs > 0;
    this.#logTimer = isPeriodic ? new CallbackTimer(() => this.#logAgain()) : undefined;
    settings.stats.connectionsTotal.increment();
    const socket = options.openSocket((chunk) => turn.run(() => this.#onClientData(chunk)));
    this.#socket = socket;
    // There is no place yet for what it sends.
    socket.pause();
    this.#output = new SocketOutput(socket, dataPath, options.bufferLimitBytes, () => this.#onClientDrained());
    socket.on("end", () => turn.run(() => this.#onClientEnd()));
    socket.on("error", () => {
      this.#wasReset = true;
    });
    socket.on("close", () => turn.run(() => this.#onClientGone()));
    this.#armMaxDuration();
    this.#armLogTimer();
    if (settings.logFlush.onStart) this.#log("TcpConnectionStart");
    dataPath.connectionLog.debug("new tcp proxy session", { connection: info.id, remote: info.remoteAddress });
    turn.run(() => this.#connect());
  }

  /**
   * Nothing says where a conversation could be broken off: it goes on until the listener's time is over, as in Envoy.
   */
  drain(): void {}

  destroy(): void {
    this.#wasDestroyed = true;
    this.#output.flush();
    this.#socket.destroy();
  }

  // The way to a host

  #connect(): void {
    const cluster = this.#clusterSlot?.current;
    this.#cluster = cluster;
    this.#info.cluster = cluster;
    if (cluster === undefined) {
      this.#settings.stats.noRoute.increment();
      this.#fail("NC");
    } else if (cluster.load.connections >= cluster.circuitBreakers.maxConnections) {
      cluster.stats.upstreamConnectionOverflow.increment();
      this.#fail("UO");
    } else if (this.#info.attemptCount >= this.#settings.maxConnectAttempts) {
      cluster.stats.upstreamConnectAttemptsExceeded.increment();
      this.#fail("URX");
    } else if (cluster.resolveAuthority === undefined) {
      this.#tryHost(cluster, cluster.hostOfDestination?.(this.#info) ?? cluster.loadBalancer.chooseHost(undefined));
    } else {
      this.#tryNamed(cluster);
    }
  }

  /** The host that the server name names, at the port that a filter before has said. */
  #tryNamed(cluster: Cluster): void {
    const { dataPath, info } = this.#options;
    const port = info.filterState.get(dynamicPortKey);
    if (typeof port !== "number") return this.#tryHost(cluster, undefined);
    const onHost = (host: Host | undefined): void => {
      if (!this.#socket.destroyed) dataPath.turn.run(() => this.#tryHost(cluster, host));
    };
    cluster.resolveAuthority!(`${info.serverName}:${port}`).then(onHost, () => onHost(undefined));
  }

  #tryHost(cluster: Cluster, host: Host | undefined): void {
    const { dataPath, info } = this.#options;
    this.#info.upstreamAskedMs = dataPath.turn.nowMs;
    if (host === undefined) {
      this.#info.upstreamPoolReadyMs = this.#info.upstreamAskedMs;
      cluster.stats.noHealthyHosts.increment();
      this.#fail("UH");
      return;
    }
    this.#info.attemptCount += 1;
    this.#info.upstreamHost = host;
    cluster.stats.upstreamRequestsPendingTotal.increment();
    this.#upstream = new TcpConnection(host, cluster, this, dataPath, info.upstreamSource);
    dataPath.upstreamLog.debug("connecting", {
      connection: info.id,
      cluster: cluster.name,
      host: host.addressText,
    });
  }

  #fail(flag: ResponseFlag): void {
    this.#info.responseFlags |= responseFlags[flag].bit;
    reportSession(this.#options, this.#info, "opened");
    this.destroy();
  }

  onConnectFailure(_reason: StreamResetReason, detail: string): void {
    this.#upstream = undefined;
    const host = this.#info.upstreamHost!;
    host.stats.requestsError += 1;
    this.#cluster!.outlierDetection?.onNoResponse(host, "reset");
    this.#info.upstreamPoolReadyMs = this.#options.dataPath.turn.nowMs;
    this.#info.responseFlags |= responseFlags.UF.bit;
    if (detail !== "") this.#info.upstreamTransportFailureReason = detail;
    this.#connect();
  }

  onConnected(): void {
    const host = this.#info.upstreamHost!;
    const { stats, outlierDetection } = this.#cluster!;
    this.#state = "open";
    const { nowMs } = this.#options.dataPath.turn;
    this.#info.upstreamConnectStartedMs = this.#info.upstreamAskedMs;
    this.#info.upstreamPoolReadyMs = nowMs;
    this.#info.upstreamConnectedMs = this.#upstream!.tls?.connectedMs ?? nowMs;
    this.#info.upstreamConnectionId = this.#upstream!.id;
    outlierDetection?.onConnected(host);
    this.#info.upstreamLocalAddress = this.#upstream!.localAddress;
    this.#info.upstreamTls = this.#upstream!.tls;
    stats.upstreamRequestsTotal.increment();
    countRequest(this.#cluster!, 1);
    host.stats.requestsTotal += 1;
    host.activeRequests += 1;
    this.#touch();
    this.#armIdleTimer(this.#settings.idleTimeoutMs);
    this.#report("opened");
    if (this.#settings.logFlush.onConnected) this.#log("TcpUpstreamConnected");
    for (const chunk of this.#early.splice(0)) this.#upstream!.write(chunk);
    if (this.#clientHasEnded) this.#upstream!.end();
    this.#readIfThereIsRoom();
  }

  // From the client to the host

  #onClientData(chunk: Buffer): void {
    const { info } = this.#options;
    info.firstWord?.ofClient();
    info.firstWord = undefined;
    this.#info.bytesReceived += chunk.length;
    this.#settings.stats.bytesReceived.add(chunk.length);
    if (this.#state === "connecting") {
      this.#early.push(Buffer.from(chunk));
      return;
    }
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    this.#touch();
    upstream.write(chunk);
    if (upstream.isOverHighWatermark()) this.#stopReading();
  }

  #stopReading(): void {
    this.#settings.stats.pausedReading.increment();
    this.#socket.pause();
  }

  #readIfThereIsRoom(): void {
    if (this.#upstream!.isOverHighWatermark()) this.#stopReading();
    else this.#socket.resume();
  }

  onDrained(): void {
    this.#touch();
    if (this.#state !== "open") return;
    this.#settings.stats.resumedReading.increment();
    this.#socket.resume();
  }

  #onClientEnd(): void {
    this.#touch();
    this.#clientHasEnded = true;
    if (this.#state === "open") this.#upstream?.end();
  }

  // From the host to the client

  onData(chunk: Buffer): void {
    const { info } = this.#options;
    info.firstWord?.ofServer(chunk);
    info.firstWord = undefined;
    this.#touch();
    this.#info.bytesSent += chunk.length;
    this.#settings.stats.bytesSent.add(chunk.length);
    this.#output.writeBody(chunk);
    if (this.#output.isOverHighWatermark()) this.#pauseUpstream();
  }

  #pauseUpstream(): void {
    this.#upstream!.pause();
    if (this.#isUpstreamPaused) return;
    this.#isUpstreamPaused = true;
    this.#cluster!.stats.upstreamPausedReading.increment();
  }

  #onClientDrained(): void {
    this.#touch();
    this.#upstream?.resume();
    if (!this.#isUpstreamPaused) return;
    this.#isUpstreamPaused = false;
    this.#cluster!.stats.upstreamResumedReading.increment();
  }

  onEnd(): void {
    this.#touch();
    this.#output.end();
  }

  onClosed(wasReset: boolean): void {
    this.#upstream = undefined;
    this.#forgetHost();
    if (this.#state === "flushing") {
      this.#endFlush();
    } else if (wasReset) {
      this.#info.responseFlags |= responseFlags.UR.bit;
      this.#info.upstreamCloseType = "RemoteReset";
      this.#info.downstreamCloseType = "LocalReset";
      this.#wasDestroyed = true;
      this.#output.flush();
      resetSocket(this.#socket);
    }
  }

  // Time

  #touch(): void {
    this.#lastActivityMs = this.#options.dataPath.turn.nowMs;
  }

  #armIdleTimer(delayMs: number): void {
    const { timers, turn } = this.#options.dataPath;
    if (delayMs > 0) timers.arm(this.#idleTimer, delayMs, turn.nowMs);
  }

  #onIdleTimer(): void {
    const leftMs = this.#lastActivityMs + this.#settings.idleTimeoutMs - this.#options.dataPath.turn.nowMs;
    if (leftMs > 0) {
      this.#armIdleTimer(leftMs);
      return;
    }
    this.#settings.stats.idleTimeouts.increment();
    if (this.#state !== "flushing") {
      this.destroy();
      return;
    }
    this.#upstream?.abandon();
    this.#upstream = undefined;
    this.#forgetHost();
    this.#endFlush();
  }

  #armMaxDuration(): void {
    const { maxDurationMs, maxDurationJitterPercent } = this.#settings;
    if (maxDurationMs === 0) return;
    const { timers, turn, random } = this.#options.dataPath;
    const jitterMs = maxDurationMs * (maxDurationJitterPercent / 100) * random();
    timers.arm(this.#durationTimer, maxDurationMs + jitterMs, turn.nowMs);
  }

  #onMaxDuration(): void {
    this.#settings.stats.maxDurations.increment();
    this.#info.responseFlags |= responseFlags.DT.bit;
    this.destroy();
  }

  #report(phase: "opened" | "continues"): void {
    const { timers, turn } = this.#options.dataPath;
    const againAfterMs = reportSession(this.#options, this.#info, phase);
    if (againAfterMs !== undefined) timers.arm(this.#reportTimer, againAfterMs, turn.nowMs);
  }

  #log(type: AccessLogType): void {
    logSession(this.#settings, this.#options, this.#info, type);
  }

  #armLogTimer(): void {
    if (this.#logTimer === undefined) return;
    const { timers, turn } = this.#options.dataPath;
    timers.arm(this.#logTimer, this.#settings.logFlush.intervalMs, turn.nowMs);
  }

  #logAgain(): void {
    this.#log("TcpPeriodic");
    this.#armLogTimer();
  }

  // The end

  #onClientGone(): void {
    const { dataPath, info, onClosed } = this.#options;
    dataPath.timers.disarm(this.#durationTimer);
    dataPath.timers.disarm(this.#reportTimer);
    if (this.#logTimer !== undefined) dataPath.timers.disarm(this.#logTimer);
    if (this.#wasReset) this.#info.downstreamCloseType = closeTypeOf(this.#socket);
    endSession(this.#settings, this.#options, this.#info);
    dataPath.connectionLog.debug("closed", { connection: info.id });
    this.#leaveHost();
    onClosed(this);
  }

  #leaveHost(): void {
    const upstream = this.#upstream;
    const inPeace = this.#state === "open" && !this.#wasReset && !this.#wasDestroyed;
    if (upstream !== undefined && inPeace) {
      this.#state = "flushing";
      this.#settings.stats.upstreamFlushTotal.increment();
      this.#settings.stats.upstreamFlushActive.add(1);
      return;
    }
    this.#upstream = undefined;
    if (upstream !== undefined) {
      upstream.abandon(this.#wasReset);
      this.#forgetHost();
    }
    this.#close();
  }

  #endFlush(): void {
    this.#settings.stats.upstreamFlushActive.add(-1);
    this.#close();
  }

  #close(): void {
    this.#state = "closed";
    this.#options.dataPath.timers.disarm(this.#idleTimer);
  }

  #forgetHost(): void {
    if (this.#state === "connecting") return;
    countRequest(this.#cluster!, -1);
    this.#info.upstreamHost!.activeRequests -= 1;
  }
}
