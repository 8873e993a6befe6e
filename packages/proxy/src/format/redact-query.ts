// Which parameters of a query stand in logs: codes, tokens and hints of sign-ins are as good as passwords to who reads them there.

const redactedValue = "redacted";

/** The path with the values of `names` (in lower case) left out. A path without a query costs one look for its `?`. */
export function redactQuery(path: string, names: ReadonlySet<string>): string {
  const query = path.indexOf("?");
  if (query < 0) return path;
  const redacted = path
    .slice(query + 1)
    // Some servers part parameters by `;` as well.
    .replace(/([^&;=]*)=([^&;]*)/g, (whole, name: string) =>
      names.has(plainName(name)) ? `${name}=${redactedValue}` : whole,
    );
  return `${path.slice(0, query + 1)}${redacted}`;
}

/** As servers read it: escapes are decoded, a prefix of brackets or `?` is not a part of it. */
function plainName(name: string): string {
  const text = name.replace(/^\?+/, "");
  try {
    return decodeURIComponent(text.replaceAll("+", " ")).trim().toLowerCase();
  } catch {
    return text.toLowerCase();
  }
}
