// The keys in memory: which one signs for each algorithm, which ones are published, and which ones are still known for
// hints. Reads the store again at an interval, so that several processes and the command line agree within it.
import { createPrivateKey, createPublicKey } from "node:crypto";
import { digest } from "../crypto/secrets.ts";
import { unseal } from "../crypto/sealing.ts";
import type { Database } from "../store/database.ts";
import type { JwtClaims, JwtType, SigningAlgorithm, SigningKey, VerificationKey, VerifiedJwt } from "./jwt.ts";
import { signingAlgorithms, signJwt, verifyJwt } from "./jwt.ts";
import type { MakeKeyPair, StoredKey } from "./key-store.ts";
import { keyState, listKeys, makeKeyPair, sealingContext } from "./key-store.ts";
import type { KeyPolicy } from "./succession.ts";
import { advanceKeys, stepsDue } from "./succession.ts";

const maxVerified = 5000;

export interface KeyRingOptions {
  readonly policy: KeyPolicy;
  readonly encryptionKey: Buffer;
  /** For tests, which would spend most of their time on RSA keys. */
  readonly makeKeyPair?: MakeKeyPair | undefined;
}

export class KeyRing {
  readonly #database: Database;
  readonly #options: KeyRingOptions;
  readonly #opened = new Map<string, SigningKey>();
  #active: ReadonlyMap<SigningAlgorithm, SigningKey> = new Map();
  #published: ReadonlyMap<string, VerificationKey> = new Map();
  #forHints: ReadonlyMap<string, VerificationKey> = new Map();
  #jwks = '{"keys":[]}';
  /** Claims of tokens whose signature was verified, by the token's digest, the oldest first. */
  readonly #verified = new Map<string, VerifiedJwt>();

  constructor(database: Database, options: KeyRingOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** Makes, promotes and removes keys where the policy says so, then reads what there is. */
  async refresh(): Promise<void> {
    const { policy, encryptionKey } = this.#options;
    const making = { encryptionKey, makeKeyPair: this.#options.makeKeyPair ?? makeKeyPair };
    await advanceKeys(this.#database, (keys, nowMs) => stepsDue(keys, policy, nowMs), making);
    await this.load();
  }

  /** Reads what there is. Throws where the key encryption key is not the one that the keys were sealed with. */
  async load(): Promise<void> {
    const { keys, nowMs } = await this.#database.read(async (reader) => ({
      keys: await listKeys(reader),
      nowMs: reader.nowMs,
    }));
    const active = new Map<SigningAlgorithm, SigningKey>();
    const published = new Map<string, VerificationKey>();
    const forHints = new Map<string, VerificationKey>();
    const jwks: StoredKey[] = [];
    for (const key of keys) {
      const state = keyState(key, nowMs);
      if (state === "over") continue;
      const known = state === "next" || state === "active" ? this.#open(key) : publicHalf(key);
      if (state === "active") active.set(key.algorithm, known as SigningKey);
      (state === "hints" ? forHints : published).set(key.id, known);
      // What signs comes first, for readers that try the first key of an algorithm.
      if (state === "active") jwks.unshift(key);
      else if (state !== "hints") jwks.push(key);
    }
    for (const id of this.#opened.keys()) if (!published.has(id)) this.#opened.delete(id);
    this.#active = active;
    this.#published = published;
    this.#forHints = forHints;
    this.#jwks = JSON.stringify({ keys: jwks.map((key) => JSON.parse(key.publicJwk) as unknown) });
  }

  #open(key: StoredKey): SigningKey {
    const known = this.#opened.get(key.id);
    if (known !== undefined) return known;
    const pem = unseal(this.#options.encryptionKey, key.privateSealed, sealingContext(key.id));
    if (pem === undefined) {
      throw new Error(
        `signing key ${key.id} cannot be opened: the key encryption key is not the one it was sealed with`,
      );
    }
    const opened = { ...publicHalf(key), privateKey: createPrivateKey(pem) };
    this.#opened.set(key.id, opened);
    return opened;
  }

  get ready(): boolean {
    return this.#active.size > 0;
  }

  /** The algorithms that tokens are signed with, for the metadata. */
  get algorithms(): readonly SigningAlgorithm[] {
    return signingAlgorithms.filter((algorithm) => this.#active.has(algorithm));
  }

  /** The published key set (RFC 7517 §5), as JSON text. */
  get jwks(): string {
    return this.#jwks;
  }

  /**
   * In a store that has just learned an algorithm, the first key of it is published before it signs; until then the
   * other algorithm goes on.
   */
  sign(algorithm: SigningAlgorithm, type: JwtType, claims: JwtClaims): string {
    const key = this.#active.get(algorithm) ?? this.#active.values().next().value;
    if (key === undefined) throw new Error("the key ring was not read yet");
    return signJwt(key, type, claims);
  }

  /**
   * A signature costs 65 µs to verify and never changes its answer while its key is published, so the answers are kept;
   * expiry and revocation are the caller's to check each time.
   */
  verify(token: string): VerifiedJwt | undefined {
    const tokenDigest = digest(token);
    const known = this.#verified.get(tokenDigest);
    if (known !== undefined) return this.#published.has(known.keyId) ? known : undefined;
    const verified = verifyJwt(token, (id) => this.#published.get(id));
    if (verified === undefined) return undefined;
    this.#verified.set(tokenDigest, verified);
    if (this.#verified.size > maxVerified) this.#verified.delete(this.#verified.keys().next().value!);
    return verified;
  }

  /** A token that only has to name somebody (id_token_hint): also by keys that are no longer published. */
  verifyHint(token: string): VerifiedJwt | undefined {
    return verifyJwt(token, (id) => this.#published.get(id) ?? this.#forHints.get(id));
  }
}

function publicHalf(key: StoredKey): VerificationKey {
  const publicKey = createPublicKey({ key: JSON.parse(key.publicJwk) as never, format: "jwk" });
  return { id: key.id, algorithm: key.algorithm, publicKey };
}
