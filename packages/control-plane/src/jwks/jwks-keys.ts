// The keys of token issuers: fetched as soon as a policy names them, refreshed while the last ones still serve, tried
// again soon after a failure. Whoever builds a snapshot reads what is there and never waits.
import type { Clock } from "@tulle/timing";
import { findingCodes, formatPath, type Finding, type Path } from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import type { JwksLocation, MeshRequestAuthentication } from "../snapshot/mesh-snapshot.ts";
import { jwksLocationKey } from "../snapshot/security-policies.ts";
import type { FetchedJwks } from "./fetch-jwks.ts";
import type { SavedKeys, SavedKeySet } from "./saved-key-set.ts";

export interface JwksTimes {
  /** From one good fetch to the next. Envoy's own remote key sets live as long. */
  readonly refreshMs: number;
  /** After the first failure; doubled by each further one. */
  readonly firstRetryMs: number;
  readonly maxRetryMs: number;
  /** How long keys serve whose issuer does not answer. */
  readonly keepMs: number;
}

export const defaultJwksTimes: JwksTimes = {
  refreshMs: 300_000,
  firstRetryMs: 250,
  maxRetryMs: 60_000,
  keepMs: 86_400_000,
};

/** Istio's limit for one fetch, where a policy sets none. */
const defaultTimeoutMs = 5000;
/** A policy may set less, and not more. */
const maxTimeoutMs = 30_000;
/** Of all key sets at once; further ones are not fetched. */
export const maxKeySets = 256;
/** Failures in a row before anyone is told but the log: an issuer of the mesh may still be starting. */
const toldAfterFailures = 5;
/** Share of a wait by which it is longer or shorter, so that many control planes do not ask at once. */
const jitter = 0.1;

export interface JwksKeysOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly fetch: (location: JwksLocation, timeoutMs: number) => Promise<FetchedJwks>;
  /** Where a field of a policy is written. */
  readonly placeOf?: (namespace: string, name: string, path: Path) => Pick<Finding, "place">;
  /** Keys of an earlier run, which serve up to their limit. */
  readonly saved?: SavedKeys;
  /** All keys, after each good fetch. */
  readonly save?: (keys: SavedKeys) => void;
  readonly times?: JwksTimes;
  /** From 0 to 1. */
  readonly random?: () => number;
}

/** Always either being fetched or waiting for the next fetch. */
interface KeySet {
  readonly location: JwksLocation;
  timeoutMs: number;
  fetchedAtMs: number;
  failures: number;
  /** Why the last fetch failed. */
  problem: string | undefined;
  isFetching: boolean;
  cancel: () => void;
}

export class JwksKeys {
  readonly #options: JwksKeysOptions;
  readonly #times: JwksTimes;
  readonly #saved: SavedKeys;
  readonly #sets = new Map<string, KeySet>();
  readonly #keys = new Map<string, string>();
  #policies: readonly MeshRequestAuthentication[] = [];
  #onChange = (): void => undefined;

  constructor(options: JwksKeysOptions) {
    this.#options = options;
    this.#times = options.times ?? defaultJwksTimes;
    this.#saved = options.saved ?? new Map();
    const oldestMs = options.clock.nowMs() - this.#times.keepMs;
    for (const [key, { jwks, fetchedAtMs }] of this.#saved) if (fetchedAtMs > oldestMs) this.#keys.set(key, jwks);
  }

  /** What is there now, by `jwksLocationKey`. */
  get keys(): ReadonlyMap<string, string> {
    return this.#keys;
  }

  /** Whoever reads the keys hears when some have come, changed or gone. */
  follow(onChange: () => void): void {
    this.#onChange = onChange;
  }

  /** Begins to fetch what `policies` name, and forgets what none of them does. */
  want(policies: readonly MeshRequestAuthentication[]): void {
    this.#policies = policies;
    const wanted = new Set<string>();
    for (const { location, fetchTimeoutMs = defaultTimeoutMs } of policies.flatMap(({ jwtRules }) => jwtRules)) {
      if (location === undefined) continue;
      const key = jwksLocationKey(location);
      const isNew = !wanted.has(key) && !this.#sets.has(key);
      if (isNew && wanted.size >= maxKeySets) {
        this.#options.log.warning("too many key sets, this one is not fetched", { url: location.url });
        continue;
      }
      wanted.add(key);
      const timeoutMs = Math.min(fetchTimeoutMs, maxTimeoutMs);
      const known = this.#sets.get(key);
      if (known === undefined) this.#begin(key, location, timeoutMs);
      else known.timeoutMs = timeoutMs;
    }
    for (const [key, set] of this.#sets) if (!wanted.has(key)) this.#forget(key, set);
    for (const key of this.#keys.keys()) if (!wanted.has(key)) this.#keys.delete(key);
  }

  /** What the authors of policies should know: whose keys cannot be had, and what that means. */
  findings(): readonly Finding[] {
    return this.#policies.flatMap(({ namespace, name, jwtRules }) =>
      jwtRules.flatMap(({ location, issuer }, index): readonly Finding[] => {
        const key = location === undefined ? "" : jwksLocationKey(location);
        const { problem, failures = 0 } = this.#sets.get(key) ?? {};
        if (problem === undefined || failures < toldAfterFailures) return [];
        const path = ["spec", "jwtRules", index];
        const meaning = this.#keys.has(key) ? "the last ones go on" : "its tokens are refused until they are there";
        return [
          {
            code: "TUL0007",
            severity: findingCodes.TUL0007.severity,
            message: `the keys of ${issuer} could not be fetched from ${location!.url} (${problem}); ${meaning}`,
            resource: { kind: "RequestAuthentication", namespace, name },
            path: formatPath(path),
            ...this.#options.placeOf?.(namespace, name, path),
          },
        ];
      }),
    );
  }

  /**
   * What may answer now though it did not before, such as an issuer of the mesh whose endpoints have changed, is asked
   * at once.
   */
  askAgain(mayAnswer: (url: string) => boolean): void {
    for (const [key, set] of this.#sets) {
      if (set.problem === undefined || set.isFetching || !mayAnswer(set.location.url)) continue;
      set.cancel();
      set.cancel = this.#options.clock.after(0, () => this.#fetch(key, set));
    }
  }

  close(): void {
    for (const [key, set] of this.#sets) this.#forget(key, set);
  }

  #begin(key: string, location: JwksLocation, timeoutMs: number): void {
    const cancel = (): void => undefined;
    const fetchedAtMs = this.#keys.has(key) ? (this.#saved.get(key)?.fetchedAtMs ?? 0) : 0;
    const set: KeySet = {
      location,
      timeoutMs,
      fetchedAtMs,
      failures: 0,
      problem: undefined,
      isFetching: false,
      cancel,
    };
    this.#sets.set(key, set);
    // Later than the snapshot that asked for it, which may still be under construction.
    set.cancel = this.#options.clock.after(0, () => this.#fetch(key, set));
  }

  #forget(key: string, set: KeySet): void {
    set.cancel();
    this.#sets.delete(key);
    this.#keys.delete(key);
  }

  #fetch(key: string, set: KeySet): void {
    set.isFetching = true;
    this.#options.fetch(set.location, set.timeoutMs).then(
      (fetched) => this.#fetched(key, set, fetched),
      (error: unknown) => this.#fetched(key, set, { problem: String(error) }),
    );
  }

  #fetched(key: string, set: KeySet, fetched: FetchedJwks): void {
    set.isFetching = false;
    // Forgotten meanwhile.
    if (this.#sets.get(key) !== set) return;
    const { clock } = this.#options;
    const before = this.#keys.get(key);
    if ("jwks" in fetched) {
      set.fetchedAtMs = clock.nowMs();
      set.failures = 0;
      set.problem = undefined;
      this.#keys.set(key, fetched.jwks);
      this.#options.save?.(this.#toSave());
    } else {
      this.#failed(key, set, fetched.problem);
    }
    const { refreshMs, firstRetryMs, maxRetryMs } = this.#times;
    const retryMs = Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(set.failures - 1, 30));
    set.cancel = clock.after(this.#jittered(set.failures === 0 ? refreshMs : retryMs), () => this.#fetch(key, set));
    if (this.#keys.get(key) !== before) this.#onChange();
  }

  #toSave(): SavedKeys {
    const keys = [...this.#keys].map(([key, jwks]): [string, SavedKeySet] => [
      key,
      { jwks, fetchedAtMs: this.#sets.get(key)?.fetchedAtMs ?? 0 },
    ]);
    return new Map(keys);
  }

  #failed(key: string, set: KeySet, problem: string): void {
    const { log, clock } = this.#options;
    set.failures += 1;
    // The same failure again is no news.
    if (set.problem !== problem) log.warning("keys could not be fetched", { url: set.location.url, reason: problem });
    set.problem = problem;
    if (this.#keys.has(key) && clock.nowMs() - set.fetchedAtMs >= this.#times.keepMs) {
      log.error("keys have reached their limit and serve no longer", { url: set.location.url });
      this.#keys.delete(key);
    }
  }

  #jittered(delayMs: number): number {
    const { random = Math.random } = this.#options;
    return Math.round(delayMs * (1 + jitter * (2 * random() - 1)));
  }
}
