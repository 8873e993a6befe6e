// Which parameters of queries stand in logs: codes, tokens and hints of sign-ins are as good as passwords to who reads
// them there.
import { credentialHeaders } from "@tulle/telemetry";
import { withoutControlCharacters } from "../http/header-value.ts";

export const redactedValue = "redacted";

/** How often a value is decoded to look for an address with such a parameter in it. */
const maxNesting = 2;
const withinParameter = /[;?#]/g;

/** The path with the values of `names` (in lower case) left out, of its query and of its fragment. */
export function redactQuery(path: string, names: ReadonlySet<string>): string {
  const query = path.indexOf("?");
  const fragment = path.indexOf("#");
  if (query < 0 && fragment < 0) return path;
  const start = 1 + (query < 0 || (fragment >= 0 && fragment < query) ? fragment : query);
  return path.slice(0, start) + redactText(path.slice(start), names);
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
    if (equals >= 0 && names.has(plainName(part.slice(0, equals)))) {
      return `${parameter.slice(0, start + equals)}=${redactedValue}`;
    }
    if (end === parameter.length) break;
  }
  const equals = parameter.indexOf("=");
  if (nesting === maxNesting || !parameter.includes("%", equals)) return parameter;
  const value = decoded(parameter.slice(equals + 1));
  if (redactText(value, names, nesting + 1) === value) return parameter;
  return `${parameter.slice(0, equals + 1)}${redactedValue}`;
}

/** The value of one parameter that was asked for by its name. */
export function redactParameter(name: string, value: string, names: ReadonlySet<string>): string {
  return names.has(plainName(name)) ? redactedValue : withoutControlCharacters(redactText(value, names));
}

/** As servers read it: escapes are decoded; question marks and spaces before it, and `[]` behind, are no part of it. */
function plainName(name: string): string {
  const text = decoded(name.replace(/^\?+/, "").replaceAll("+", " ")).trim().toLowerCase();
  const bracket = text.indexOf("[");
  return bracket > 0 ? text.slice(0, bracket) : text;
}

/** What is no escape stands for itself. */
function decoded(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
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
