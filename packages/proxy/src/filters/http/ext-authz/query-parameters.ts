// Query parameters that an authorizer sets and takes out; what it does not name stays as the client wrote it.
import type { HeaderPair } from "./authorization-outcome.ts";

export function withParameters(path: string, set: readonly HeaderPair[], remove: readonly string[]): string {
  const [, base = "", query = "", fragment = ""] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(path) ?? [];
  const replaced = new Map(set);
  const gone = new Set(remove);
  const pairs = query === "" ? [] : query.split("&");
  const kept = pairs.filter((pair) => {
    const name = pair.split("=", 1)[0]!;
    return !gone.has(name) && !replaced.has(name);
  });
  for (const [name, value] of replaced) if (!gone.has(name)) kept.push(`${name}=${value}`);
  return `${base}${kept.length === 0 ? "" : `?${kept.join("&")}`}${fragment}`;
}
