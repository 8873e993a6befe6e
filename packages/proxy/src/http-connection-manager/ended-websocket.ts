// A WebSocket whose client has ended its side. It has no half that stays open (RFC 6455 §7.1.1), but not every host is
// told of the end: Envoy, for one, passes none from HTTP/2 on to HTTP/1.1, and nothing else would end the stream.
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";

/** So long the host may be silent then (Envoy's gateways give it no time at all). */
const silenceMs = 1_000;

/** `giveUp` is called once nothing has come for so long; until then the timer is the caller's to disarm. */
export function giveUpWhenSilent(
  { timers, turn }: DataPath,
  lastActivityMs: () => number,
  giveUp: () => void,
): CallbackTimer {
  const timer = new CallbackTimer(() => {
    const leftMs = lastActivityMs() + silenceMs - turn.nowMs;
    if (leftMs > 0) timers.arm(timer, leftMs, turn.nowMs);
    else giveUp();
  });
  timers.arm(timer, silenceMs, turn.nowMs);
  return timer;
}
