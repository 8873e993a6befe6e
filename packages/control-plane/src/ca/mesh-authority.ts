// The mesh's authority as the control plane keeps it: opened from the state directory, moved from phase to phase,
// watched for its expiry, and the source of the control plane's own certificate.
import { access, readFile } from "node:fs/promises";
import path from "node:path";
import type { Clock } from "@tulle/timing";
import {
  type AuthorityProblem,
  type CertificateAuthority,
  createAuthority,
  generateKey,
  loadCacerts,
  openAuthority,
  privateKeyPem,
  type RotationTimes,
  verifyPeer,
  writeSecretFile,
} from "@tulle/identity";
import type { Logger } from "@tulle/telemetry";
import type { ClientVerdict, ServerTlsCredentials } from "@tulle/xds";
import type { MeshClient } from "../jwks/mesh-connection.ts";
import type { CaMetrics } from "./ca-metrics.ts";

/** What the control plane proves to be, to proxies and, when it asks them for something, to workloads. */
export const controlPlaneHosts = ["tulled.tulle-system.svc", "istiod.istio-system.svc"] as const;
const controlPlaneAccount = { namespace: "tulle-system", serviceAccount: "tulled" };

export interface MeshAuthorityOptions {
  /** The control plane's; the authority lies in `ca/` of it. */
  readonly stateDirectory: string;
  /** With Istio's file names. `cacerts/` of the state directory, where there is one, unless told. */
  readonly cacertsDirectory?: string;
  readonly trustDomain: string;
  /** What a workload's certificate lives unless it asks for another life. */
  readonly workloadTtlMs?: number;
  readonly maxWorkloadTtlMs?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: CaMetrics;
  /** The time of day: certificates are of the world outside, which also passes while a laptop sleeps. */
  readonly now?: () => number;
}

/** Phases are minutes to months long, and a sleeping machine's timers come late. */
const lookEveryMs = 60_000;
const servingTtlMs = 24 * 3_600_000;
/** An authority that is about to expire is mentioned this often. */
const warnEveryMs = 24 * 3_600_000;

export class MeshAuthority {
  readonly signing: CertificateAuthority;
  readonly now: () => number;
  readonly #options: MeshAuthorityOptions;
  readonly #cacertsDirectory: string | undefined;
  readonly #listeners = new Set<() => void>();
  #credentials: ServerTlsCredentials;
  #serving: Omit<Serving, "credentials">;
  #warnedMs = -Infinity;
  #cancelLook: () => void = () => undefined;
  #isClosed = false;

  private constructor(
    options: MeshAuthorityOptions,
    signing: CertificateAuthority,
    cacertsDirectory: string | undefined,
    serving: Serving,
  ) {
    this.#options = options;
    this.signing = signing;
    this.now = options.now ?? Date.now;
    this.#cacertsDirectory = cacertsDirectory;
    this.#credentials = serving.credentials;
    this.#serving = serving;
  }

  /** @throws with all that is wrong, when what is kept or brought along cannot be used */
  static async open(options: MeshAuthorityOptions): Promise<MeshAuthority> {
    const { stateDirectory, trustDomain, workloadTtlMs, maxWorkloadTtlMs, now = Date.now, log } = options;
    const cacertsDirectory = options.cacertsDirectory ?? (await ifThere(path.join(stateDirectory, "cacerts")));
    const opened = await openAuthority({
      stateDir: path.join(stateDirectory, "ca"),
      trustDomain,
      now,
      ...(cacertsDirectory === undefined ? {} : { cacertsDir: cacertsDirectory }),
      ...(workloadTtlMs === undefined ? {} : { defaultTtlMs: workloadTtlMs }),
      ...(maxWorkloadTtlMs === undefined ? {} : { maxTtlMs: maxWorkloadTtlMs }),
    });
    if (!opened.ok) throw new Error(`the certificate authority cannot be used: ${problemText(opened.problems)}`);
    const { authority: signing, created } = opened;
    await keepRootFile(rootFile(stateDirectory), signing.trustBundlePem);
    const mesh = new MeshAuthority(options, signing, cacertsDirectory, await issueServing(signing, now()));
    log.info(created ? "a certificate authority was made" : "the certificate authority was opened", {
      trustDomain,
      roots: signing.roots.length,
      phase: signing.state.phase,
      cacerts: cacertsDirectory,
    });
    await mesh.#look();
    return mesh;
  }

  get trustDomain(): string {
    return this.signing.trustDomain;
  }

  /** The authority is the user's, and changes by its files. */
  get isBroughtAlong(): boolean {
    return this.#cacertsDirectory !== undefined;
  }

  /** The control plane's own certificate and the roots that its clients are verified with. */
  get credentials(): ServerTlsCredentials {
    return this.#credentials;
  }

  /** The same, for connections that the control plane makes itself. */
  get client(): MeshClient {
    const { privateKeyPem: key, certChainPem, clientRootsPem: rootsPem } = this.#credentials;
    return { privateKeyPem: key, certChainPem, rootsPem, trustDomain: this.trustDomain };
  }

  /** Called after roots, phase or the control plane's own certificate have changed. */
  follow(listener: () => void): void {
    this.#listeners.add(listener);
  }

  verifyClient(chain: readonly Uint8Array[]): ClientVerdict {
    const { roots, trustDomain } = this.signing;
    const verified = verifyPeer({ chain, roots, trustDomains: [trustDomain], peerIs: "client", nowMs: this.now() });
    if (!verified.ok) return verified;
    const { spiffeId, leaf } = verified;
    return { ok: true, identity: { ...spiffeId, serial: leaf.serial }, validUntilMs: leaf.notAfterMs };
  }

  /**
   * Begins the change to a new root, or to what the user's folder holds now. Resolves to whether anything changed.
   * @throws {RotationRefused} while a change is under way, when the folder is no good, or, unless forced, when the old
   * root would go before certificates under it have ended
   */
  async rotateRoot(times: Partial<RotationTimes> = {}, { force = false } = {}): Promise<boolean> {
    const { overlapMs = Infinity } = times;
    const { longestLifeMs } = this.signing;
    if (!force && overlapMs < longestLifeMs) {
      const [asked, needed] = [overlapMs, longestLifeMs].map((ms) => Math.ceil(ms / 1000));
      throw new RotationRefused(
        `an overlap of ${asked} s would drop the old root under certificates that live ${needed} s: ask for at least that, or force it`,
      );
    }
    if (this.signing.state.phase === "introducing") {
      throw new RotationRefused("new roots are being introduced already: wait until they sign");
    }
    const changed = await this.signing.rotateTo(await this.#nextMaterial(), times);
    if (changed) {
      this.#options.log.warning("the mesh's root changes", { phase: this.signing.state.phase });
      await this.#changed();
      this.#schedule();
    }
    return changed;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelLook();
  }

  async #nextMaterial() {
    const { trustDomain, now = Date.now } = this.#options;
    if (this.#cacertsDirectory === undefined) return createAuthority({ trustDomain, nowMs: now() });
    const loaded = await loadCacerts(this.#cacertsDirectory, now());
    if (!loaded.ok) throw new RotationRefused(problemText(loaded.problems));
    return loaded.material;
  }

  /** Does what is due: the next phase, an own certificate, a warning. */
  async #look(): Promise<void> {
    try {
      if (await this.signing.advance()) {
        this.#options.log.warning("the mesh's root changes", { phase: this.signing.state.phase });
        await this.#changed();
      } else if (this.#servingIsDue()) await this.#changed();
    } catch (error) {
      this.#options.log.error("the authority's state cannot be kept; it stays as it is", { reason: String(error) });
    }
    this.#mentionExpiry();
    this.#schedule();
  }

  /** At half of its life, and where the clock was set back: agents take no certificate of the future. */
  #servingIsDue(): boolean {
    const { renewMs, notBeforeMs } = this.#serving;
    return this.now() >= renewMs || this.now() < notBeforeMs;
  }

  #schedule(): void {
    this.#cancelLook();
    if (this.#isClosed) return;
    const dueMs = Math.min(this.signing.rotationDueMs ?? Infinity, this.#serving.renewMs) - this.now();
    // A write that failed is tried again, and not at once.
    const delayMs = Math.min(lookEveryMs, Math.max(dueMs, 100));
    this.#cancelLook = this.#options.clock.after(delayMs, () => void this.#look());
  }

  async #changed(): Promise<void> {
    const serving = await issueServing(this.signing, this.now());
    this.#credentials = serving.credentials;
    this.#serving = serving;
    for (const listener of this.#listeners) listener();
  }

  #mentionExpiry(): void {
    const expiry = this.signing.expiry();
    this.#options.metrics.setExpiry(expiry);
    const ending = expiry.filter(({ level }) => level !== "good");
    if (ending.length === 0 || this.now() < this.#warnedMs + warnEveryMs) return;
    this.#warnedMs = this.now();
    for (const { role, subject, serial, notAfterMs, level } of ending) {
      const fields = { role, subject, serial, until: new Date(notAfterMs).toISOString(), level };
      const message = this.isBroughtAlong
        ? "a certificate of the authority ends: replace the files of cacerts"
        : "a certificate of the authority ends: tulle ca rotate-root begins with a new one";
      if (level === "warning") this.#options.log.warning(message, fields);
      else this.#options.log.error(message, fields);
    }
  }
}

/** The reason stands in the message. */
export class RotationRefused extends Error {
  override readonly name = "RotationRefused";
}

export function rootFile(stateDirectory: string): string {
  return path.join(stateDirectory, "ca", "root-cert.pem");
}

interface Serving {
  readonly credentials: ServerTlsCredentials;
  readonly notBeforeMs: number;
  readonly renewMs: number;
}

async function issueServing(signing: CertificateAuthority, nowMs: number): Promise<Serving> {
  const { trustDomain } = signing;
  const key = await generateKey("P-256");
  const { certificate, chainPem } = signing.issueServing({
    key,
    hosts: controlPlaneHosts,
    identity: { trustDomain, ...controlPlaneAccount },
    ttlMs: servingTtlMs,
  });
  return {
    credentials: {
      privateKeyPem: privateKeyPem(key),
      certChainPem: chainPem,
      clientRootsPem: signing.trustBundlePem,
    },
    notBeforeMs: certificate.notBeforeMs,
    renewMs: nowMs + (certificate.notAfterMs - nowMs) / 2,
  };
}

/** Written with every change of the state; somebody may have removed it, or edited it, since. */
async function keepRootFile(file: string, pem: string): Promise<void> {
  const found = await readFile(file, "utf8").catch(() => undefined);
  if (found !== pem) await writeSecretFile(file, pem, 0o644);
}

async function ifThere(folder: string): Promise<string | undefined> {
  try {
    await access(folder);
    return folder;
  } catch {
    return undefined;
  }
}

function problemText(problems: readonly AuthorityProblem[]): string {
  return problems.map(({ message }) => message).join("; ");
}
