// What every endpoint needs to do its work, made once at start and handed down.
import type { Logger, ProcessTracer } from "@tulle/telemetry";
import type { AuditLog } from "./audit/audit-log.ts";
import type { Config } from "./config/config.ts";
import type { PasswordHasher } from "./crypto/passwords.ts";
import type { KeyRing } from "./keys/key-ring.ts";
import type { ServerMetrics } from "./metrics.ts";
import type { Database } from "./store/database.ts";
import type { KnownDevices } from "./http/known-device.ts";
import type { GuessCounter } from "./token/guess-counter.ts";

export interface ServerContext {
  readonly config: Config;
  readonly database: Database;
  readonly keys: KeyRing;
  readonly passwords: PasswordHasher;
  readonly devices: KnownDevices;
  readonly audit: AuditLog;
  readonly log: Logger;
  readonly metrics: ServerMetrics;
  readonly clientGuesses: GuessCounter;
  /** Undefined: tracing is off. */
  readonly tracer?: ProcessTracer | undefined;
}
