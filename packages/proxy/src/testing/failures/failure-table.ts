// The failure table. Each row makes one request or connection fail, or pass where it only looks bad, and says the
// access-log lines and counters that tell of it: the same on both proxies, or with the reason why not.
import { downstreamFailures } from "./downstream-failures.ts";
import type { FailureRow } from "./failure-row.ts";
import { upstreamFailures } from "./upstream-failures.ts";

export const failureRows: readonly FailureRow[] = [...upstreamFailures, ...downstreamFailures];
