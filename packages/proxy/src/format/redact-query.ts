// Which parameters of queries stand in logs: codes, tokens and hints of sign-ins are as good as passwords to who reads
// them there.
import { credentialHeaders } from "@tulle/telemetry";
import { withoutControlCharacters } from "../http/header-value.ts";

export const redactedValue = "redacted";

/** How often a value is decoded to look for such a parameter in it; what is escaped still is left out. */
const maxNesting = 3;
const withinParameter = /[;?#]/g;
/** A question mark, a number sign or a semicolon, escaped once or more. */
const escapedQuery = /%(?:25)*(?:3f|23|3b)/i;
/** A parameter of a segment of a path (`/cb;code=…/next`, RFC 3986 §3.3), up to what ends it. */
const segmentParameter = /;([^=;/]*)=[^;/]*/g;

/** The path with the values of `names` (in lower case) left out, of its query and of its fragment. */
export function redactQuery(path: string, names: ReadonlySet<string>): string {
  const at = path.search(/[?#]/);
  if (at < 0) return withoutSecretSegments(path, names);
  return withoutSecretSegments(path.slice(0, at), names) + path[at]! + redactText(path.slice(at + 1), names);
}

/**
 * Parameters of segments are left out like those of queries. A path in which an address or such a parameter is escaped,
 * as of who leads on to it, ends before that where it has a secret.
 */
function withoutSecretSegments(path: string, names: ReadonlySet<string>): string {
  const shown = path.includes(";")
    ? path.replace(segmentParameter, (whole, name: string) =>
        isAmong(names, name) ? `;${name}=${redactedValue}` : whole,
      )
    : path;
  const at = shown.search(escapedQuery);
  if (at < 0) return shown;
  const address = shown.slice(at);
  return withoutSecret(address, names, 0) === address ? shown : shown.slice(0, at) + redactedValue;
}

/** A text that may hold a query, or be one. */
export function redactText(text: string, names: ReadonlySet<string>, nesting = 0): string {
  if (!text.includes("=") && !text.includes("%")) return text;
  return text
    .split("&")
    .map((parameter) => withoutSecret(parameter, names, nesting))
    .join("&");
}

/**
 * What stands between two `&`. Some servers part parameters by `;` as well, and an address that is a value has a query
 * or a fragment of its own; others take all up to the `&` for the value, so that nothing of it is left. Each character
 * is looked at a bounded number of times: strangers write queries.
 */
function withoutSecret(parameter: string, names: ReadonlySet<string>, nesting: number): string {
  withinParameter.lastIndex = 0;
  for (let start = 0; ; start = withinParameter.lastIndex) {
    const end = withinParameter.exec(parameter)?.index ?? parameter.length;
    const part = parameter.slice(start, end);
    const equals = part.indexOf("=");
    if (equals >= 0 && isAmong(names, part.slice(0, equals))) {
      return `${parameter.slice(0, start + equals)}=${redactedValue}`;
    }
    if (end === parameter.length) break;
  }
  const equals = parameter.indexOf("=");
  if (!parameter.includes("%", equals)) return parameter;
  const escaped = parameter.slice(equals + 1);
  const value = decoded(escaped);
  if (value === escaped || (nesting < maxNesting && redactText(value, names, nesting + 1) === value)) return parameter;
  return `${parameter.slice(0, equals + 1)}${redactedValue}`;
}

/** The value of one parameter that was asked for by its name. */
export function redactParameter(name: string, value: string, names: ReadonlySet<string>): string {
  return isAmong(names, name) ? redactedValue : withoutControlCharacters(redactText(value, names));
}

/**
 * As servers read a name: escapes are decoded; question marks and spaces before it are no part of it, and one in
 * brackets is a name of its own (`user[password]`, `code[]`).
 */
function isAmong(names: ReadonlySet<string>, name: string): boolean {
  const text = decoded(name.replace(/^\?+/, "").replaceAll("+", " ")).trim().toLowerCase();
  return names.has(text) || (text.includes("[") && text.split(/[[\]]/).some((word) => names.has(word.trim())));
}

const escapes = /(?:%[0-9a-f]{2})+/gi;

/** What is no escape stands for itself. Nothing is thrown: strangers write escapes that are none by the thousand. */
function decoded(text: string): string {
  if (!text.includes("%")) return text;
  return text.replace(escapes, (run) => Buffer.from(run.replaceAll("%", ""), "hex").toString());
}

const credentials: ReadonlySet<string> = new Set(credentialHeaders);
const headerNames = /[a-z0-9_-]+/g;

export function isCredential(header: string): boolean {
  return credentials.has(header);
}

/** Whether one of a text's words, in quotes or not, is the name of such a header. */
export function namesHeader(text: string, isMeant: (header: string) => boolean): boolean {
  for (const [name] of text.toLowerCase().matchAll(headerNames)) if (isMeant(name)) return true;
  return false;
}
