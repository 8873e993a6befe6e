// What a regular expression says of every text that it matches, where it is plain text with gaps (`.*/ns/shop/.*`), which is
// how Istio writes namespaces, service accounts and names with a star.
import type { AnchorSet, TextSource } from "./condition.ts";

const gaps = [".*", ".+", "[^/]*", "[^/]+"];
const metaCharacters = /[\\^$.|?*+()[\]{}]/;

/** Anchors of texts that the whole pattern matches; none where the pattern is more than text and gaps. */
export function regexAnchorSets(source: TextSource, pattern: string): readonly AnchorSet[] {
  const pieces = literalPieces(pattern);
  if (pieces === undefined) return [];
  const [first] = pieces;
  const last = pieces.at(-1)!;
  if (pieces.length === 1) return [[{ kind: "exact", source, text: first!, ignoresCase: false }]];
  const sets: AnchorSet[] = [];
  if (first !== "") sets.push([{ kind: "prefix", source, text: first!, ignoresCase: false }]);
  if (last !== "") sets.push([{ kind: "suffix", source, text: last, ignoresCase: false }]);
  for (const piece of pieces) {
    const namespace = /\/ns\/([^/]+)\//.exec(piece)?.[1];
    if (namespace === undefined) continue;
    sets.push([{ kind: "exact", source: namespaceSource(source), text: namespace, ignoresCase: false }]);
  }
  return sets;
}

/** The text between gaps, with empty pieces at the ends where there is a gap; undefined = not of this form. */
function literalPieces(pattern: string): readonly string[] | undefined {
  const pieces = [""];
  let index = 0;
  while (index < pattern.length) {
    const gap = gaps.find((one) => pattern.startsWith(one, index));
    if (gap !== undefined) {
      pieces.push("");
      index += gap.length;
      continue;
    }
    let character = pattern[index]!;
    index += 1;
    if (character === "\\") {
      character = pattern[index] ?? "";
      index += 1;
      // `\.` is a dot, `\d` is not a d.
      if (character === "" || /[A-Za-z0-9]/.test(character)) return undefined;
    } else if (metaCharacters.test(character)) {
      // A quantifier among them, so that what stands before it is never taken for plain text.
      return undefined;
    }
    pieces[pieces.length - 1] += character;
  }
  return pieces;
}

/** What stands between `/ns/` and the next slash, as in a SPIFFE ID. */
function namespaceSource(source: TextSource): TextSource {
  return {
    key: `${source.key}/ns`,
    read: (request, info) => {
      const value = source.read(request, info);
      if (value === undefined) return undefined;
      return typeof value === "string" ? namespacesOf(value) : value.flatMap(namespacesOf);
    },
  };
}

function namespacesOf(text: string): readonly string[] {
  const namespaces: string[] = [];
  for (let at = text.indexOf("/ns/"); at >= 0; at = text.indexOf("/ns/", at + 1)) {
    const end = text.indexOf("/", at + 4);
    if (end >= 0) namespaces.push(text.slice(at + 4, end));
  }
  return namespaces;
}
