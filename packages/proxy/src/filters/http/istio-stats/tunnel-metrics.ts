// Tunnels that end here (CONNECT to a port of connections) are to Istio's metrics what they are to their two ends:
// connections. Bytes are told while they are open, since they may last for days.
import type { HttpStream } from "../../../http/filter.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import type { DataPath } from "../../../worker/data-path.ts";
import { CallbackTimer } from "../../../worker/timer-wheel.ts";
import { ConnectionMetrics, type ConnectionMetricsOptions } from "./connection-metrics.ts";

export class TunnelMetrics {
  readonly #connections: ConnectionMetrics;
  /** Under way, and whether it has been counted as opened. */
  readonly #tunnels = new Map<StreamInfo, { isOpened: boolean }>();
  #timer: CallbackTimer | undefined = undefined;

  constructor(options: ConnectionMetricsOptions) {
    this.#connections = new ConnectionMetrics(options);
  }

  /** A request by CONNECT; nothing happens unless its route ends the tunnel here. */
  follow({ info, request, routeMatch, dataPath }: HttpStream): void {
    const action = routeMatch?.action;
    if (request.upgrade !== "connect" || action?.type !== "forward") return;
    if (action.upgrades?.get(request.upgrade)?.terminatesConnect !== true) return;
    this.#tunnels.set(info, { isOpened: false });
    if (this.#tunnels.size > 1) return;
    this.#timer ??= new CallbackTimer(() => {
      for (const each of this.#tunnels.keys()) if (each.responseCode === 200) this.#count(each, "continues");
      if (this.#tunnels.size > 0) this.#arm(dataPath);
    });
    this.#arm(dataPath);
  }

  /** False: it was none. */
  onComplete(info: StreamInfo): boolean {
    if (!this.#tunnels.has(info)) return false;
    this.#count(info, "closed");
    this.#tunnels.delete(info);
    return true;
  }

  #count(info: StreamInfo, phase: "continues" | "closed"): void {
    const tunnel = this.#tunnels.get(info)!;
    if (!tunnel.isOpened) this.#connections.count(info, "opened");
    tunnel.isOpened = true;
    this.#connections.count(info, phase);
  }

  #arm({ timers, turn }: DataPath): void {
    timers.arm(this.#timer!, this.#connections.reportIntervalMs, turn.nowMs);
  }
}
