/**
 * Makes of a YAML or JSON document another one by as few edits of its text as there are: what stays as it was keeps
 * each of its bytes. Ranges come from the parser's tree.
 */
import { isDeepStrictEqual } from "node:util";
import { type Document, isAlias, isMap, isScalar, isSeq, type Pair, type YAMLMap, type YAMLSeq } from "yaml";
import { alignLists, type ListStep } from "../align-lists.ts";
import { isPlainObject, type PlainObject } from "../plain-object.ts";
import { blockLines, flowText, pairLines } from "./render-yaml.ts";

/** Of the text as it was: `length` characters at `offset` give way to `text`. */
export interface Edit {
  readonly offset: number;
  readonly length: number;
  readonly text: string;
}

/** What the document does not let be written into it, such as a key in YAML's `? ` form. */
export class NotWritable extends Error {}

/** `document` was parsed with its source tokens, and ranges of the whole `text`. @throws {NotWritable} */
export function editDocument(
  text: string,
  document: Document.Parsed,
  before: unknown,
  after: unknown,
): readonly Edit[] {
  const editor = new Editor(text);
  editor.change(document.contents, before, after, true);
  editor.expandAliases(document, after);
  return editor.edits;
}

export function applyEdits(text: string, edits: readonly Edit[]): string {
  let result = "";
  let end = 0;
  for (const edit of sorted(edits)) {
    result += text.slice(end, edit.offset) + edit.text;
    end = edit.offset + edit.length;
  }
  return result + text.slice(end);
}

/** Stable: what is inserted at one place keeps its order. */
export function sorted(edits: readonly Edit[]): readonly Edit[] {
  return edits.toSorted((a, b) => a.offset - b.offset);
}

class Editor {
  readonly edits: Edit[] = [];
  readonly #text: string;
  readonly #newline: string;
  /** Nodes with an anchor that are not as they were, so that their aliases would change as well. */
  readonly #changed = new Set<unknown>();

  constructor(text: string) {
    this.#text = text;
    this.#newline = /\r?\n/.exec(text)?.[0] ?? "\n";
  }

  /** `isBlock`: lines can be written there. */
  change(node: unknown, before: unknown, after: unknown, isBlock: boolean): void {
    if (isDeepStrictEqual(before, after)) return;
    if (isAlias(node)) return this.#replace(node, after);
    if (hasAnchor(node)) this.#changed.add(node);
    if (isMap(node) && isPlainObject(before) && isPlainObject(after)) {
      if (node.flow === true) this.#changeFlowMap(node, before, after);
      else if (isBlock) this.#changeBlockMap(node, before, after);
      else throw new NotWritable("block style within flow style");
      return;
    }
    if (isSeq(node) && Array.isArray(before) && Array.isArray(after)) {
      const steps = alignLists(before, after);
      const isPossible = steps !== undefined && (node.flow !== true || steps.every(({ kind }) => kind !== "removed"));
      if (isPossible && steps.some(({ kind }) => kind === "kept")) {
        if (node.flow === true) this.#changeFlowList(node, before, after, steps);
        else this.#changeBlockList(node, before, after, steps);
        return;
      }
    }
    this.#replace(node, after);
  }

  /** Aliases of what has changed stand for what it was: they are written out. */
  expandAliases(document: Document.Parsed, after: unknown): void {
    if (this.#changed.size === 0) return;
    const written = new Set(this.edits.filter(({ length }) => length > 0).map(({ offset }) => offset));
    const expand = (node: unknown, value: unknown): void => {
      if (isAlias(node)) {
        const isChanged = this.#changed.has(node.resolve(document));
        if (isChanged && !written.has(rangeOf(node)[0])) this.#replace(node, value);
      } else if (isMap(node)) {
        for (const pair of node.items as readonly Pair[]) {
          const key = keyOf(pair);
          if (key === "<<") this.#keepMerged(document, pair);
          else if (isPlainObject(value) && Object.hasOwn(value, key)) expand(pair.value, value[key]);
        }
      } else if (isSeq(node) && Array.isArray(value)) {
        // An item may have got others in front of it.
        node.items.forEach((item, index) => expand(item, (value as unknown[])[index]));
      }
    };
    expand(document.contents, after);
  }

  #keepMerged(document: Document.Parsed, { value }: Pair): void {
    if (isAlias(value) && this.#changed.has(value.resolve(document))) {
      this.#replace(value, (value.resolve(document) as { toJS(document: Document): unknown }).toJS(document));
    }
  }

  #changeBlockMap(map: YAMLMap, before: PlainObject, after: PlainObject): void {
    const pairs = map.items as readonly Pair[];
    const gone = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
    const added: (readonly [string, unknown])[] = [];
    for (const [key, value] of Object.entries(after)) {
      const pair = pairs.findLast((each) => keyOf(each) === key);
      if (pair === undefined) {
        // Of a merge (`<<`): the map's own key comes before it.
        if (!isDeepStrictEqual(before[key], value)) added.push([key, value]);
      } else if (isEmpty(pair.value) && value !== null) this.#fillPair(pair, value);
      else this.change(pair.value, before[key], value, true);
    }
    for (const key of gone) {
      const pair = pairs.findLast((each) => keyOf(each) === key);
      const instead = added.shift();
      if (pair === undefined || instead === undefined) throw new NotWritable(`the field ${key} cannot be taken out`);
      const start = keyStart(pair);
      this.#put(start, this.#endOf(pair), this.#joined(pairLines(...instead), this.#columnOf(start)));
    }
    if (added.length === 0) return;
    const lines = added.flatMap(([key, value]) => pairLines(key, value));
    this.#insertLinesBehind(this.#endOf(pairs.at(-1)!), this.#columnOf(keyStart(pairs[0]!)), lines);
  }

  /** `metadata:` with nothing behind it. */
  #fillPair(pair: Pair, value: unknown): void {
    const { key } = pair;
    const colon = this.#text.indexOf(":", rangeOf(key)[1]);
    const written = this.#text.slice(colon + 1, this.#endOf(pair)).trim();
    if (colon < 0 || written !== "") return this.#replace(pair.value, value);
    const isList = Array.isArray(value);
    const indent = this.#columnOf(keyStart(pair)) + (isList ? 0 : 2);
    if (typeof value === "object") this.#insertLinesBehind(colon + 1, indent, blockLines(value));
    else this.edits.push({ offset: colon + 1, length: 0, text: ` ${blockLines(value)[0]!}` });
  }

  #changeBlockList(
    list: YAMLSeq,
    before: readonly unknown[],
    after: readonly unknown[],
    steps: readonly ListStep[],
  ): void {
    const starts = itemStarts(list);
    const column = this.#columnOf(starts[0]!);
    const firstKept = steps.find(({ kind }) => kind === "kept") as { readonly before: number };
    let last: number | undefined;
    const inFront: string[] = [];
    const behind = new Map<number, string[]>();
    for (const step of steps) {
      if (step.kind === "kept") {
        this.change(list.items[step.before], before[step.before], after[step.after], true);
        last = step.before;
      } else if (step.kind === "removed") this.#removeItem(list, starts, step.before);
      else {
        const lines = blockLines([after[step.after]]);
        if (last === undefined) inFront.push(...lines);
        else behind.set(last, [...(behind.get(last) ?? []), ...lines]);
      }
    }
    if (inFront.length > 0) {
      const text = this.#joined(inFront, column) + this.#newline + " ".repeat(column);
      this.edits.push({ offset: starts[firstKept.before]!, length: 0, text });
    }
    for (const [index, lines] of behind) this.#insertLinesBehind(this.#endOf(list.items[index]), column, lines);
  }

  #removeItem(list: YAMLSeq, starts: readonly number[], index: number): void {
    const start = this.#text.lastIndexOf("\n", starts[index]! - 1) + 1;
    if (this.#text.slice(start, starts[index]).trim() !== "") throw new NotWritable("an item cannot be taken out");
    this.edits.push({ offset: start, length: this.#nextLine(this.#endOf(list.items[index])) - start, text: "" });
  }

  #changeFlowMap(map: YAMLMap, before: PlainObject, after: PlainObject): void {
    const pairs = map.items as readonly Pair[];
    const isRenamed = Object.keys(before).some((key) => !Object.hasOwn(after, key));
    if (isRenamed || pairs.some((pair) => keyOf(pair) === "<<")) return this.#replace(map, after);
    const added: string[] = [];
    for (const [key, value] of Object.entries(after)) {
      const pair = pairs.findLast((each) => keyOf(each) === key);
      if (pair === undefined) added.push(`${flowText(key)}: ${flowText(value)}`);
      else if (isEmpty(pair.value) && !isDeepStrictEqual(before[key], value)) return this.#replace(map, after);
      else this.change(pair.value, before[key], value, false);
    }
    this.#insertInFlow(map, pairs.at(-1), added);
  }

  #changeFlowList(
    list: YAMLSeq,
    before: readonly unknown[],
    after: readonly unknown[],
    steps: readonly ListStep[],
  ): void {
    const inFront: string[] = [];
    const behind = new Map<number, string[]>();
    let last: number | undefined;
    for (const step of steps) {
      if (step.kind === "kept") {
        this.change(list.items[step.before], before[step.before], after[step.after], false);
        last = step.before;
      } else if (step.kind === "added") {
        const text = flowText(after[step.after]);
        if (last === undefined) inFront.push(`${text}, `);
        else behind.set(last, [...(behind.get(last) ?? []), text]);
      }
    }
    if (inFront.length > 0) this.edits.push({ offset: rangeOf(list)[0] + 1, length: 0, text: inFront.join("") });
    for (const [index, texts] of behind) this.#insertInFlow(list, list.items[index], texts);
  }

  #insertInFlow(collection: YAMLMap | YAMLSeq, last: unknown, texts: readonly string[]): void {
    if (texts.length === 0) return;
    const text = texts.join(", ");
    if (last === undefined) this.edits.push({ offset: rangeOf(collection)[0] + 1, length: 0, text });
    else this.edits.push({ offset: this.#endOf(last), length: 0, text: `, ${text}` });
  }

  #replace(node: unknown, value: unknown): void {
    if (hasAnchor(node)) this.#changed.add(node);
    this.#put(rangeOf(node)[0], this.#endOf(node), flowText(value));
  }

  /** The line end behind a block scalar is its own, and stays. */
  #put(offset: number, end: number, text: string): void {
    const { length } = this.#text.slice(offset, end).trimEnd();
    this.edits.push({ offset, length, text });
  }

  /** Where the content ends, spaces and comments behind it left out. */
  #endOf(node: unknown): number {
    if (isPair(node))
      return node.value === null || node.value === undefined ? rangeOf(node.key)[1] : this.#endOf(node.value);
    if ((isMap(node) || isSeq(node)) && node.flow !== true) {
      const last: unknown = node.items.at(-1);
      return last === undefined ? rangeOf(node)[1] : this.#endOf(last);
    }
    return rangeOf(node)[1];
  }

  /** Whole lines behind the one where `offset` is, or at its begin. */
  #insertLinesBehind(offset: number, column: number, lines: readonly string[]): void {
    const at = this.#nextLine(offset);
    const text = " ".repeat(column) + this.#joined(lines, column);
    const isAtEnd = at === this.#text.length && this.#text[at - 1] !== "\n";
    this.edits.push({ offset: at, length: 0, text: isAtEnd ? this.#newline + text : text + this.#newline });
  }

  /** Block scalars end at the begin of a line. */
  #nextLine(offset: number): number {
    if (this.#text[offset - 1] === "\n") return offset;
    const end = this.#text.indexOf("\n", offset);
    const line = this.#text.slice(offset, end < 0 ? undefined : end);
    if (!/^\s*(?:\s#.*)?$/.test(line)) throw new NotWritable("there is something behind it on its line");
    return end < 0 ? this.#text.length : end + 1;
  }

  #joined(lines: readonly string[], column: number): string {
    return lines.join(this.#newline + " ".repeat(column));
  }

  #columnOf(offset: number): number {
    const start = this.#text.lastIndexOf("\n", offset - 1) + 1;
    const before = this.#text.slice(start, offset).replace("\uFEFF", "");
    if (!/^[ -]*$/.test(before)) throw new NotWritable("there is something in front of it on its line");
    return before.length;
  }
}

function isPair(node: unknown): node is Pair {
  return typeof node === "object" && node !== null && "key" in node && "value" in node && !isScalar(node);
}

function rangeOf(node: unknown): readonly [number, number] {
  const range = (node as { readonly range?: readonly [number, number, number] | null } | null)?.range;
  if (range === undefined || range === null) throw new NotWritable("the parser does not tell where it is");
  return [range[0], range[1]];
}

function keyOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : "";
}

function keyStart(pair: Pair): number {
  return rangeOf(pair.key)[0];
}

function isEmpty(node: unknown): boolean {
  return node === null || node === undefined || (isScalar(node) && node.value === null && (node.source ?? "") === "");
}

function hasAnchor(node: unknown): boolean {
  return (node as { readonly anchor?: string } | null | undefined)?.anchor !== undefined;
}

/** Where the `-` of each item is. */
function itemStarts(list: YAMLSeq): readonly number[] {
  const token = list.srcToken;
  if (token?.type !== "block-seq") throw new NotWritable("the parser does not tell where its items are");
  return token.items.flatMap(({ start }) =>
    start.filter(({ type }) => type === "seq-item-ind").map(({ offset }) => offset),
  );
}
