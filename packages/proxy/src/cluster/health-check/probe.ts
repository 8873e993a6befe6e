// What a health check is to the session that repeats it: something that is begun, and says once how it went. It keeps
// its connection between checks; no request of anybody else goes over it.
import type { Cluster, Host } from "../cluster.ts";
import type { DataPath } from "../../worker/data-path.ts";

export type CheckFailure = "active" | "network" | "network_timeout" | "passive";

export type CheckResult =
  | { readonly ok: true; readonly isDegraded: boolean }
  /** `isRetriable`: counted against the threshold, as failures of the network are; any other fails the host at once. */
  | {
      readonly ok: false;
      readonly failure: CheckFailure;
      readonly isRetriable: boolean;
      readonly isExcluded: boolean;
      /** The host would have said more than a check is read for. */
      readonly isTooLong?: true;
    };

export const success: CheckResult = { ok: true, isDegraded: false };
export const networkFailure: CheckResult = { ok: false, failure: "network", isRetriable: true, isExcluded: false };
export const networkTimeout: CheckResult = { ...networkFailure, failure: "network_timeout" };
export const passiveFailure: CheckResult = { ...networkFailure, failure: "passive", isRetriable: false };

export function activeFailure(isRetriable = false, isExcluded = false): CheckResult {
  return { ok: false, failure: "active", isRetriable, isExcluded };
}

export const answerTooLong: CheckResult = {
  ok: false,
  failure: "active",
  isRetriable: false,
  isExcluded: false,
  isTooLong: true,
};

export interface Probe {
  /** One check; the one before it is over. */
  begin(): void;
  /** The check has taken too long: it is given up without a result. */
  giveUp(): void;
  /** For good, without a result. */
  close(): void;
}

/** Whom a probe asks. */
export interface CheckTarget {
  /** At the address of its checks, and with what its transport is chosen by; not the one that requests go to. */
  readonly endpoint: Host;
  /** The one that is checked. */
  readonly host: Host;
  readonly cluster: Cluster;
  readonly dataPath: DataPath;
}

/** `onResult` may be called between checks too, by a connection that is expected to stay. */
export type MakeProbe = (target: CheckTarget, onResult: (result: CheckResult) => void) => Probe;
