// What a field of HTTP/2 is by its name, and which characters it may hold (RFC 9113 §8.2, §8.3). What is not allowed
// never crosses to another version. Both are looked at once for each literal: fields out of HPACK's tables bring the
// answer along (measured: 1 µs of 20 a request).
import { isHostField } from "../http1/authority.ts";
import { tokenCodes } from "../http1/header-names.ts";
import { connectionFields } from "./connection-fields.ts";

/**
 * - `unsound`: name or value hold what no message may hold.
 * - `plain`: nothing follows from it for the codec.
 * - `ofConnection`: of HTTP/1.1 alone (§8.2.2).
 * - `unknownPseudo`: begins with a colon, and is none of those below.
 */
export const fieldKinds = {
  unsound: 0,
  plain: 1,
  ofConnection: 2,
  contentLength: 3,
  host: 4,
  cookie: 5,
  te: 6,
  expect: 7,
  unknownPseudo: 8,
  method: 9,
  scheme: 10,
  authority: 11,
  path: 12,
  status: 13,
  protocol: 14,
} as const;

export type FieldKind = (typeof fieldKinds)[keyof typeof fieldKinds];

const kindsByName: ReadonlyMap<string, FieldKind> = new Map<string, FieldKind>([
  ...Array.from(connectionFields, (name) => [name, fieldKinds.ofConnection] as const),
  ["content-length", fieldKinds.contentLength],
  ["host", fieldKinds.host],
  ["cookie", fieldKinds.cookie],
  ["te", fieldKinds.te],
  ["expect", fieldKinds.expect],
  [":method", fieldKinds.method],
  [":scheme", fieldKinds.scheme],
  [":authority", fieldKinds.authority],
  [":path", fieldKinds.path],
  [":status", fieldKinds.status],
  [":protocol", fieldKinds.protocol],
]);

export function isPseudo(kind: FieldKind): boolean {
  return kind >= fieldKinds.unknownPseudo;
}

/** Of a name alone. */
export function kindOfName(name: string): FieldKind {
  const kind = kindsByName.get(name);
  if (kind !== undefined) return kind;
  if (!isFieldName(name)) return fieldKinds.unsound;
  return name.charCodeAt(0) === 58 /* : */ ? fieldKinds.unknownPseudo : fieldKinds.plain;
}

const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Visible ASCII, as over HTTP/1.1. */
const pathPattern = /^(?:\/[\x21-\x7e]*|\*)$/;
const schemePattern = /^[A-Za-z][-+.A-Za-z0-9]*$/;
const statusPattern = /^[1-9]\d\d$/;
const lengthPattern = /^\d{1,15}$/;

/** Of a name's kind and a value: the same, or `unsound`. */
export function kindWithValue(kind: FieldKind, value: string): FieldKind {
  return isValueOf(kind, value) ? kind : fieldKinds.unsound;
}

function isValueOf(kind: FieldKind, value: string): boolean {
  switch (kind) {
    case fieldKinds.method:
    case fieldKinds.protocol:
      return tokenPattern.test(value);
    case fieldKinds.scheme:
      return schemePattern.test(value);
    case fieldKinds.authority:
      return isHostField(value);
    case fieldKinds.path:
      return pathPattern.test(value);
    case fieldKinds.status:
      return statusPattern.test(value);
    case fieldKinds.contentLength:
      return lengthPattern.test(value);
    default:
      return isFieldValue(value);
  }
}

/** A token in lower case; a pseudo-header's name begins with a colon. */
function isFieldName(name: string): boolean {
  const start = name.charCodeAt(0) === 58 ? 1 : 0;
  if (name.length === start) return false;
  for (let index = start; index < name.length; index += 1) {
    const code = name.charCodeAt(index);
    // The table has the lower-case code of each character of a token, and 0 for what is none, such as NUL.
    if (code === 0 || tokenCodes[code] !== code) return false;
  }
  return true;
}

// oxlint-disable-next-line no-control-regex -- control characters are what is being looked for
const forbidden = /[\0-\x08\x0a-\x1f\x7f]/;

/** No control character but the tab, as over HTTP/1.1, and no space or tab at either end. */
function isFieldValue(value: string): boolean {
  const { length } = value;
  if (length === 0) return true;
  const first = value.charCodeAt(0);
  const last = value.charCodeAt(length - 1);
  if (first === 32 || first === 9 || last === 32 || last === 9) return false;
  return !forbidden.test(value);
}
