// Access logs of requests that go on: at their begin, from time to time, and when a tunnel stands
// (HttpConnectionManager.access_log_options).
import type { HttpConnectionManager } from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import type { AccessLog } from "../access-log/access-log.ts";
import { compileFlushInterval } from "../fields/compile-flush-interval.ts";
import type { Place, Problems } from "../fields/problems.ts";
import type { AccessLogType } from "../http/access-log-type.ts";
import { isTunnelStart } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import type { StreamObserver } from "./stream-observer.ts";

/** Those that write the last line come behind them. */
export function compileIntermediateLogs(
  message: HttpConnectionManager,
  logs: readonly AccessLog[],
  place: Place,
  problems: Problems,
): readonly StreamObserver[] {
  const { accessLogOptions: options } = message;
  const intervalMs = compileFlushInterval(message, place, problems);
  if (options !== undefined && message.flushAccessLogOnNewRequest) {
    problems.error(place, "Only one of flush_access_log_on_new_request or access_log_options can be specified.");
  }
  const observers: StreamObserver[] = [];
  if (intervalMs > 0) observers.push(new PeriodicLogs(logs, intervalMs));
  if (options?.flushAccessLogOnNewRequest ?? message.flushAccessLogOnNewRequest) {
    observers.push({ onRoute: (info) => logNow(logs, info, "DownstreamStart", info.startMonotonicMs) });
  }
  if (options?.flushLogOnTunnelSuccessfullyEstablished === true) {
    observers.push({
      onResponse: (info, response) => {
        if (!isTunnelStart(info.request?.method ?? "", response)) return;
        logNow(logs, info, "DownstreamTunnelSuccessfullyEstablished", info.responseStartedMs);
      },
    });
  }
  return observers;
}

function logNow(logs: readonly AccessLog[], info: StreamInfo, type: AccessLogType, nowMs: number): void {
  info.accessLogType = type;
  info.durationMs = nowMs - info.startMonotonicMs;
  for (const log of logs) log.log(info);
  info.accessLogType = "DownstreamEnd";
}

class PeriodicLogs implements StreamObserver {
  readonly #logs: readonly AccessLog[];
  readonly #intervalMs: number;
  /** Of the streams that there are. */
  readonly #disarm = new Map<StreamInfo, () => void>();

  constructor(logs: readonly AccessLog[], intervalMs: number) {
    this.#logs = logs;
    this.#intervalMs = intervalMs;
  }

  onStart(info: StreamInfo, { timers, turn }: DataPath): void {
    const timer = new CallbackTimer(() => {
      logNow(this.#logs, info, "DownstreamPeriodic", turn.nowMs);
      timers.arm(timer, this.#intervalMs, turn.nowMs);
    });
    timers.arm(timer, this.#intervalMs, turn.nowMs);
    this.#disarm.set(info, () => timers.disarm(timer));
  }

  onEnd(info: StreamInfo): void {
    this.#disarm.get(info)?.();
    this.#disarm.delete(info);
  }
}
