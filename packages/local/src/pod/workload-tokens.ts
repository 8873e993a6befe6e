// Hands each pod the token by which its agent proves who the pod is: a file for its owner alone, rewritten long before
// it expires.
import path from "node:path";
import type { WorkloadIdentityClaims, WorkloadTokenSigningKey } from "@tulle/identity/workload-token";

/** An hour bounds what a stolen token is worth. */
const tokenLifetimeMs = 3_600_000;
const rewriteAfterMs = tokenLifetimeMs / 2;
const retryAfterMs = 5_000;
/** Tokens end by the time of day, which timers know nothing of: a laptop that slept wakes with tokens that are over. */
const longestSleepMs = 60_000;

export interface WorkloadTokensOptions {
  readonly stateFolder: string;
  /** Called when a token cannot be written; it is tried again. */
  readonly onTrouble: (message: string) => void;
  readonly now?: () => number;
  readonly rewriteAfterMs?: number;
  /** How long nothing looks at the clock at most. */
  readonly longestSleepMs?: number;
}

/** Replaces the file's content in one step. */
type WriteToken = (file: string, text: string) => Promise<void>;

interface KeptToken {
  timer: NodeJS.Timeout | undefined;
  /** The last look at the clock, with what was written at it. */
  looking: Promise<void>;
}

interface Opened {
  readonly tokens: typeof import("@tulle/identity/workload-token");
  readonly writeSecretFile: typeof import("@tulle/identity").writeSecretFile;
  readonly key: WorkloadTokenSigningKey;
}

export class WorkloadTokens {
  readonly #options: WorkloadTokensOptions;
  /** By file. */
  readonly #kept = new Map<string, KeptToken>();
  #opened: Promise<Opened> | undefined;
  /** The present trouble has been told. */
  #hasTold = false;

  constructor(options: WorkloadTokensOptions) {
    this.#options = options;
  }

  /** Loads what signing needs, which takes a while and can be had before it is wanted. */
  async preload(): Promise<void> {
    await Promise.all([import("@tulle/identity/workload-token"), import("@tulle/identity")]);
  }

  /** Reads the key of the state directory, which is made when missing. @throws when there is one that cannot be used */
  async open(): Promise<void> {
    this.#opened ??= this.#open();
    await this.#opened;
  }

  async #open(): Promise<Opened> {
    const [tokens, { writeSecretFile }] = await Promise.all([
      import("@tulle/identity/workload-token"),
      import("@tulle/identity"),
    ]);
    const file = path.join(this.#options.stateFolder, tokens.workloadTokenKeyFile);
    const opened = await tokens.openWorkloadTokenKey(file);
    if (!opened.ok) throw new Error(opened.message);
    return { tokens, writeSecretFile, key: opened.key };
  }

  /** Writes the pod's token, and goes on rewriting it; resolves when it is there, or could not be written for now. */
  async begin(claims: WorkloadIdentityClaims, file: string, write?: WriteToken): Promise<void> {
    const { now = Date.now, longestSleepMs: sleepMs = longestSleepMs } = this.#options;
    let beganMs = now();
    let pauseMs = this.#pauseMs(await this.#write(claims, file, write));
    const kept: KeptToken = { timer: undefined, looking: Promise.resolve() };
    const sleep = (): void => {
      const leftMs = Math.max(0, beganMs + pauseMs - now());
      kept.timer = setTimeout(() => (kept.looking = look()), Math.min(leftMs, sleepMs)).unref();
    };
    const look = async (): Promise<void> => {
      const nowMs = now();
      // Before its beginning: the clock was set back.
      if (nowMs >= beganMs && nowMs < beganMs + pauseMs) return sleep();
      beganMs = nowMs;
      const isKept = (): boolean => this.#kept.get(file) === kept;
      pauseMs = this.#pauseMs(await this.#write(claims, file, write, isKept));
      if (isKept()) sleep();
    };
    this.#kept.set(file, kept);
    sleep();
  }

  /** No more of it: the pod has gone. Resolves when nothing of it is written any more, so that its folder may go. */
  async end(file: string): Promise<void> {
    const kept = this.#kept.get(file);
    this.#kept.delete(file);
    clearTimeout(kept?.timer);
    await kept?.looking;
  }

  close(): void {
    for (const file of this.#kept.keys()) void this.end(file);
  }

  #pauseMs(written: boolean): number {
    const pauseMs = this.#options.rewriteAfterMs ?? rewriteAfterMs;
    return written ? pauseMs : Math.min(retryAfterMs, pauseMs);
  }

  async #write(
    claims: WorkloadIdentityClaims,
    file: string,
    write: WriteToken | undefined,
    isWanted = () => true,
  ): Promise<boolean> {
    const { now = Date.now, onTrouble } = this.#options;
    try {
      this.#opened ??= this.#open();
      const { tokens, writeSecretFile, key } = await this.#opened;
      const token = await tokens.issueWorkloadToken(key, {
        identity: claims,
        issuer: tokens.localTokenIssuer,
        audience: tokens.authorityAudience,
        lifetimeMs: tokenLifetimeMs,
        nowMs: now(),
      });
      await (write ?? writeSecretFile)(file, `${token}\n`);
      this.#hasTold = false;
      return true;
    } catch (error) {
      // The folder goes with its pod; a disk that is full is so for every pod and every try.
      if (!isWanted()) return false;
      if (!this.#hasTold) onTrouble(`the token of pod ${claims.pod.name} cannot be written: ${String(error)}`);
      this.#hasTold = true;
      return false;
    }
  }
}
