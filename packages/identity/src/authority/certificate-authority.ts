// The mesh's certificate authority: signs for proven identities, and says whom to trust, through changes of its own
// roots.
import type { KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { type SpiffeId, spiffeIdText } from "../spiffe-id.ts";
import { trustDomainProblem } from "../trust-domain.ts";
import type { Certificate } from "../x509/certificate.ts";
import type { SubjectAlternativeName } from "../x509/subject-alternative-names.ts";
import type { AuthorityMaterial } from "./authority-material.ts";
import { authorityText } from "./authority-text.ts";
import { type CertificateExpiry, certificateExpiry } from "./certificate-expiry.ts";
import {
  advanceRotation,
  type AuthorityState,
  beginRotation,
  rotationDueMs,
  type RotationTimes,
  trustedRoots,
} from "./root-rotation.ts";
import { type IssuedCertificate, issueLeaf, type SigningResult, signWorkload } from "./sign-workload.ts";
import { defaultWorkloadTtlMs, maxWorkloadTtlMs } from "./validity.ts";

export interface CertificateAuthorityOptions {
  readonly trustDomain: string;
  readonly state: AuthorityState;
  /** What a workload gets when it asks for no other life; 24 h unless told. */
  readonly defaultTtlMs?: number;
  /** What a workload may ask for at most; 90 days unless told. */
  readonly maxTtlMs?: number;
  readonly now?: () => number;
  /**
   * Keeps a new state; the authority acts on it only when that has succeeded, so that no root is used and then
   * forgotten. Resolves to another state where somebody else has kept one since: the change is made anew, to that one.
   */
  readonly save?: (state: AuthorityState) => Promise<AuthorityState | undefined>;
  /** The newest that is kept; undefined where nothing is. */
  readonly read?: () => Promise<AuthorityState | undefined>;
}

export interface ServingCertificateRequest {
  readonly key: KeyObject;
  /** DNS names and IP addresses, at least one name. */
  readonly hosts: readonly [string, ...string[]];
  readonly identity?: SpiffeId;
  readonly ttlMs?: number;
}

export class CertificateAuthority {
  readonly trustDomain: string;
  readonly defaultTtlMs: number;
  readonly maxTtlMs: number;
  readonly #now: () => number;
  readonly #save: (state: AuthorityState) => Promise<AuthorityState | undefined>;
  readonly #read: () => Promise<AuthorityState | undefined>;
  #state: AuthorityState;
  #longestLifeMs: number;
  /** Ends with the last change of state that was asked for: they happen one after the other. */
  #changes: Promise<void> = Promise.resolve();

  constructor(options: CertificateAuthorityOptions) {
    const problem = trustDomainProblem(options.trustDomain);
    if (problem !== undefined) throw new TypeError(problem);
    this.trustDomain = options.trustDomain;
    this.maxTtlMs = options.maxTtlMs ?? maxWorkloadTtlMs;
    this.defaultTtlMs = Math.min(options.defaultTtlMs ?? defaultWorkloadTtlMs, this.maxTtlMs);
    this.#longestLifeMs = this.defaultTtlMs;
    this.#now = options.now ?? Date.now;
    this.#save = options.save ?? (async () => undefined);
    this.#read = options.read ?? (async () => this.#state);
    this.#state = options.state;
  }

  get state(): AuthorityState {
    return this.#state;
  }

  /** Signs a workload's request for the identity that the caller has proved; without a life, for the default one. */
  signWorkload(request: {
    readonly csrPem: string;
    readonly identity: SpiffeId;
    readonly ttlMs?: number;
  }): SigningResult {
    const ttlMs = request.ttlMs ?? this.defaultTtlMs;
    const result = signWorkload(this.#state.signing, this, { ...request, ttlMs }, this.#now());
    if (result.ok) this.#longestLifeMs = Math.max(this.#longestLifeMs, Math.min(ttlMs, this.maxTtlMs));
    return result;
  }

  /**
   * Of a workload's certificates: of those signed since the start, and of those that asked for no life of their own
   * before.
   */
  get longestLifeMs(): number {
    return this.#longestLifeMs;
  }

  /**
   * For servers of the mesh's own: the control plane's xDS port, a gateway's `localhost`. The caller decides about the
   * names.
   */
  issueServing(request: ServingCertificateRequest): IssuedCertificate {
    const hosts = request.hosts.map((host): SubjectAlternativeName => ({
      type: isIP(host) === 0 ? "dns" : "ip",
      value: host,
    }));
    const uris: SubjectAlternativeName[] =
      request.identity === undefined ? [] : [{ type: "uri", value: spiffeIdText(request.identity) }];
    return issueLeaf(this.#state.signing, {
      publicKey: request.key,
      names: [...uris, ...hosts],
      commonName: request.hosts[0],
      nowMs: this.#now(),
      ttlMs: Math.min(request.ttlMs ?? this.defaultTtlMs, this.maxTtlMs),
    });
  }

  /** What peers are to trust now, in the order of `trustedRoots`. */
  get roots(): readonly Certificate[] {
    return trustedRoots(this.#state);
  }

  get trustBundlePem(): string {
    return this.roots.map((root) => root.pem).join("");
  }

  /** Begins the change to another authority; `advance` ends its phases. Resolves to whether anything changed. */
  rotateTo(next: AuthorityMaterial, times: Partial<RotationTimes> = {}): Promise<boolean> {
    // Whoever holds a valid certificate has renewed it within the default life, and has got the new roots with it.
    const { introduceMs = this.defaultTtlMs, overlapMs = this.maxTtlMs } = times;
    return this.#change((state) => beginRotation(state, next, { introduceMs, overlapMs }, this.#now()));
  }

  /**
   * To be called at `rotationDueMs`, and at start. Resolves to whether a phase has ended: then workloads get new
   * secrets.
   */
  advance(): Promise<boolean> {
    return this.#change((state) => advanceRotation(state, this.#now()));
  }

  get rotationDueMs(): number | undefined {
    return rotationDueMs(this.#state);
  }

  /** Of all certificates that the mesh depends on: the signing chain and the trusted roots. */
  expiry(): readonly CertificateExpiry[] {
    const nowMs = this.#now();
    return [
      ...this.#state.signing.chain.map((one) => certificateExpiry("intermediate", one, nowMs)),
      ...this.roots.map((one) => certificateExpiry("root", one, nowMs)),
    ];
  }

  /**
   * Takes over what another control plane has kept; keeps ours where nothing is kept any more. Resolves to whether
   * anything is different now.
   */
  async adopt(): Promise<boolean> {
    return this.#inTurn(async () => {
      const kept = (await this.#read()) ?? (await this.#save(this.#state));
      return kept !== undefined && this.#become(kept);
    });
  }

  async #change(step: (state: AuthorityState) => AuthorityState): Promise<boolean> {
    return this.#inTurn(async () => {
      let isChanged = false;
      for (;;) {
        const next = step(this.#state);
        if (next === this.#state) return isChanged;
        const other = await this.#save(next);
        if (other === undefined) {
          this.#state = next;
          return true;
        }
        if (this.#become(other)) isChanged = true;
      }
    });
  }

  #become(state: AuthorityState): boolean {
    if (authorityText(state) === authorityText(this.#state)) return false;
    this.#state = state;
    return true;
  }

  async #inTurn(work: () => Promise<boolean>): Promise<boolean> {
    const earlier = this.#changes;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#changes = promise;
    await earlier;
    try {
      return await work();
    } finally {
      // A failed write is its caller's to hear of; the next change begins from the state that was kept.
      resolve();
    }
  }
}
