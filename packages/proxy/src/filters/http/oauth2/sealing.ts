// What a browser keeps for the filter is sealed: encrypted and authenticated under a key of the cookie secret, and
// bound to the cookie's name and the site, so that one cookie cannot stand for another. Envoy encrypts with AES-CBC and
// authenticates apart.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";

const ivBytes = 12;
const tagBytes = 16;

export class CookieSealer {
  readonly secret: Buffer;
  readonly #key: Buffer;

  constructor(secret: Buffer) {
    this.secret = secret;
    this.#key = Buffer.from(hkdfSync("sha256", secret, "", "oauth2 cookie sealing", 32));
  }

  /** `use` says which cookie of which site it is. */
  seal(text: string, use: string): string {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv("aes-256-gcm", this.#key, iv).setAAD(Buffer.from(use));
    const sealed = Buffer.concat([iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return sealed.toString("base64url");
  }

  /** Undefined when it was not sealed here for this use. */
  open(sealed: string, use: string): string | undefined {
    const bytes = Buffer.from(sealed, "base64url");
    if (bytes.length < ivBytes + tagBytes) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", this.#key, bytes.subarray(0, ivBytes), {
      authTagLength: tagBytes,
    });
    decipher.setAAD(Buffer.from(use)).setAuthTag(bytes.subarray(-tagBytes));
    try {
      return decipher.update(bytes.subarray(ivBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8");
    } catch {
      return undefined;
    }
  }

  mac(text: string): string {
    return createHmac("sha256", this.secret).update(text).digest("base64");
  }
}

/** In constant time for texts of one length. */
export function textsAreEqual(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

/** RFC 7636 §4.1: 32 octets of randomness. */
export function newCodeVerifier(): string {
  return randomBytes(32).toString("base64url");
}

/** RFC 7636 §4.2, S256. */
export function codeChallenge(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

export function newFlowId(): string {
  return randomBytes(16).toString("hex");
}

/** Signed double submit: the same text goes into the cookie and into `state`. */
export function csrfTokenOf(flowId: string, sealer: CookieSealer): string {
  return `${flowId}.${sealer.mac(flowId)}`;
}

export function isCsrfToken(token: string, sealer: CookieSealer): boolean {
  const dot = token.indexOf(".");
  return dot > 0 && textsAreEqual(sealer.mac(token.slice(0, dot)), token.slice(dot + 1));
}

/**
 * OpenID Connect Core §15.5.2: a nonce that needs no place of its own, being made from what the browser keeps anyway.
 */
export function nonceOf(csrfToken: string, sealer: CookieSealer): string {
  return Buffer.from(sealer.mac(`nonce\n${csrfToken}`), "base64").toString("base64url");
}
