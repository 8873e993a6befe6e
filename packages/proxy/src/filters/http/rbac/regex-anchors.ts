// What a regular expression says of every text that it matches, where it is plain text with gaps (`.*/ns/shop/.*`),
// which is how Istio writes namespaces, service accounts and names with a star.
import type { AnchorSet, TextSource } from "./condition.ts";

const gaps = [".*", ".+", "[^/]*", "[^/]+"];
const metaCharacters = /[\\^$.|?*+()[\]{}]/;

/** Anchors of texts that the whole pattern matches; none where nothing is certain about them. */
export function regexAnchorSets(source: TextSource, pattern: string): readonly AnchorSet[] {
  const read = literalPieces(pattern);
  if (read === undefined) return [];
  const { pieces, isWhole } = read;
  const [first] = pieces;
  const last = pieces.at(-1)!;
  if (isWhole && pieces.length === 1) return [[{ kind: "exact", source, text: first!, ignoresCase: false }]];
  const sets: AnchorSet[] = [];
  if (first !== "") sets.push([{ kind: "prefix", source, text: first!, ignoresCase: false }]);
  if (isWhole && last !== "") sets.push([{ kind: "suffix", source, text: last, ignoresCase: false }]);
  for (const piece of pieces) {
    const namespace = /\/ns\/([^/]+)\//.exec(piece)?.[1];
    if (namespace === undefined) continue;
    sets.push([{ kind: "exact", source: namespaceSource(source), text: namespace, ignoresCase: false }]);
  }
  return sets;
}

interface LiteralPieces {
  /** The text between gaps, with empty pieces at the ends where there is a gap. */
  readonly pieces: readonly string[];
  /** False = after the last piece comes something else. */
  readonly isWhole: boolean;
}

/** Undefined where a flag or an alternative at the top may make anything else of what is read. */
function literalPieces(pattern: string): LiteralPieces | undefined {
  if (pattern.includes("(?") || pattern.startsWith("^") || hasAlternatives(pattern)) return undefined;
  const pieces = [""];
  let index = 0;
  while (index < pattern.length) {
    const gap = gaps.find((one) => pattern.startsWith(one, index));
    if (gap !== undefined) {
      pieces.push("");
      index += gap.length;
      continue;
    }
    const isEscaped = pattern[index] === "\\";
    const character = pattern[isEscaped ? index + 1 : index] ?? "";
    // `\.` is a dot, `\d` is not a d.
    const isLiteral = isEscaped ? /[^A-Za-z0-9]/.test(character) : !metaCharacters.test(character);
    if (!isLiteral) return { pieces, isWhole: false };
    index += isEscaped ? 2 : 1;
    // What a quantifier follows may be missing.
    if (/[?*+{]/.test(pattern[index] ?? "")) return { pieces, isWhole: false };
    pieces[pieces.length - 1] += character;
  }
  return { pieces, isWhole: true };
}

/** Whether there is a `|` outside of all groups. */
function hasAlternatives(pattern: string): boolean {
  let depth = 0;
  let isInClass = false;
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern[index];
    if (character === "\\") {
      // A quotation (`\Q…\E`) would need a reading of its own.
      if (pattern[index + 1] === "Q") return true;
      index += 1;
    } else if (isInClass) {
      isInClass = character !== "]";
    } else if (character === "[") {
      isInClass = true;
      // A bracket right after the opening one is itself in the class.
      if (pattern[index + 1] === "^") index += 1;
      if (pattern[index + 1] === "]") index += 1;
    } else if (character === "(") {
      depth += 1;
    } else if (character === ")") {
      depth -= 1;
    } else if (character === "|" && depth === 0) {
      return true;
    }
  }
  return false;
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
