// Why a connection ends for what its peer did (RFC 9113 §5.4.1).
import type { Flood } from "./flood-guard.ts";

export interface SessionFailure {
  readonly errorCode: number;
  readonly what: string;
  readonly flood: Flood | undefined;
}
