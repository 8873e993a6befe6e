// Which parameters of a query stand in logs: codes, tokens and hints of sign-ins are as good as passwords to who reads
// them there.
import { withoutControlCharacters } from "../http/header-value.ts";

const redactedValue = "redacted";

/** The path with the values of `names` (in lower case) left out. A path without a query costs one look for its `?`. */
export function redactQuery(path: string, names: ReadonlySet<string>): string {
  const query = path.indexOf("?");
  if (query < 0) return path;
  // Some servers part parameters by `;` as well. Whole parameters are matched, with `=` or without: to look for a `=`
  // from each character on would cost the square of a query that has none, and strangers write queries.
  const redacted = path.slice(query + 1).replace(/[^&;]+/g, (parameter) => {
    const end = parameter.indexOf("=");
    if (end < 0) return parameter;
    const name = parameter.slice(0, end);
    return names.has(plainName(name)) ? `${name}=${redactedValue}` : parameter;
  });
  return `${path.slice(0, query + 1)}${redacted}`;
}

/** A text that may hold a query, or be one. */
export function redactText(text: string, names: ReadonlySet<string>): string {
  if (text.includes("?") || !text.includes("=")) return redactQuery(text, names);
  return redactQuery(`?${text}`, names).slice(1);
}

/** The value of one parameter that was asked for by its name. */
export function redactParameter(name: string, value: string, names: ReadonlySet<string>): string {
  return names.has(plainName(name)) ? redactedValue : withoutControlCharacters(value);
}

/** As servers read it: escapes are decoded, question marks and spaces before it are no part of it. */
function plainName(name: string): string {
  const text = name.replace(/^\?+/, "");
  try {
    return decodeURIComponent(text.replaceAll("+", " ")).trim().toLowerCase();
  } catch {
    return text.toLowerCase();
  }
}
