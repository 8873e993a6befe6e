// Handlers that see streams begin and end, and leave all else to those below them.
import type { AdsServerHandlers } from "./ads-server-api.ts";

/** Each of `seen` is called before the one below. */
export function handlersOver(
  below: AdsServerHandlers,
  seen: {
    readonly onConnect: (...args: Parameters<AdsServerHandlers["onConnect"]>) => void;
    readonly onDisconnect: (...args: Parameters<AdsServerHandlers["onDisconnect"]>) => void;
  },
): AdsServerHandlers {
  return {
    onConnect: (connection) => {
      seen.onConnect(connection);
      below.onConnect(connection);
    },
    onSubscribe: (connection, subscription) => below.onSubscribe(connection, subscription),
    onAck: (connection, acknowledgement) => below.onAck?.(connection, acknowledgement),
    onNack: (connection, rejection) => below.onNack?.(connection, rejection),
    onSent: (connection, sent) => below.onSent?.(connection, sent),
    onIgnored: (connection, ignored) => below.onIgnored?.(connection, ignored),
    onInternalError: (connection) => below.onInternalError?.(connection),
    onDisconnect: (connection, reason) => {
      seen.onDisconnect(connection, reason);
      below.onDisconnect(connection, reason);
    },
  };
}
