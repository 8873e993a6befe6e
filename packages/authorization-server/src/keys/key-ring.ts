// The signing keys in memory: which one signs, which ones verify, and the key set that is published. Reads the store
// again at an interval, so that several processes and the command line agree within it.
import { createPrivateKey, createPublicKey } from "node:crypto";
import { digest } from "../crypto/secrets.ts";
import { unseal } from "../crypto/sealing.ts";
import type { Database } from "../store/database.ts";
import type { JwtClaims, JwtType, SigningAlgorithm, SigningKey, VerifiedJwt } from "./jwt.ts";
import { signJwt, verifyJwt } from "./jwt.ts";
import type { KeyPolicy, StoredKey } from "./key-store.ts";
import { advanceKeys, generateSigningKey, keysAreSettled, listKeys, sealingContext } from "./key-store.ts";

const maxVerified = 5000;

export class KeyRing {
  readonly #database: Database;
  readonly #policy: KeyPolicy;
  readonly #encryptionKey: Buffer;
  #keys: ReadonlyMap<string, SigningKey> = new Map();
  #active: SigningKey | undefined;
  #jwks = '{"keys":[]}';
  /** Claims of tokens whose signature was verified, by the token's digest, the oldest first. */
  readonly #verified = new Map<string, VerifiedJwt>();

  constructor(database: Database, policy: KeyPolicy, encryptionKey: Buffer) {
    this.#database = database;
    this.#policy = policy;
    this.#encryptionKey = encryptionKey;
  }

  /** Makes, promotes and removes keys where the policy says so, then reads what there is. */
  async refresh(options: { readonly force: boolean } = { force: false }): Promise<void> {
    const settled = await this.#database.read(async (reader) =>
      keysAreSettled(await listKeys(reader), this.#policy, reader.nowMs),
    );
    if (!settled || options.force) {
      const spare = (): ReturnType<typeof generateSigningKey> =>
        generateSigningKey(this.#policy.algorithm, this.#encryptionKey);
      const spares = [await spare(), await spare()] as const;
      await this.#database.transaction((transaction) =>
        advanceKeys(transaction, this.#policy, { spares, force: options.force }),
      );
    }
    this.#load(await this.#database.read((reader) => listKeys(reader)));
  }

  #load(stored: readonly StoredKey[]): void {
    // What a removed key has signed is no longer ours.
    if (stored.length < this.#keys.size) this.#verified.clear();
    const keys = new Map<string, SigningKey>();
    for (const key of stored) keys.set(key.id, this.#keys.get(key.id) ?? this.#open(key));
    this.#keys = keys;
    const active = stored.find((key) => key.activatedAtMs !== undefined && key.retiredAtMs === undefined);
    this.#active = active === undefined ? undefined : keys.get(active.id);
    this.#jwks = JSON.stringify({ keys: stored.map((key) => JSON.parse(key.publicJwk) as unknown) });
  }

  #open(key: StoredKey): SigningKey {
    const pem = unseal(this.#encryptionKey, key.privateSealed, sealingContext(key.id));
    if (pem === undefined) {
      throw new Error(
        `signing key ${key.id} cannot be opened: the key encryption key is not the one it was sealed with`,
      );
    }
    const publicKey = createPublicKey({ key: JSON.parse(key.publicJwk) as never, format: "jwk" });
    return { id: key.id, algorithm: key.algorithm, privateKey: createPrivateKey(pem), publicKey };
  }

  get ready(): boolean {
    return this.#active !== undefined;
  }

  /** The algorithms that published keys sign with, for the metadata. */
  get algorithms(): readonly SigningAlgorithm[] {
    return [...new Set([...this.#keys.values()].map((key) => key.algorithm))];
  }

  /** The published key set (RFC 7517 §5), as JSON text. */
  get jwks(): string {
    return this.#jwks;
  }

  sign(type: JwtType, claims: JwtClaims): string {
    if (this.#active === undefined) throw new Error("the key ring was not read yet");
    return signJwt(this.#active, type, claims);
  }

  /**
   * A signature costs 65 µs to verify and never changes its answer while its key is published, so the answers are kept;
   * expiry and revocation are the caller's to check each time.
   */
  verify(token: string): VerifiedJwt | undefined {
    const tokenDigest = digest(token);
    const known = this.#verified.get(tokenDigest);
    if (known !== undefined) return known;
    const verified = verifyJwt(token, (id) => this.#keys.get(id));
    if (verified === undefined) return undefined;
    this.#verified.set(tokenDigest, verified);
    if (this.#verified.size > maxVerified) this.#verified.delete(this.#verified.keys().next().value!);
    return verified;
  }
}
