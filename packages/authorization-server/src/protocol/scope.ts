// Scope strings as sets of tokens (RFC 6749 §3.3).

const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Tokens in the order they were asked for, without duplicates; undefined when a token has a forbidden character. */
export function parseScope(text: string): readonly string[] | undefined {
  const tokens = text.split(" ").filter((token) => token !== "");
  if (tokens.some((token) => !scopeToken.test(token))) return undefined;
  return [...new Set(tokens)];
}

export function formatScope(scope: readonly string[]): string {
  return scope.join(" ");
}

/** True when every token of `asked` is in `given`. */
export function coversScope(given: readonly string[], asked: readonly string[]): boolean {
  return asked.every((token) => given.includes(token));
}
