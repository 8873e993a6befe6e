// The streams of each pod on the port with TLS: they end with their pod, and of too many the oldest makes way.
import type { Logger } from "@tulle/telemetry";
import { type AdsConnection, type AdsServerHandlers, handlersOver } from "@tulle/xds";
import { parseNode } from "../scope/proxy.ts";
import type { KnownPods } from "./known-pods.ts";
import { maxStreamsPerPod, refusalOf } from "./own-configuration.ts";

export class PodStreams {
  readonly #log: Logger;
  /** By pod, the oldest stream first, of all services. */
  readonly #open = new Map<string, Set<AdsConnection>>();

  constructor(pods: KnownPods, log: Logger) {
    this.#log = log;
    pods.follow(() => this.#endThoseRefused(pods));
  }

  /** The same handlers, which hear of no more streams than a pod may have. */
  bounding(handlers: AdsServerHandlers): AdsServerHandlers {
    return handlersOver(handlers, {
      onConnect: (connection) => this.#add(connection),
      onDisconnect: (connection) => this.#remove(connection),
    });
  }

  #add(connection: AdsConnection): void {
    const pod = podOf(connection);
    const streams = this.#open.get(pod) ?? new Set();
    this.#open.set(pod, streams.add(connection));
    const [oldest] = streams;
    if (streams.size <= maxStreamsPerPod || oldest === undefined) return;
    oldest.close("RESOURCE_EXHAUSTED", `more than ${maxStreamsPerPod} streams of ${pod}: the oldest makes way`);
  }

  #remove(connection: AdsConnection): void {
    const pod = podOf(connection);
    const streams = this.#open.get(pod);
    streams?.delete(connection);
    if (streams?.size === 0) this.#open.delete(pod);
  }

  /** A pod that is gone, or has become another's, gets no more of its configuration. */
  #endThoseRefused(pods: KnownPods): void {
    for (const connection of [...this.#open.values()].flatMap((streams) => [...streams])) {
      const reason = refusalOf(connection, pods);
      if (reason === undefined) continue;
      this.#log.info("a stream ends with its pod", { peer: connection.peer, node: connection.node.id, reason });
      connection.close("PERMISSION_DENIED", reason);
    }
  }
}

/** `<pod>.<namespace>`. Whoever has come as far as a handler has been seen to be of one. */
function podOf({ node }: AdsConnection): string {
  const parsed = parseNode(node);
  return "problem" in parsed ? node.id : `${parsed.proxy.name}.${parsed.proxy.namespace}`;
}
