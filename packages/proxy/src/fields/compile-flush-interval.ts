// How often an access log is written while what it is about goes on: a field of its own once, now one of the options.
import type { Duration } from "@bufbuild/protobuf/wkt";
import { durationMs } from "./duration.ts";
import type { Place, Problems } from "./problems.ts";

interface FlushFields {
  readonly accessLogFlushInterval?: Duration | undefined;
  readonly accessLogOptions?: { readonly accessLogFlushInterval?: Duration | undefined } | undefined;
}

/** In milliseconds; 0 = at the end alone. */
export function compileFlushInterval(message: FlushFields, place: Place, problems: Problems): number {
  const { accessLogFlushInterval: ownInterval, accessLogOptions: options } = message;
  if (options !== undefined && ownInterval !== undefined) {
    problems.error(place, "Only one of access_log_flush_interval or access_log_options can be specified.");
  }
  const interval = options?.accessLogFlushInterval ?? ownInterval;
  if (interval === undefined) return 0;
  const intervalMs = durationMs(interval, 0);
  if (intervalMs < 1) {
    const at = options?.accessLogFlushInterval === undefined ? place : place.field("access_log_options");
    problems.error(at.field("access_log_flush_interval"), "value must be greater than or equal to 1ms");
  }
  return intervalMs;
}
