// Pings on an HTTP/2 connection, so that a peer whose machine is gone is noticed (config.core.v3.KeepaliveSettings).
import type http2 from "node:http2";
import type { Http2KeepAlive } from "../codec/http2/http2-options.ts";

/** Pings while the session lives; `onSilence` is called at most once. Timers keep no process alive. */
export function keepAlive(
  session: http2.ClientHttp2Session,
  { intervalMs, jitterPercent, timeoutMs }: Http2KeepAlive,
  onSilence: () => void,
): void {
  let timer: NodeJS.Timeout | undefined;
  const wait = (ms: number, then: () => void): void => {
    timer = setTimeout(then, ms).unref();
  };
  const awaitBytes = (): void => {
    const before = session.socket?.bytesRead;
    wait(timeoutMs, () => {
      if (session.destroyed) return;
      if (session.socket?.bytesRead === before) onSilence();
      else awaitBytes();
    });
  };
  const pingLater = (): void => wait(intervalMs * (1 + (Math.random() * jitterPercent) / 100), ping);
  const ping = (): void => {
    // It is destroyed a moment before it says so.
    if (session.destroyed) return;
    awaitBytes();
    session.ping((error) => {
      clearTimeout(timer);
      if (error === null && !session.destroyed) pingLater();
    });
  };
  session.once("close", () => clearTimeout(timer));
  pingLater();
}
