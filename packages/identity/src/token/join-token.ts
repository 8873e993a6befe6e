// What a machine is given to join a mesh, once: where its control plane is, by which root to know it, and a secret. One
// line of text, so that it can be pasted.
import { createHash } from "node:crypto";
import type { Certificate } from "../x509/certificate.ts";

export interface JoinToken {
  /** `host:port`, in the order in which they are tried. */
  readonly controlPlanes: readonly string[];
  /** SHA-256 of each root's DER, in base64url: joining trusts nothing else. */
  readonly rootPins: readonly string[];
  /** By which the control plane finds what it keeps of the token; no secret. */
  readonly id: string;
  readonly secret: string;
}

const prefix = "tulle-join-1.";
/** Of the rest, so that a token which was cut or mistyped is known before anybody is asked. */
const checkLength = 6;

export function joinTokenText(token: JoinToken): string {
  const { controlPlanes, rootPins, id, secret } = token;
  const text = Buffer.from(JSON.stringify([controlPlanes, rootPins, id, secret])).toString("base64url");
  return `${prefix}${text}.${check(text)}`;
}

/** Undefined for what is no whole token. */
export function parseJoinToken(text: string): JoinToken | undefined {
  const [body = "", sum, ...rest] = text.startsWith(prefix) ? text.slice(prefix.length).split(".") : [];
  if (rest.length > 0 || sum !== check(body)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
  if (!Array.isArray(value)) return undefined;
  const [controlPlanes, rootPins, id, secret] = value as readonly unknown[];
  if (!isTexts(controlPlanes) || !isTexts(rootPins) || typeof id !== "string" || typeof secret !== "string") {
    return undefined;
  }
  return { controlPlanes, rootPins, id, secret };
}

/** What a control plane keeps in the place of the secret, which has 256 random bits: no salt is needed. */
export function secretHash(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url");
}

export function rootPin({ der }: Pick<Certificate, "der">): string {
  return createHash("sha256").update(der).digest("base64url");
}

function check(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, checkLength);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string" && each !== "");
}
