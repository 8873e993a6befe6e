// The workload's identity while its agent lives: obtained, kept over restarts, renewed at half life, and handed to
// whoever follows it. The times are decided by identity's renewal machine; here is what it is fed with, and what its
// states make happen.
import type { Clock } from "@tulle/timing";
import {
  checkWorkloadCertificate,
  type ExpiryLevel,
  readWorkloadCertificate,
  renewalDueMs,
  type RenewalEvent,
  type RenewalState,
  type SpiffeId,
  spiffeIdText,
  startRenewal,
  stepRenewal,
  type WorkloadCertificate,
  workloadExpiry,
  writeWorkloadCertificate,
} from "@tulle/identity";
import { type Logger, Trouble } from "@tulle/telemetry";
import type { SignCertificate } from "./certificate-signer.ts";
import { IdentityMetrics } from "./identity-metrics.ts";
import { requestCertificate } from "./request-certificate.ts";
import { parseRoots, readTrustedRoots } from "./trusted-roots.ts";

export interface WorkloadIdentityOptions {
  readonly spiffeId: SpiffeId;
  /** Key and chain over a restart, mode 0600. */
  readonly file: string;
  readonly tokenFile: string | undefined;
  readonly rootsFile: string;
  /** What `rootsFile` holds at the start. */
  readonly rootsPem: string;
  readonly sign: SignCertificate;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/**
 * The time of day, because that is what a peer compares a certificate with: a machine that slept, or whose clock was
 * set, has certificates that are older than its uptime says.
 */
const wallClock: Clock = {
  nowMs: () => Date.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

/** For the same reason nothing sleeps longer than this before it looks at the clock again. */
const longestSleepMs = 60_000;
const shortestSleepMs = 20;

export class WorkloadIdentity {
  readonly metrics: IdentityMetrics;
  readonly #options: WorkloadIdentityOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #listeners = new Set<(certificate: WorkloadCertificate) => void>();
  /** What the control plane is verified with. */
  #rootsPem: string;
  /** What the file held at the last look. */
  #filePem: string;
  /** The roots are those of a stream that stands: nothing is newer. */
  #rootsAreLive = false;
  #renewal!: RenewalState;
  #level: ExpiryLevel = "good";
  /** Why the last request failed; empty after one that did not. */
  #trouble = "";
  readonly #fileTrouble: Trouble;
  #cancelWake: () => void = () => undefined;
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(options: WorkloadIdentityOptions) {
    this.#options = options;
    this.#fileTrouble = new Trouble(options.log);
    this.#clock = options.clock ?? wallClock;
    this.#random = options.random ?? Math.random;
    this.#rootsPem = options.rootsPem;
    this.#filePem = options.rootsPem;
    this.metrics = new IdentityMetrics(() => this.#clock.nowMs());
  }

  /** Takes what is kept, if it is still good, and begins; the first certificate may come later. */
  static async start(options: WorkloadIdentityOptions): Promise<WorkloadIdentity> {
    const identity = new WorkloadIdentity(options);
    await identity.#begin();
    return identity;
  }

  get rootsFile(): string {
    return this.#options.rootsFile;
  }

  /** The certificate to use now; an expired one too, as long as there is no better. Undefined before the first. */
  get current(): WorkloadCertificate | undefined {
    return this.#renewal.current;
  }

  /** Calls back at once if there is a certificate, and whenever it or the trusted roots change. Returns the way out. */
  follow(listener: (certificate: WorkloadCertificate) => void): () => void {
    this.#listeners.add(listener);
    if (this.current !== undefined) listener(this.current);
    return () => void this.#listeners.delete(listener);
  }

  /** The mesh's roots as the control plane tells them now, in the form of `parseRoots`. */
  takeRoots(pem: string): void {
    this.#rootsAreLive = true;
    this.#replaceRoots(pem);
  }

  /** Nobody tells of changes any more: the roots that come with the next certificate are newer. */
  rootsMayBeOld(): void {
    this.#rootsAreLive = false;
  }

  /** Resolves when what was obtained is on disk. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelWake();
    this.#listeners.clear();
    await this.#writing;
  }

  async #begin(): Promise<void> {
    const kept = await this.#readKept();
    this.#renewal = startRenewal(kept, this.#clock.nowMs(), this.#random);
    if (kept !== undefined) this.#publish(kept, "the kept certificate is still good");
    if (this.#renewal.phase === "requesting") void this.#request();
    this.#schedule();
  }

  async #readKept(): Promise<WorkloadCertificate | undefined> {
    const { file, log, spiffeId } = this.#options;
    const nowMs = this.#clock.nowMs();
    const read = await readWorkloadCertificate(file, nowMs);
    if (read === undefined) return undefined;
    // By the platform's word, not by its own: the mesh may have been set up anew while the agent was away.
    const byFile = read.ok ? checkWorkloadCertificate({ ...read.certificate, rootsPem: this.#rootsPem }, nowMs) : read;
    if (!read.ok || !byFile.ok) {
      log.info(`the kept certificate is not used: ${byFile.ok ? "" : byFile.message}`, { file });
      return undefined;
    }
    if (spiffeIdText(byFile.certificate.spiffeId) !== spiffeIdText(spiffeId)) {
      log.info("the kept certificate is somebody else's", { file, id: spiffeIdText(byFile.certificate.spiffeId) });
      return undefined;
    }
    // The file may be older than what the control plane told last; it tells again as soon as it is there.
    const both = parseRoots(this.#rootsPem + read.certificate.rootsPem);
    if (both.ok) this.#rootsPem = both.pem;
    const kept = checkWorkloadCertificate({ ...read.certificate, rootsPem: this.#rootsPem }, nowMs);
    return kept.ok ? kept.certificate : undefined;
  }

  #step(event: RenewalEvent): void {
    if (this.#isClosed) return;
    const before = this.#renewal;
    this.#renewal = stepRenewal(before, event, this.#clock.nowMs(), this.#random);
    if (this.#renewal.phase === "requesting" && before.phase !== "requesting") void this.#request();
    this.#schedule();
  }

  async #request(): Promise<void> {
    const { spiffeId, sign, tokenFile, log } = this.#options;
    const startedMs = performance.now();
    this.metrics.requests.increment();
    const outcome = await requestCertificate({
      spiffeId,
      sign,
      tokenFile,
      current: this.current,
      rootsPem: this.#rootsPem,
      now: () => this.#clock.nowMs(),
    });
    if (this.#isClosed) return;
    this.metrics.latencyMs.record(performance.now() - startedMs);
    if (!outcome.ok) {
      this.metrics.failures.increment();
      this.metrics.renewalFailuresInARow.add(1);
      this.#trouble = outcome.reason;
      this.#step({ type: "failed", reason: outcome.reason });
      const retryInMs = Math.round((renewalDueMs(this.#renewal) ?? 0) - this.#clock.nowMs());
      log.warning(`no new certificate: ${outcome.reason}`, { id: spiffeIdText(spiffeId), retryInMs });
      await this.#readRootsFile();
      return;
    }
    const certificate = this.#withNewestRoots(outcome.certificate);
    this.metrics.renewalFailuresInARow.set(0);
    this.#trouble = "";
    this.#step({ type: "issued", certificate });
    this.#publish(certificate, "a certificate was issued");
    this.#keep(certificate);
  }

  /** Roots of the stream are as new as the answer, or newer, unless the certificate is already under another one. */
  #withNewestRoots(certificate: WorkloadCertificate): WorkloadCertificate {
    const checked = checkWorkloadCertificate({ ...certificate, rootsPem: this.#rootsPem }, this.#clock.nowMs());
    if (this.#rootsAreLive && checked.ok) return checked.certificate;
    this.#rootsPem = certificate.rootsPem;
    return certificate;
  }

  /** A disk that is full takes nothing from the traffic: without the file the next start asks anew. */
  #keep(certificate: WorkloadCertificate): void {
    const { file } = this.#options;
    this.#writing = this.#writing
      .then(() => writeWorkloadCertificate(file, certificate))
      .then(() => this.#fileTrouble.end("the certificate can be kept again", { file }))
      .catch((error: unknown) => this.#fileTrouble.begin(`cannot keep the certificate: ${String(error)}`, { file }));
  }

  #publish(certificate: WorkloadCertificate, what: string): void {
    this.metrics.current = certificate;
    this.#options.log.info(what, {
      id: spiffeIdText(certificate.spiffeId),
      serial: certificate.leaf.serial,
      until: new Date(certificate.leaf.notAfterMs).toISOString(),
      roots: certificate.roots.length,
    });
    for (const listener of this.#listeners) listener(certificate);
  }

  /** The platform may have new roots when nothing that is known leads to the control plane any more. */
  async #readRootsFile(): Promise<void> {
    const read = await readTrustedRoots(this.#options.rootsFile);
    if (this.#isClosed || !read.ok || read.pem === this.#filePem) return;
    this.#filePem = read.pem;
    this.#replaceRoots(read.pem);
  }

  #replaceRoots(pem: string): void {
    if (this.#isClosed || pem === this.#rootsPem) return;
    this.#rootsPem = pem;
    const { current } = this;
    if (current === undefined) return;
    const checked = checkWorkloadCertificate({ ...current, rootsPem: pem }, this.#clock.nowMs());
    if (!checked.ok) {
      // What peers make of it is lost already; what is served goes on until there is a new one, which brings the roots
      // along.
      this.#options.log.warning(`the present certificate is not good under the new roots: ${checked.message}`);
      this.#step({ type: "unusable" });
      return;
    }
    this.#step({ type: "rootsReplaced", certificate: checked.certificate });
    this.#publish(checked.certificate, "the trusted roots have changed");
    this.#keep(checked.certificate);
  }

  #schedule(): void {
    this.#cancelWake();
    if (this.#isClosed) return;
    this.#tellExpiry();
    const nowMs = this.#clock.nowMs();
    const dueInMs = (renewalDueMs(this.#renewal) ?? Infinity) - nowMs;
    // A certificate of seconds is to be warned of in time as well.
    const leftMs = this.current === undefined ? Infinity : Math.abs(this.current.leaf.notAfterMs - nowMs);
    const sleepMs = Math.max(shortestSleepMs, Math.min(dueInMs, leftMs / 10, longestSleepMs));
    this.#cancelWake = this.#clock.after(sleepMs, () => this.#step({ type: "due" }));
  }

  /** Each level once: with a life of a day the first word comes eight hours before anything breaks. */
  #tellExpiry(): void {
    const { current } = this;
    if (current === undefined) return;
    const { level, remainingMs, serial } = workloadExpiry(current, this.#clock.nowMs());
    if (level === this.#level) return;
    this.#level = level;
    const why = this.#trouble === "" ? "" : `: ${this.#trouble}`;
    const fields = { serial, secondsLeft: Math.round(remainingMs / 1000) };
    const { log } = this.#options;
    if (level === "warning") log.warning(`the certificate should have been renewed long ago${why}`, fields);
    else if (level === "critical") log.error(`the certificate is about to expire${why}`, fields);
    else if (level === "expired") log.critical(`the certificate has expired, peers refuse it${why}`, fields);
  }
}
