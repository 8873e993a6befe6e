// Tokens whose signature has been found good, so that a client's next requests cost a digest and not a signature. What
// depends on time or on the audience is asked again each time.
import { hash } from "node:crypto";
import type { Jwt } from "./parse-jwt.ts";

/** Tokens kept; the one that was used longest ago leaves first. */
const defaultMaxTokens = 4096;
/** Longer tokens are verified each time (Envoy: jwt_max_token_size). */
const maxTokenLength = 4096;
/** Key sets remembered for a token; a token outlives few changes of its issuer's keys. */
const maxKeySets = 8;

export interface VerifiedToken {
  readonly jwt: Jwt;
  /** Versions of the key sets, a provider's each, that the signature was checked against. */
  readonly keySetVersions: Set<string>;
  /** Seconds since 1970 after which nobody will accept it. */
  readonly endsSeconds: number;
}

export class TokenCache {
  readonly #maxTokens: number;
  readonly #tokens = new Map<string, VerifiedToken>();

  constructor(maxTokens = defaultMaxTokens) {
    this.#maxTokens = maxTokens;
  }

  get size(): number {
    return this.#tokens.size;
  }

  /** Under which a token is kept; undefined = it is not. */
  digest(token: string): string | undefined {
    return token.length > maxTokenLength ? undefined : hash("sha256", token, "base64url");
  }

  find(digest: string, nowSeconds: number): VerifiedToken | undefined {
    const token = this.#tokens.get(digest);
    if (token === undefined) return undefined;
    this.#tokens.delete(digest);
    if (token.endsSeconds < nowSeconds) return undefined;
    this.#tokens.set(digest, token);
    return token;
  }

  /** `clockSkewSeconds`: for how long the token is accepted after its end. */
  keep(digest: string, jwt: Jwt, keySetVersion: string, clockSkewSeconds: number): void {
    const known = this.#tokens.get(digest);
    if (known !== undefined) {
      if (known.keySetVersions.size >= maxKeySets) known.keySetVersions.clear();
      known.keySetVersions.add(keySetVersion);
      return;
    }
    const endsSeconds = jwt.expiresSeconds === 0 ? Infinity : jwt.expiresSeconds + clockSkewSeconds;
    this.#tokens.set(digest, { jwt, keySetVersions: new Set([keySetVersion]), endsSeconds });
    if (this.#tokens.size <= this.#maxTokens) return;
    for (const oldest of this.#tokens.keys()) {
      this.#tokens.delete(oldest);
      return;
    }
  }
}
