// Values of policies → Envoy's matchers. A `*` at one end stands for any text, alone for any text that is not empty;
// header values and paths have matchers of their own (Istio: authz/matcher).
import type { MessageInitShape } from "@bufbuild/protobuf";
import { isPathTemplate } from "@tulle/config";
import type { HeaderMatcherSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { MetadataMatcherSchema } from "@tulle/xds/envoy/type/matcher/v3/metadata_pb";
import type { PathMatcherSchema } from "@tulle/xds/envoy/type/matcher/v3/path_pb";
import type { StringMatcherSchema } from "@tulle/xds/envoy/type/matcher/v3/string_pb";
import type { ValueMatcherSchema } from "@tulle/xds/envoy/type/matcher/v3/value_pb";
import { payloadKey } from "../jwt-authentication.ts";

export type StringMatch = MessageInitShape<typeof StringMatcherSchema>;
export type HeaderMatch = MessageInitShape<typeof HeaderMatcherSchema>;
export type MetadataMatch = MessageInitShape<typeof MetadataMatcherSchema>;
type PathMatch = MessageInitShape<typeof PathMatcherSchema>;
type ValueMatch = MessageInitShape<typeof ValueMatcherSchema>;

export const anyText: StringMatch = regexMatch(".+");

export function regexMatch(regex: string): StringMatch {
  return { matchPattern: { case: "safeRegex", value: { regex } } };
}

export function exactMatch(text: string): StringMatch {
  return { matchPattern: { case: "exact", value: text } };
}

export function prefixMatch(text: string): StringMatch {
  return { matchPattern: { case: "prefix", value: text } };
}

export function suffixMatch(text: string): StringMatch {
  return { matchPattern: { case: "suffix", value: text } };
}

export function textMatch(value: string): StringMatch {
  if (value === "*") return anyText;
  if (value.startsWith("*")) return suffixMatch(value.slice(1));
  return value.endsWith("*") ? prefixMatch(value.slice(0, -1)) : exactMatch(value);
}

/** An identity without its scheme (`cluster.local/ns/…`), as policies write it. */
export function identityMatch(value: string): StringMatch {
  const scheme = "spiffe://";
  if (value === "*") return anyText;
  if (value.startsWith("*")) return regexMatch(`${scheme}.*${quoteRegex(value.slice(1))}`);
  return value.endsWith("*") ? prefixMatch(scheme + value.slice(0, -1)) : exactMatch(scheme + value);
}

/** `*` asks for the header alone. */
export function headerMatch(name: string, value: string, options: { readonly ignoreCase?: boolean } = {}): HeaderMatch {
  if (value === "*") return { name, headerMatchSpecifier: { case: "presentMatch", value: true } };
  const { ignoreCase = false } = options;
  return { name, headerMatchSpecifier: { case: "stringMatch", value: { ...textMatch(value), ignoreCase } } };
}

/**
 * A template is sent as the regular expression that it stands for: `{*}` is a segment that is not empty, `{**}` any
 * rest. Istio sends Envoy's `uri_template`, which makes the same of it.
 */
export function pathMatch(value: string): PathMatch {
  if (!isPathTemplate(value)) return { rule: { case: "path", value: textMatch(value) } };
  const regex = value
    .split("/")
    .map((segment) => (segment === "{*}" ? "[^/]+" : segment === "{**}" ? ".*" : quoteRegex(segment)))
    .join("/");
  return { rule: { case: "path", value: regexMatch(regex) } };
}

/** A claim of the token that is a text. */
export function claimMatch(claim: string, match: StringMatch): MetadataMatch {
  return claimValueMatch([claim], { matchPattern: { case: "stringMatch", value: match } });
}

/** A claim, at a path of names, that is one of `values` or a list with one of them in it. */
export function claimListMatch(claim: readonly string[], values: readonly string[]): MetadataMatch {
  const value = anyOf(
    values.map((each): ValueMatch => ({ matchPattern: { case: "stringMatch", value: textMatch(each) } })),
  );
  return claimValueMatch(claim, anyOf([listWith(value), value]));
}

/** A claim that matches, or a list with a text in it that does; without `match` any claim of that name. */
export function claimMatchOf(claim: readonly string[], match: StringMatch | undefined): MetadataMatch {
  if (match === undefined) return claimValueMatch(claim, { matchPattern: { case: "presentMatch", value: true } });
  const value: ValueMatch = { matchPattern: { case: "stringMatch", value: match } };
  return claimValueMatch(claim, anyOf([listWith(value), value]));
}

/** Metadata of any filter; a value in brackets asks for a list with it. */
export function filterMetadataMatch(filter: string, key: string, values: readonly string[]): MetadataMatch {
  const matches = values.map((value): ValueMatch => {
    const inner = /^\[(.*)\]$/.exec(value)?.[1];
    const text: ValueMatch = { matchPattern: { case: "stringMatch", value: textMatch(inner ?? value) } };
    return inner === undefined ? text : listWith(text);
  });
  return { filter, path: [{ segment: { case: "key", value: key } }], value: anyOf(matches) };
}

function claimValueMatch(claim: readonly string[], value: ValueMatch): MetadataMatch {
  const path = [payloadKey, ...claim].map((key) => ({ segment: { case: "key" as const, value: key } }));
  return { filter: "envoy.filters.http.jwt_authn", path, value };
}

function listWith(value: ValueMatch): ValueMatch {
  return { matchPattern: { case: "listMatch", value: { matchPattern: { case: "oneOf", value } } } };
}

function anyOf(valueMatchers: ValueMatch[]): ValueMatch {
  if (valueMatchers.length === 1) return valueMatchers[0]!;
  return { matchPattern: { case: "orMatch", value: { valueMatchers } } };
}

function quoteRegex(text: string): string {
  return text.replaceAll(/[\\.+*?()|[\]{}^$]/g, String.raw`\$&`);
}
