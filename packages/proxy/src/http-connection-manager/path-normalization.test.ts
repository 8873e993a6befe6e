// Paths as the connection manager makes them before routing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { normalizeRequestPath, type PathOutcome } from "./path-normalization.ts";

const path = (text: string): PathOutcome => ({ type: "path", path: text });
type Settings = Parameters<typeof normalizeRequestPath>[1];

const cases: readonly {
  readonly name: string;
  readonly input: string;
  readonly settings?: Partial<Settings>;
  readonly expected: PathOutcome;
}[] = [
  { name: "untouched by default", input: "/a/../b//c%2fd?e=/../f", expected: path("/a/../b//c%2fd?e=/../f") },
  { name: "a fragment", input: "/a#b", expected: { type: "reject" } },
  { name: "dot segments", input: "/a/./b/../c", settings: { normalizePath: true }, expected: path("/a/c") },
  { name: "dots at the end", input: "/a/b/..", settings: { normalizePath: true }, expected: path("/a/") },
  { name: "above the root", input: "/../../a", settings: { normalizePath: true }, expected: path("/a") },
  { name: "escaped dots", input: "/a/%2E%2e/b", settings: { normalizePath: true }, expected: path("/b") },
  {
    name: "escaped unreserved characters",
    input: "/%61%5A%30%2d%2E%5f%7e?%61",
    settings: { normalizePath: true },
    expected: path("/aZ0-._~?%61"),
  },
  {
    name: "characters that no path may hold",
    input: '/{a}|^`<>"[b]?{"',
    settings: { normalizePath: true },
    expected: path('/%7Ba%7D%7C%5E%60%3C%3E%22[b]?{"'),
  },
  {
    name: "other escapes stay, once",
    input: "/%2561%2f%20%zz%",
    settings: { normalizePath: true },
    expected: path("/%2561%2f%20%zz%"),
  },
  { name: "backslashes", input: "/a\\..\\b", settings: { normalizePath: true }, expected: path("/b") },
  {
    name: "a hidden file is no dot segment",
    input: "/.git/x",
    settings: { normalizePath: true },
    expected: path("/.git/x"),
  },
  {
    name: "parameters do not hide dot segments",
    input: "/x/..;/admin",
    settings: { normalizePath: true },
    expected: path("/admin"),
  },
  {
    name: "parameters of many kinds do not",
    input: "/a/b/..;c=d;e/./.;f?g=/..;h",
    settings: { normalizePath: true },
    expected: path("/a/?g=/..;h"),
  },
  {
    name: "nor do they behind escaped dots and backslashes",
    input: "/a/b/%2e%2E;/c\\.%2e;x\\d/.;",
    settings: { normalizePath: true },
    expected: path("/a/d/"),
  },
  {
    name: "parameters of other segments stay",
    input: "/a;b/...;c/d.;e/;f/g..;",
    settings: { normalizePath: true },
    expected: path("/a;b/...;c/d.;e/;f/g..;"),
  },
  { name: "a NUL", input: "/a%00b", settings: { normalizePath: true }, expected: { type: "reject" } },
  {
    name: "a NUL in a segment that goes",
    input: "/a/%00/../b",
    settings: { normalizePath: true },
    expected: { type: "reject" },
  },
  {
    name: "a NUL in the query is the application's",
    input: "/a?b=%00",
    settings: { normalizePath: true },
    expected: path("/a?b=%00"),
  },
  {
    name: "no NUL comes of a broken escape",
    input: "/%%300/%0%30",
    settings: { normalizePath: true },
    expected: path("/%2500/%2500"),
  },
  {
    name: "the query stays",
    input: "/a/../b?c=/../d",
    settings: { normalizePath: true },
    expected: path("/b?c=/../d"),
  },
  {
    name: "slashes are merged, not in the query",
    input: "//a///b?c=//d",
    settings: { mergeSlashes: true },
    expected: path("/a/b?c=//d"),
  },
  {
    name: "escaped slashes refused",
    input: "/a%2Fb",
    settings: { pathWithEscapedSlashesAction: "reject_request" },
    expected: { type: "reject" },
  },
  {
    name: "escaped slashes forwarded plain",
    input: "/a%2fb%5Cc",
    settings: { pathWithEscapedSlashesAction: "unescape_and_forward" },
    expected: path("/a/b\\c"),
  },
  {
    name: "no escaped slash comes of a broken escape",
    input: "/a%%32fb%2%35c%%%35c",
    settings: { normalizePath: true, pathWithEscapedSlashesAction: "reject_request" },
    expected: path("/a%252fb%2525c%%255c"),
  },
  {
    name: "escaped slashes redirected",
    input: "/a%2fb?c",
    settings: { pathWithEscapedSlashesAction: "unescape_and_redirect" },
    expected: { type: "redirect", path: "/a/b?c" },
  },
  {
    name: "no redirect to another host",
    input: "/%2fevil.example/%2e",
    settings: { pathWithEscapedSlashesAction: "unescape_and_redirect" },
    expected: { type: "redirect", path: "/evil.example/%2e" },
  },
  {
    name: "dots behind escaped slashes",
    input: "/a%2f..%2fb",
    settings: { normalizePath: true, pathWithEscapedSlashesAction: "unescape_and_forward" },
    expected: path("/b"),
  },
];

for (const { name, input, settings, expected } of cases) {
  test(name, () => {
    const all: Settings = {
      normalizePath: false,
      mergeSlashes: false,
      pathWithEscapedSlashesAction: "keep_unchanged",
      ...settings,
    };
    assert.deepEqual(normalizeRequestPath(input, all), expected);
  });
}
