// What the connection manager does to a path before routing, so that routes and policies judge what the back end will
// see (Envoy: normalize_path, merge_slashes, path_with_escaped_slashes_action).
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";

export type PathOutcome =
  | { readonly type: "path"; readonly path: string }
  | { readonly type: "redirect"; readonly path: string }
  | { readonly type: "reject" };

type PathSettings = Pick<
  HttpConnectionManagerConfig,
  "normalizePath" | "mergeSlashes" | "pathWithEscapedSlashesAction"
>;

const escapedSlash = /%(?:2f|5c)/i;
const unusualCharacter = /[%"<>^`{|}]/;
const forbiddenCharacter = /["<>^`{|}]/g;
const escapedUnreserved = /%(?:2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/gi;
/**
 * A percent sign that would begin an escape once what follows is plain: `%%32f` must not become the `%2f` that was
 * looked for before.
 */
const percentBeforeEscape = new RegExp(`%(?=[0-9a-f]?${escapedUnreserved.source})`, "gi");

export function normalizeRequestPath(path: string, settings: PathSettings): PathOutcome {
  // A fragment is no part of a request target (RFC 9112 §3.2).
  if (path.includes("#")) return { type: "reject" };
  const query = path.indexOf("?");
  const original = query < 0 ? path : path.slice(0, query);
  let result = original;
  let redirects = false;
  if (settings.pathWithEscapedSlashesAction !== "keep_unchanged" && escapedSlash.test(result)) {
    if (settings.pathWithEscapedSlashesAction === "reject_request") return { type: "reject" };
    result = result.replace(/%2f/gi, "/").replace(/%5c/gi, "\\");
    redirects = settings.pathWithEscapedSlashesAction === "unescape_and_redirect";
  }
  if (settings.normalizePath) {
    const escaped = normalizeEscapes(result);
    const normal = escaped === undefined ? undefined : removeDotSegments(escaped);
    if (normal === undefined) return { type: "reject" };
    result = normal;
  }
  if (settings.mergeSlashes) result = result.replace(/\/{2,}/g, "/");
  if (result === original) return { type: "path", path };
  // As a Location, two slashes would begin the name of another host (RFC 3986 §4.2).
  if (redirects) result = result.replace(/^[/\\]{2,}/, "/");
  const whole = query < 0 ? result : result + path.slice(query);
  return { type: redirects ? "redirect" : "path", path: whole };
}

/**
 * One spelling for each path, so that a rule for one holds for the others: unreserved characters plain (RFC 3986
 * §6.2.2.2), and those that no path may hold escaped (§3.3). Undefined where there is a NUL, which ends a text for one
 * reader and not for another.
 */
function normalizeEscapes(path: string): string | undefined {
  if (!unusualCharacter.test(path)) return path;
  if (path.includes("%00")) return undefined;
  return path
    .replace(percentBeforeEscape, "%25")
    .replace(escapedUnreserved, (escaped) => String.fromCharCode(Number.parseInt(escaped.slice(1), 16)))
    .replace(forbiddenCharacter, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Some servers take parameters off a segment before they look for dots: `..;a=b` leads up there. */
const dotsWithParameters = /\/(\.{1,2});[^/]*/g;

/**
 * RFC 3986 §5.2.4 on a path, dots that are escaped, that have parameters, and backslashes included, as one server or
 * another reads them.
 */
function removeDotSegments(path: string): string | undefined {
  if (!/\\|\/(?:\.|%2e)/i.test(path)) return path;
  const segments: string[] = [];
  const parts = path.replace(dotsWithParameters, "/$1").replaceAll("\\", "/").split("/");
  for (const [index, part] of parts.entries()) {
    if (index === 0) {
      if (part !== "") return undefined;
      continue;
    }
    const plain = part.split(";", 1)[0]!.replace(/%2e/gi, ".");
    const isLast = index === parts.length - 1;
    if (plain === ".." || plain === ".") {
      if (plain === "..") segments.pop();
      if (isLast) segments.push("");
    } else {
      segments.push(part);
    }
  }
  return `/${segments.join("/")}`;
}
