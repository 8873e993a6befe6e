// Between who subscribes and who applies: plain data both ways, so that the two may be in different threads. Responses
// go in, verdicts and the names that are needed next come out; config-update.test.ts sends all of it through the
// structured clone.
import type { AdsResponse, Verdict } from "@tulle/xds";
import type { Secret } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import type { SecretSource } from "../tls/secret-slot.ts";

/** What one response of the aggregated stream brings. */
export type ConfigUpdate = Extract<AdsResponse, { type: "CDS" | "EDS" | "LDS" | "RDS" }>;

/** The two halves of a start: listeners are asked for once clusters serve. */
export type ConfigStage = "clusters" | "listeners";

export interface ConfigEvents {
  /**
   * All names of that type that what is in place asks for; those of before that are missing here are needed no more.
   */
  onNeeds(type: "EDS" | "RDS", names: ReadonlySet<string>): void;
  /** Everything of that stage that has come serves, or was waited for long enough; told again after each change. */
  onWarm(stage: ConfigStage): void;
}

export interface ConfigReceiver {
  /** Puts in place what is good, keeps the version before of the rest, and names that. One after the other. */
  apply(update: ConfigUpdate): Promise<Verdict>;
  /** Whether that very version was accepted last, so that it need not be applied again. */
  holds(type: ConfigUpdate["type"], name: string, contentVersion: string): boolean;
  /** Nothing came in time: the stage counts as warm with what there is. */
  giveUpWaiting(stage: ConfigStage): void;
  /** The stream has ended; it will be opened again. */
  onStreamEnd(): void;
  close(): void;
}

/** Names of secrets that are needed of one source. */
export interface SecretNeed {
  readonly source: SecretSource;
  readonly names: ReadonlySet<string>;
}

/** What one response, or one file, of that source brings. */
export interface SecretUpdate {
  readonly source: SecretSource;
  readonly versionInfo: string;
  readonly resources: ReadonlyMap<string, Secret>;
  readonly versions: ReadonlyMap<string, string>;
  readonly removed: readonly string[];
  /** By name: directories of its files whose changes would not be seen. */
  readonly unwatched: ReadonlyMap<string, readonly string[]>;
  /** The message is the one of before, and the files that it names may have changed. */
  readonly isAgain: boolean;
}
