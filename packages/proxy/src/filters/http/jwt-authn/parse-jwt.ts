// A compact JWS whose payload is a set of claims (RFC 7515, RFC 7519), taken apart and checked for its form; whether
// its signature holds is asked elsewhere.
import { type SignatureAlgorithm, isSignatureAlgorithm } from "./signature-algorithm.ts";
import type { JwtFailure } from "./jwt-failure.ts";

export interface Jwt {
  readonly header: Readonly<Record<string, unknown>>;
  readonly algorithm: SignatureAlgorithm;
  /** Empty when the header has none. */
  readonly keyId: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** The payload as it stands in the token. */
  readonly payloadBase64Url: string;
  /** Empty when the token has none. */
  readonly issuer: string;
  readonly subject: string;
  readonly audiences: readonly string[];
  /** Seconds since 1970; 0 = not limited. */
  readonly notBeforeSeconds: number;
  readonly expiresSeconds: number;
  /** What the signature is of. */
  readonly signedText: string;
  readonly signature: Buffer;
}

const base64Url = /^[A-Za-z0-9_-]+$/;
const utf8 = new TextDecoder("utf-8", { fatal: true });
/** The first that an unsigned 64-bit integer cannot hold. */
const twoTo64 = 2 ** 64;

export function parseJwt(token: string): Jwt | JwtFailure {
  const [encodedHeader, encodedPayload, encodedSignature, ...more] = token.split(".");
  if (!encodedHeader || !encodedPayload || !encodedSignature || more.length > 0) return "badFormat";
  const headerBytes = decodeBase64Url(encodedHeader);
  if (headerBytes === undefined) return "headerBadBase64";
  const header = parseObject(headerBytes);
  if (header === undefined) return "headerBadJson";
  const algorithm = own(header, "alg");
  if (typeof algorithm !== "string") return "headerBadAlg";
  if (!isSignatureAlgorithm(algorithm)) return "headerUnknownAlg";
  // RFC 7515 §4.1.11: who does not know an extension that is critical must refuse; none is known here.
  if (own(header, "crit") !== undefined) return "verificationFails";
  const keyId = optionalText(header, "kid");
  if (keyId === undefined) return "headerBadKid";

  const payloadBytes = decodeBase64Url(encodedPayload);
  if (payloadBytes === undefined) return "payloadBadBase64";
  const payload = parseObject(payloadBytes);
  if (payload === undefined) return "payloadBadJson";
  const claims = readClaims(payload);
  if (typeof claims === "string") return claims;
  const signature = decodeBase64Url(encodedSignature);
  if (signature === undefined) return "signatureBadBase64";
  return {
    header,
    algorithm,
    keyId,
    payload,
    payloadBase64Url: encodedPayload,
    ...claims,
    signedText: `${encodedHeader}.${encodedPayload}`,
    signature,
  };
}

type Claims = Pick<Jwt, "issuer" | "subject" | "audiences" | "notBeforeSeconds" | "expiresSeconds">;

/** The registered claims; one that is there and of another type spoils the token. */
function readClaims(payload: Readonly<Record<string, unknown>>): Claims | JwtFailure {
  const issuer = optionalText(payload, "iss");
  if (issuer === undefined) return "issNotString";
  const subject = optionalText(payload, "sub");
  if (subject === undefined) return "subNotString";
  const issuedAt = optionalSeconds(payload, "iat", "iatNotInteger", "iatOutOfRange");
  if (typeof issuedAt === "string") return issuedAt;
  const notBeforeSeconds = optionalSeconds(payload, "nbf", "nbfNotInteger", "nbfOutOfRange");
  if (typeof notBeforeSeconds === "string") return notBeforeSeconds;
  const expiresSeconds = optionalSeconds(payload, "exp", "expNotInteger", "expOutOfRange");
  if (typeof expiresSeconds === "string") return expiresSeconds;
  if (optionalText(payload, "jti") === undefined) return "jtiNotString";
  const audience = own(payload, "aud");
  const audiences = typeof audience === "string" ? [audience] : (audience ?? []);
  if (!Array.isArray(audiences) || !audiences.every((one) => typeof one === "string") || audience === null) {
    return "audNotString";
  }
  return { issuer, subject, audiences, notBeforeSeconds, expiresSeconds };
}

/** Without padding, as RFC 7515 §2 has it; undefined when it is none. */
function decodeBase64Url(text: string): Buffer | undefined {
  if (text.length % 4 === 1 || !base64Url.test(text)) return undefined;
  return Buffer.from(text, "base64url");
}

function parseObject(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}

function own(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Empty when it is absent; undefined when it is no text. */
function optionalText(object: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = own(object, name);
  if (value === undefined) return "";
  return typeof value === "string" ? value : undefined;
}

function optionalSeconds(
  payload: Readonly<Record<string, unknown>>,
  name: string,
  notInteger: JwtFailure,
  outOfRange: JwtFailure,
): number | JwtFailure {
  const value = own(payload, name);
  if (value === undefined) return 0;
  if (typeof value !== "number") return notInteger;
  if (value < 0 || value >= twoTo64) return outOfRange;
  return Math.trunc(value);
}
