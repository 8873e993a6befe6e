// Texts of spans that the configuration makes up by format strings: tags and names. No secret gets into one: parameters
// of queries are left out as in access logs, and a format that reads a header of credentials says a word in its place.
import { credentialHeaders } from "@tulle/telemetry";
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { namesHeader, redactedValue, redactQuery } from "../format/redact-query.ts";
import { compileTextFormat } from "../format/substitution-format.ts";
import { utf8AsLatin1 } from "../http/header-value.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { RedactedNames } from "../format/redacted-names.ts";

/** Headers whose value is as good as a password to who reads it, or tells of keys and identities. */
export const secretHeaders: ReadonlySet<string> = new Set([
  ...credentialHeaders,
  "x-forwarded-client-cert",
  "www-authenticate",
  "proxy-authenticate",
]);
/** What operators read: arguments, whether names of headers, JSON or expressions. */
const operatorArguments = /%[A-Z][A-Z0-9_]*\((.*?)\)(?::\d+)?%/gs;

export type SpanFormat = (info: StreamInfo, redactedNames: RedactedNames) => string;

/** `known` are parameters that are secrets wherever a request goes; a request's own may be more. */
export function compileSpanFormat(
  text: string,
  known: RedactedNames,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): SpanFormat {
  const { environment, hostname } = scope;
  const shown = { environment, hostname, redactedParameters: known };
  const format = compileTextFormat(utf8AsLatin1(text), "", shown, place, problems);
  if (readsSecretHeader(text)) return () => redactedValue;
  return (info, redactedNames) => redactQuery(format(info, info.request, info.response), redactedNames);
}

function readsSecretHeader(text: string): boolean {
  for (const [, argument] of text.matchAll(operatorArguments)) if (namesSecretHeader(argument!)) return true;
  return false;
}

/** Whether one of its words, in quotes or not, is a header of credentials. */
export function namesSecretHeader(text: string): boolean {
  return namesHeader(text, (header) => secretHeaders.has(header));
}
