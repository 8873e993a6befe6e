/**
 * The text of a file → its documents as plain values, each with the place of every value. YAML and JSON (which YAML
 * contains) take the same way. Syntax errors become findings that say what is wrong, where, and what to do.
 */
import { LineCounter, isAlias, isMap, isNode, isScalar, isSeq, parseDocument, visit } from "yaml";
import type { Alias, Document, Node, Pair, YAMLError, YAMLMap } from "yaml";
import { maxAliasedValues, maxDocumentCharacters, maxDocumentDepth, maxDocumentValues } from "./document-bounds.ts";
import type { Finding, Place } from "../findings/finding.ts";
import { jsonPointer } from "../findings/places.ts";
import type { PlaceTable } from "../findings/places.ts";
import type { Path } from "../findings/places.ts";
import { isMapping } from "../schema/check.ts";
import { explainDuplicateKey, explainSyntax } from "./explain-syntax.ts";

/** Of one file. */
export const maxFileDocuments = 20_000;
/** Told of one document's text; a file that is something else altogether would give thousands. */
const maxTextFindings = 20;

export interface ParsedDocument {
  readonly value: unknown;
  readonly places: PlaceTable;
}

export interface ParsedDocuments {
  /** The items of a `List` count as documents of their own. Empty documents are left out. */
  readonly documents: readonly ParsedDocument[];
  readonly findings: readonly Finding[];
}

export function parseDocuments(text: string | Uint8Array, file: string): ParsedDocuments {
  const decoded = typeof text === "string" ? text : decode(text);
  if (decoded === undefined) {
    return {
      documents: [],
      findings: [unreadable({ file, line: 1, column: 1 }, "the file is not UTF-8 text", "Save it as UTF-8.")],
    };
  }
  const documents: ParsedDocument[] = [];
  const findings: Finding[] = [];
  let read = 0;
  for (const chunk of splitDocuments(decoded)) {
    if (!chunk.hasContent) continue;
    const at = { file, line: chunk.firstLine, column: 1 };
    read += 1;
    if (read > maxFileDocuments) {
      const message = `the file has more than ${maxFileDocuments} documents; the others are not read`;
      findings.push(unreadable(at, message, "Split it into several files."));
      break;
    }
    const parsed = parseChunk(chunk.lines.join("\n"), at);
    for (const document of parsed.documents) documents.push(document);
    findings.push(...parsed.findings);
  }
  return { documents, findings };
}

function parseChunk(text: string, at: Place): ParsedDocuments {
  if (text.length <= maxDocumentCharacters) return parseOne(text, at.file, at.line);
  const message = `the document has ${text.length} characters, the limit is ${maxDocumentCharacters}`;
  return { documents: [], findings: [unreadable(at, message, "Split it into several documents.")] };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Cuts at document markers before anything is parsed, so that an unclosed quote or bracket ends with its document.
 * `---` and `...` at the beginning of a line are markers wherever they stand, even inside a quoted text (YAML 1.2, rule
 * c-forbidden).
 */
function splitDocuments(text: string): readonly Chunk[] {
  let chunk: Chunk = { lines: [], firstLine: 1, hasContent: false };
  const chunks = [chunk];
  text.split(/\r?\n/).forEach((line, index) => {
    if (/^(---|\.\.\.)(?=\s|$)/.test(line)) {
      // What follows the marker on its line belongs to the document; spaces keep its column.
      const rest = line.startsWith("-") ? `   ${line.slice(3)}` : "";
      chunk = { lines: [rest], firstLine: index + 1, hasContent: !isBlank(rest) };
      chunks.push(chunk);
    } else if (line.startsWith("%") && !chunk.hasContent) {
      chunk.lines.push(""); // a directive (%YAML, %TAG) in front of a document
    } else {
      chunk.lines.push(line);
      chunk.hasContent ||= !isBlank(line);
    }
  });
  return chunks;
}

interface Chunk {
  readonly lines: string[];
  readonly firstLine: number;
  /** There is more than blank lines and comments. */
  hasContent: boolean;
}

function isBlank(line: string): boolean {
  return /^\s*(#|$)/.test(line);
}

function parseOne(text: string, file: string, firstLine: number): ParsedDocuments {
  const counter = new LineCounter();
  const place = (offset: number): Place => {
    const { line, col } = counter.linePos(offset);
    return { file, line: Math.max(line, 1) + firstLine - 1, column: Math.max(col, 1) };
  };
  // The positions are our own. So is the search for keys that are there twice: the parser compares each with all before
  // it.
  const document = parseDocument(text, {
    lineCounter: counter,
    prettyErrors: false,
    uniqueKeys: false,
    logLevel: "silent",
  });
  // The first error: the others mostly follow from it.
  const [first] = document.errors;
  if (first !== undefined) {
    const at = place(isUnendedQuote(first) ? beginOfLastQuote(document, first.pos[0]) : first.pos[0]);
    const { message, suggestion } = explainSyntax(first, text, at.line - firstLine);
    return { documents: [], findings: [unreadable(at, message, suggestion)] };
  }
  if (document.contents === null) return { documents: [], findings: [] };
  const warnings = document.warnings.slice(0, maxTextFindings).map((warning): Finding => {
    const { message } = explainSyntax(warning, text, 0);
    return { ...unreadable(place(warning.pos[0]), message, "Leave the tag out."), severity: "warning" };
  });
  try {
    const reader = new Reader(place);
    const value = reader.read(document.contents, []);
    if (reader.duplicates.length > 0) {
      const findings = reader.duplicates.slice(0, maxTextFindings).map(({ key, offset }) => {
        const { message, suggestion } = explainDuplicateKey(key, text);
        return unreadable(place(offset), message, suggestion);
      });
      return { documents: [], findings };
    }
    return { documents: value === null ? [] : flattenList(value, { file, at: reader.at }), findings: warnings };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return { documents: [], findings: [unreadable(error.place, error.message, error.suggestion)] };
  }
}

function isUnendedQuote(error: YAMLError): boolean {
  return error.code === "MISSING_CHAR" && error.message.includes("quote");
}

/** The parser misses a closing quote at the end of the document; a person looks for it where the text begins. */
function beginOfLastQuote(document: Document.Parsed, end: number): number {
  let begin = end;
  visit(document, {
    Scalar(_key, node) {
      const isQuoted = node.type === "QUOTE_DOUBLE" || node.type === "QUOTE_SINGLE";
      if (isQuoted && node.range && node.range[0] <= end && node.range[1] >= end) begin = node.range[0];
    },
  });
  return begin;
}

class Unreadable extends Error {
  readonly place: Place;
  readonly suggestion: string;

  constructor(place: Place, message: string, suggestion: string) {
    super(message);
    this.place = place;
    this.suggestion = suggestion;
  }
}

/** Turns a YAML tree into plain values and notes where each stood: a value of a mapping where its key stands. */
class Reader {
  readonly at: Record<string, readonly [number, number]> = {};
  /** Keys that their mapping has already: an error, as in kubectl. */
  readonly duplicates: { readonly key: string; readonly offset: number }[] = [];
  readonly #place: (offset: number) => Place;
  /** Anchors as far as they have been read; a later one of the same name takes over (YAML 1.2 §3.2.2.2). */
  readonly #anchors = new Map<string, Node>();
  #insideAlias = 0;
  #aliasedValues = 0;
  #values = 0;

  constructor(place: (offset: number) => Place) {
    this.#place = place;
  }

  read(node: unknown, path: Path): unknown {
    this.#values += 1;
    const offset = offsetOf(node);
    if (this.#insideAlias > 0) this.#aliasedValues += 1;
    if (this.#aliasedValues > maxAliasedValues) {
      const message = `the document has more than ${maxAliasedValues} values through aliases`;
      throw new Unreadable(this.#place(offset), message, "Write less through aliases.");
    }
    if (this.#values > maxDocumentValues || path.length > maxDocumentDepth) {
      throw new Unreadable(
        this.#place(offset),
        path.length > maxDocumentDepth
          ? `the document is nested deeper than ${maxDocumentDepth} levels`
          : `the document has more than ${maxDocumentValues} values`,
        "Split it into several documents, or write less through aliases.",
      );
    }
    this.#note(path, offset);
    if (isAlias(node)) return this.#readAlias(node, path);
    if (isNode(node) && !isAlias(node) && node.anchor !== undefined && this.#insideAlias === 0)
      this.#anchors.set(node.anchor, node);
    if (isScalar(node)) return readScalar(node.value);
    if (isSeq(node)) return node.items.map((item, index) => this.read(item, [...path, index]));
    if (isMap(node)) return this.#readMap(node, path);
    return null;
  }

  #note(path: Path, offset: number): void {
    const pointer = jsonPointer(path);
    if (Object.hasOwn(this.at, pointer)) return;
    const { line, column } = this.#place(offset);
    this.at[pointer] = [line, column];
  }

  #readAlias(alias: Alias, path: Path): unknown {
    const target = this.#anchors.get(alias.source);
    if (target === undefined) {
      throw new Unreadable(
        this.#place(offsetOf(alias)),
        `"*${alias.source}" is an alias in YAML, and there is no anchor "&${alias.source}"`,
        `If the text is meant, put it in quotes: "*${alias.source}".`,
      );
    }
    this.#insideAlias += 1;
    try {
      return this.read(target, path);
    } catch (error) {
      // The alias that was written, not the innermost one that it led to.
      if (!(error instanceof Unreadable) || this.#insideAlias > 1) throw error;
      throw new Unreadable(this.#place(offsetOf(alias)), error.message, error.suggestion);
    } finally {
      this.#insideAlias -= 1;
    }
  }

  #readMap(map: YAMLMap, path: Path): unknown {
    const entries = new Map<string, unknown>();
    const merged = new Map<string, unknown>();
    const seen = new Set<string>();
    for (const pair of map.items as readonly Pair[]) {
      const key = this.#readKey(pair);
      // What an alias stands for has been looked at where it was written.
      if (seen.has(key) && this.#insideAlias === 0) this.duplicates.push({ key, offset: offsetOf(pair.key) });
      seen.add(key);
      if (key === "<<" && this.#isMergeSource(pair.value)) {
        for (const [name, value] of this.#readMerge(pair.value, path)) if (!merged.has(name)) merged.set(name, value);
        continue;
      }
      const below = [...path, key];
      const { line, column } = this.#place(offsetOf(pair.key));
      this.at[jsonPointer(below)] = [line, column];
      entries.set(key, pair.value === null ? null : this.read(pair.value, below));
    }
    for (const [name, value] of merged) if (!entries.has(name)) entries.set(name, value);
    // fromEntries defines properties, so that a key "__proto__" is a key like any other.
    return Object.fromEntries(entries);
  }

  #readKey(pair: Pair): string {
    const { key } = pair;
    if (isScalar(key)) {
      const { value } = key;
      if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return String(value);
    }
    throw new Unreadable(
      this.#place(offsetOf(key ?? pair.value)),
      "the name of a field has to be plain text",
      'Remove the "? " or the brackets.',
    );
  }

  /** YAML 1.1's merge key, which kubectl knows: `<<: *anchor` or a list of them. */
  #isMergeSource(value: unknown): boolean {
    const target = this.#target(value);
    return isMap(target) || (isSeq(target) && target.items.every((item) => isMap(this.#target(item))));
  }

  #target(node: unknown): unknown {
    return isAlias(node) ? this.#anchors.get(node.source) : node;
  }

  #readMerge(value: unknown, path: Path): readonly (readonly [string, unknown])[] {
    const read = this.read(value, path);
    const sources = Array.isArray(read) ? read : [read];
    return sources.flatMap((source) => Object.entries(source as Record<string, unknown>));
  }
}

function readScalar(value: unknown): unknown {
  // Numbers beyond 2^53 and the like: the schema refuses what it does not expect.
  return typeof value === "bigint" ? Number(value) : value;
}

function offsetOf(node: unknown): number {
  const range = (node as { readonly range?: readonly number[] | null } | null)?.range;
  return range?.[0] ?? 0;
}

/** The items of a `kind: List`, each with its own places; any other value is a document by itself. */
function flattenList(value: unknown, places: PlaceTable): readonly ParsedDocument[] {
  if (!isMapping(value) || value.kind !== "List" || !Array.isArray(value.items)) return [{ value, places }];
  const tables = value.items.map((): Record<string, readonly [number, number]> => ({}));
  for (const [pointer, position] of Object.entries(places.at)) {
    const [, index, rest = ""] = /^\/items\/(\d+)(.*)$/s.exec(pointer) ?? [];
    if (index !== undefined) tables[Number(index)]![rest] = position;
  }
  return value.items.flatMap((item: unknown, index) => flattenList(item, { file: places.file, at: tables[index]! }));
}

function unreadable(place: Place, message: string, suggestion: string): Finding {
  return { code: "TUL0002", severity: "error", message, place, suggestion };
}
