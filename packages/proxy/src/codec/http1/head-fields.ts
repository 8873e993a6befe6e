// The field lines of a head or of trailers, read strictly: what RFC 9112 §5 forbids is refused and never repaired.
// Fields that belong to the connection go into a scratch record; the others are kept in order.
import { fieldFramingBytes } from "../../http/headers-bytes.ts";
import { hashStep, headerKinds, headerNameAt, tokenCodes } from "./header-names.ts";

const carriageReturn = 13;
const lineFeed = 10;
const space = 32;
const tab = 9;
const colon = 58;
const del = 127;

const controlCharacter = /[\0-\x08\x0a-\x1f\x7f]/g;

/** What the connection-level fields of one head said; reused for every head of a connection. */
export class HeadFields {
  entries: string[] = [];
  fieldCount = 0;
  /** Of names and values, with what frames each. */
  bytes = 0;
  hostCount = 0;
  host = "";
  contentLengthCount = 0;
  contentLength = "";
  transferEncodingCount = 0;
  transferEncoding = "";
  connection = "";
  upgrade = "";
  te = "";
  expect = "";

  reset(): void {
    this.entries = [];
    this.fieldCount = 0;
    this.bytes = 0;
    this.hostCount = 0;
    this.host = "";
    this.contentLengthCount = 0;
    this.contentLength = "";
    this.transferEncodingCount = 0;
    this.transferEncoding = "";
    this.connection = "";
    this.upgrade = "";
    this.te = "";
    this.expect = "";
  }
}

/**
 * Reads the field lines of `text` from `position` to `end`, which is just behind the CRLF of the last one. Gives
 * undefined, or the response-code details of what is wrong (Envoy's where it has one). One pass by character: a regular
 * expression for each line and a look-up for each cut-out name took twice as long.
 */
export function readFields(
  text: string,
  position: number,
  end: number,
  maxFieldCount: number,
  fields: HeadFields,
): string | undefined {
  let bytes = 0;
  while (position < end) {
    let at = position;
    let hash = 0;
    let code = text.charCodeAt(at);
    for (let token = tokenCodes[code]!; token > 0; token = tokenCodes[code]!) {
      hash = hashStep(hash, token);
      at += 1;
      code = text.charCodeAt(at);
    }
    if (code !== colon || at === position) return nameFault(text, position);
    const nameEnd = at;
    const name = headerNameAt(text, position, at, hash);
    at += 1;
    while (at < end && isBlank(text.charCodeAt(at))) at += 1;
    const valueStart = at;
    code = text.charCodeAt(at);
    while (code >= space ? code !== del : code === tab) {
      at += 1;
      code = text.charCodeAt(at);
    }
    if (code !== carriageReturn || text.charCodeAt(at + 1) !== lineFeed || at >= end)
      return controlCharacterDetails(code);
    let valueEnd = at;
    while (valueEnd > valueStart && isBlank(text.charCodeAt(valueEnd - 1))) valueEnd -= 1;
    fields.fieldCount += 1;
    if (fields.fieldCount > maxFieldCount) return "http1.too_many_headers";
    bytes += nameEnd - position + valueEnd - valueStart + fieldFramingBytes;
    const value = text.slice(valueStart, valueEnd);
    if (name.kind === headerKinds.plain) fields.entries.push(name.text, value);
    else keepSpecialField(fields, name.kind, name.text, value);
    position = at + 2;
  }
  fields.bytes = bytes;
  return undefined;
}

/** What is wrong with a line whose name is not followed by a colon. */
function nameFault(text: string, position: number): string {
  const first = text.charCodeAt(position);
  if (first === space || first === tab) return "http1.obs_fold";
  // A control character anywhere in the line says more than the missing colon.
  controlCharacter.lastIndex = position;
  if (!controlCharacter.test(text)) return "http1.codec_error";
  const at = controlCharacter.lastIndex - 1;
  const isLineEnd = text.charCodeAt(at) === carriageReturn && text.charCodeAt(at + 1) === lineFeed;
  return isLineEnd ? "http1.codec_error" : controlCharacterDetails(text.charCodeAt(at));
}

function isBlank(code: number): boolean {
  return code === space || code === tab;
}

function controlCharacterDetails(code: number): string {
  if (code === lineFeed) return "http1.bare_lf";
  if (code === carriageReturn) return "http1.bare_cr";
  return "http1.invalid_characters";
}

function keepSpecialField(fields: HeadFields, kind: number, name: string, value: string): void {
  switch (kind) {
    case headerKinds.host:
      fields.hostCount += 1;
      fields.host = value;
      return;
    case headerKinds.contentLength:
      fields.contentLengthCount += 1;
      fields.contentLength = value;
      if (fields.contentLengthCount === 1) fields.entries.push(name, value);
      return;
    case headerKinds.transferEncoding:
      fields.transferEncodingCount += 1;
      fields.transferEncoding = value;
      return;
    case headerKinds.connection:
      fields.connection = fields.connection === "" ? value : `${fields.connection},${value}`;
      return;
    case headerKinds.upgrade:
      fields.upgrade = fields.upgrade === "" ? value : `${fields.upgrade},${value}`;
      return;
    case headerKinds.te:
      fields.te = fields.te === "" ? value : `${fields.te},${value}`;
      return;
    case headerKinds.expect:
      fields.expect = value;
      fields.entries.push(name, value);
      return;
    default:
  }
}

/** The body length that Content-Length gives in bytes; -1 when it is no plain decimal number (RFC 9110 §8.6). */
export function contentLengthBytes(text: string): number {
  const { length } = text;
  if (length === 0 || length > 15) return -1;
  let bytes = 0;
  for (let index = 0; index < length; index += 1) {
    const digit = text.charCodeAt(index) - 48;
    if (digit < 0 || digit > 9) return -1;
    bytes = bytes * 10 + digit;
  }
  return bytes;
}

/** True when the comma-separated list holds the token, whatever its case. */
export function hasToken(list: string, token: string): boolean {
  if (list === token) return true;
  if (list === "" || list === "keep-alive") return false;
  return list.split(",").some((part) => part.trim().toLowerCase() === token);
}
