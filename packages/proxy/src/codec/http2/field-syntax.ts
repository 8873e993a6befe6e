// Which characters a field of HTTP/2 may hold (RFC 9113 §8.2.1). What is not allowed never crosses to another version.
import { tokenCodes } from "../http1/header-names.ts";

/** A token in lower case; a pseudo-header's name begins with a colon. */
export function isFieldName(name: string): boolean {
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
export function isFieldValue(value: string): boolean {
  const { length } = value;
  if (length === 0) return true;
  const first = value.charCodeAt(0);
  const last = value.charCodeAt(length - 1);
  if (first === 32 || first === 9 || last === 32 || last === 9) return false;
  return !forbidden.test(value);
}
