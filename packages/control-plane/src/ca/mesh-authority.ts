// The mesh's authority as the control plane keeps it: opened from where its state lies, moved from phase to phase,
// watched for its expiry, and the source of the control plane's own certificate.
import type { Clock } from "@tulle/timing";
import {
  type AuthorityProblem,
  type AuthorityStorage,
  type CertificateAuthority,
  createAuthority,
  generateKey,
  openAuthority,
  privateKeyPem,
  type RotationTimes,
  verifyPeer,
} from "@tulle/identity";
import type { Logger } from "@tulle/telemetry";
import type { ClientVerdict, ServerTlsCredentials } from "@tulle/xds";
import type { MeshClient } from "../jwks/mesh-connection.ts";
import type { Leadership } from "../state/leadership.ts";
import type { CaMetrics } from "./ca-metrics.ts";

/** What the control plane proves to be, to proxies and, when it asks them for something, to workloads. */
export interface ControlPlaneIdentity {
  readonly hosts: readonly [string, ...string[]];
  readonly serviceAccount: string;
}

export const defaultIdentity: ControlPlaneIdentity = {
  hosts: ["tulled.tulle-system.svc", "istiod.istio-system.svc"],
  serviceAccount: "tulled",
};
const controlPlaneNamespace = "tulle-system";

export interface MeshAuthorityOptions {
  readonly storage: AuthorityStorage;
  readonly trustDomain: string;
  readonly identity?: ControlPlaneIdentity;
  /** What a workload's certificate lives unless it asks for another life. */
  readonly workloadTtlMs?: number;
  readonly maxWorkloadTtlMs?: number;
  /** Who of several that share the storage moves it from phase to phase; whoever opens it when missing. */
  readonly leadership?: Leadership;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: CaMetrics;
  /** The time of day: certificates are of the world outside, which also passes while a laptop sleeps. */
  readonly now?: () => number;
}

/** Phases are minutes to months long, and a sleeping machine's timers come late. */
const lookEveryMs = 60_000;
/** After a change that could not be read. */
const rereadMs = 5_000;
const servingTtlMs = 24 * 3_600_000;
/** An authority that is about to expire is mentioned this often. */
const warnEveryMs = 24 * 3_600_000;

export class MeshAuthority {
  readonly signing: CertificateAuthority;
  readonly now: () => number;
  readonly #options: MeshAuthorityOptions;
  readonly #unfollow: (() => void)[] = [];
  readonly #listeners = new Set<() => void>();
  #credentials: ServerTlsCredentials;
  #serving: Omit<Serving, "credentials">;
  #isBroughtAlong: boolean;
  #warnedMs = -Infinity;
  #cancelLook: () => void = () => undefined;
  #isClosed = false;
  /** How often it was told that something may have changed, and up to which of them it has looked. */
  #heard = 0;
  #taken = 0;

  private constructor(
    options: MeshAuthorityOptions,
    signing: CertificateAuthority,
    isBroughtAlong: boolean,
    serving: Serving,
  ) {
    this.#options = options;
    this.signing = signing;
    this.now = options.now ?? Date.now;
    this.#isBroughtAlong = isBroughtAlong;
    this.#credentials = serving.credentials;
    this.#serving = serving;
  }

  /** @throws with all that is wrong, when what is kept or brought along cannot be used */
  static async open(options: MeshAuthorityOptions): Promise<MeshAuthority> {
    const { storage, trustDomain, workloadTtlMs, maxWorkloadTtlMs, now = Date.now, log, leadership } = options;
    const opened = await openAuthority({
      storage,
      trustDomain,
      now,
      ...(workloadTtlMs === undefined ? {} : { defaultTtlMs: workloadTtlMs }),
      ...(maxWorkloadTtlMs === undefined ? {} : { maxTtlMs: maxWorkloadTtlMs }),
    });
    if (!opened.ok) throw new Error(`the certificate authority cannot be used: ${problemText(opened.problems)}`);
    const { authority: signing, created, isBroughtAlong } = opened;
    const serving = await issueServing(signing, options.identity ?? defaultIdentity, now());
    const mesh = new MeshAuthority(options, signing, isBroughtAlong, serving);
    log.info(created ? "a certificate authority was made" : "the certificate authority was opened", {
      trustDomain,
      roots: signing.roots.length,
      phase: signing.state.phase,
      cacerts: isBroughtAlong ? storage.givenPlace : undefined,
    });
    await mesh.#look();
    const adopt = (): void => void mesh.#adopt();
    mesh.#unfollow.push(storage.follow?.(adopt) ?? (() => undefined));
    // What was given while nobody led waits for whoever does.
    mesh.#unfollow.push(leadership?.follow(adopt) ?? (() => undefined));
    return mesh;
  }

  get trustDomain(): string {
    return this.signing.trustDomain;
  }

  /** The authority is the user's, and changes as they change it. */
  get isBroughtAlong(): boolean {
    return this.#isBroughtAlong;
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
    for (const unfollow of this.#unfollow) unfollow();
  }

  async #nextMaterial() {
    const { storage, trustDomain } = this.#options;
    const given = await storage.readGiven(this.now());
    this.#isBroughtAlong = given !== undefined;
    if (given === undefined) return createAuthority({ trustDomain, nowMs: this.now() });
    if (!given.ok) throw new RotationRefused(problemText(given.problems));
    return given.material;
  }

  /** Another control plane has changed the state, or the operator what is given: which of them is not said. */
  async #adopt(): Promise<void> {
    if (this.#isClosed) return;
    const { storage, log, leadership } = this.#options;
    const heard = (this.#heard += 1);
    try {
      if (await this.signing.adopt()) {
        log.warning("the mesh's root changes", { phase: this.signing.state.phase });
        await this.#changed();
      }
      const given = await storage.readGiven(this.now());
      this.#isBroughtAlong = given !== undefined;
      if (given?.ok === false) {
        log.error("what was given as authority cannot be used; the one before stays", {
          place: storage.givenPlace,
          reason: problemText(given.problems),
        });
      } else if (
        given !== undefined &&
        leadership?.isLeader !== false &&
        (await this.signing.rotateTo(given.material))
      ) {
        log.warning("the mesh's root changes", { phase: this.signing.state.phase, to: storage.givenPlace });
        await this.#changed();
      }
      this.#taken = Math.max(this.#taken, heard);
    } catch (error) {
      log.error("the authority's state cannot be read; it stays as it is, and is tried again", {
        reason: String(error),
      });
    }
    await this.#look();
  }

  /** Does what is due: the next phase, an own certificate, a warning. */
  async #look(): Promise<void> {
    const { leadership, log } = this.#options;
    try {
      if (leadership?.isLeader !== false && (await this.signing.advance())) {
        log.warning("the mesh's root changes", { phase: this.signing.state.phase });
        await this.#changed();
      } else if (this.#servingIsDue()) await this.#changed();
    } catch (error) {
      log.error("the authority's state cannot be kept; it stays as it is", { reason: String(error) });
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
    const { clock, leadership } = this.#options;
    const isUnread = this.#taken < this.#heard;
    // Who does not lead hears of the next phase.
    const rotationMs = leadership?.isLeader === false ? Infinity : (this.signing.rotationDueMs ?? Infinity);
    const dueMs = Math.min(rotationMs, this.#serving.renewMs) - this.now();
    // A write that failed is tried again, and not at once.
    const delayMs = isUnread ? rereadMs : Math.min(lookEveryMs, Math.max(dueMs, 100));
    this.#cancelLook = clock.after(delayMs, () => void (isUnread ? this.#adopt() : this.#look()));
  }

  async #changed(): Promise<void> {
    const serving = await issueServing(this.signing, this.#options.identity ?? defaultIdentity, this.now());
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

interface Serving {
  readonly credentials: ServerTlsCredentials;
  readonly notBeforeMs: number;
  readonly renewMs: number;
}

async function issueServing(
  signing: CertificateAuthority,
  { hosts, serviceAccount }: ControlPlaneIdentity,
  nowMs: number,
): Promise<Serving> {
  const { trustDomain } = signing;
  const key = await generateKey("P-256");
  const { certificate, chainPem } = signing.issueServing({
    key,
    hosts,
    identity: { trustDomain, namespace: controlPlaneNamespace, serviceAccount },
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

function problemText(problems: readonly AuthorityProblem[]): string {
  return problems.map(({ message }) => message).join("; ");
}
