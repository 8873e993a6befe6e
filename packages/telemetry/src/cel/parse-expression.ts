// The text of a CEL expression as a tree: all of the grammar (cel-spec: langdef, "Syntax"), since whoever writes one
// for an Envoy may use all of it. What of a tree can be evaluated is the evaluator's business.
import { CelRefusal, celTokens, type CelToken } from "./cel-tokens.ts";

export type CelTree =
  | { readonly type: "literal"; readonly value: string | number | boolean | null }
  | { readonly type: "bytes"; readonly value: string }
  | { readonly type: "name"; readonly name: string }
  | { readonly type: "select"; readonly of: CelTree; readonly field: string }
  | { readonly type: "index"; readonly of: CelTree; readonly key: CelTree }
  | { readonly type: "list"; readonly elements: readonly CelTree[] }
  | { readonly type: "map"; readonly entries: readonly CelEntry<CelTree>[] }
  /** `of` is the path of the message's name. */
  | { readonly type: "message"; readonly of: CelTree; readonly entries: readonly CelEntry<string>[] }
  | { readonly type: "not"; readonly of: CelTree }
  | { readonly type: "negate"; readonly of: CelTree }
  | { readonly type: "binary"; readonly operator: BinaryOperator; readonly left: CelTree; readonly right: CelTree }
  | {
      readonly type: "conditional";
      readonly condition: CelTree;
      readonly whenTrue: CelTree;
      readonly whenFalse: CelTree;
    }
  /** `of` is what stands before the dot; undefined = a function. */
  | {
      readonly type: "call";
      readonly name: string;
      readonly of: CelTree | undefined;
      readonly inputs: readonly CelTree[];
    };

export interface CelEntry<Key> {
  readonly key: Key;
  readonly value: CelTree;
}

/** Loosest first. */
const operatorLevels = [["||"], ["&&"], ["==", "!=", "<", "<=", ">", ">=", "in"], ["+", "-"], ["*", "/", "%"]] as const;

export type BinaryOperator = (typeof operatorLevels)[number][number];

export type ParsedExpression =
  | { readonly ok: true; readonly tree: CelTree }
  | { readonly ok: false; readonly reason: string };

const maxExpressionLength = 2048;
/** Of parentheses and the like in one another. */
const maxDepth = 64;

const constants: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
]);
/** No names of anything; fields may be called so. */
const reserved: ReadonlySet<string> = new Set(
  "as break const continue else for function if import in let loop package namespace return var void while".split(" "),
);

/** Whole expressions only: what is left over is an error. */
export function parseExpression(text: string): ParsedExpression {
  try {
    if (text.length > maxExpressionLength) throw new CelRefusal(`is longer than ${maxExpressionLength} characters`);
    const parser = new Parser(celTokens(text));
    return { ok: true, tree: parser.parseAll() };
  } catch (error) {
    if (error instanceof CelRefusal) return { ok: false, reason: error.message };
    throw error;
  }
}

class Parser {
  readonly #tokens: readonly CelToken[];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly CelToken[]) {
    this.#tokens = tokens;
  }

  parseAll(): CelTree {
    const tree = this.#parseExpression();
    if (this.#peek().type !== "end") throw this.#unexpected();
    return tree;
  }

  #peek(): CelToken {
    return this.#tokens[this.#next]!;
  }

  #unexpected(): CelRefusal {
    const { text, at } = this.#peek();
    return new CelRefusal(`has something that is not expected at position ${at}: ${text}`);
  }

  /** Takes the token if it is that sign or word. */
  #takes(text: string): boolean {
    const token = this.#peek();
    if (token.text !== text || (token.type !== "sign" && token.type !== "name")) return false;
    this.#next += 1;
    return true;
  }

  #expect(text: string): void {
    if (!this.#takes(text)) throw this.#unexpected();
  }

  #parseExpression(): CelTree {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new CelRefusal(`has more than ${maxDepth} levels`);
    let tree = this.#parseBinary(0);
    if (this.#takes("?")) {
      const whenTrue = this.#parseBinary(0);
      this.#expect(":");
      tree = { type: "conditional", condition: tree, whenTrue, whenFalse: this.#parseExpression() };
    }
    this.#depth -= 1;
    return tree;
  }

  #parseBinary(level: number): CelTree {
    const operators = operatorLevels[level];
    if (operators === undefined) return this.#parseUnary();
    let left = this.#parseBinary(level + 1);
    for (;;) {
      const operator = operators.find((each) => this.#takes(each));
      if (operator === undefined) return left;
      left = { type: "binary", operator, left, right: this.#parseBinary(level + 1) };
    }
  }

  #parseUnary(): CelTree {
    for (const [sign, type] of [
      ["!", "not"],
      ["-", "negate"],
    ] as const) {
      let count = 0;
      while (this.#takes(sign)) count += 1;
      if (count === 0) continue;
      let tree = this.#parseMember();
      for (; count > 0; count -= 1) {
        tree =
          type === "negate" && tree.type === "literal" && typeof tree.value === "number"
            ? { type: "literal", value: -tree.value }
            : { type, of: tree };
      }
      return tree;
    }
    return this.#parseMember();
  }

  #parseMember(): CelTree {
    let tree = this.#parsePrimary();
    for (;;) {
      if (this.#takes(".")) {
        const name = this.#takeName();
        tree = this.#takes("(")
          ? { type: "call", name, of: tree, inputs: this.#parseList(")") }
          : { type: "select", of: tree, field: name };
      } else if (this.#takes("[")) {
        tree = { type: "index", of: tree, key: this.#parseExpression() };
        this.#expect("]");
      } else if (isPath(tree) && this.#takes("{")) {
        tree = { type: "message", of: tree, entries: this.#parseEntries(() => this.#takeName()) };
      } else {
        return tree;
      }
    }
  }

  #takeName(): string {
    const { type, text } = this.#peek();
    if (type !== "name" || constants.has(text) || text === "in") throw this.#unexpected();
    this.#next += 1;
    return text;
  }

  #parseList(end: ")" | "]"): readonly CelTree[] {
    const elements: CelTree[] = [];
    while (!this.#takes(end)) {
      elements.push(this.#parseExpression());
      if (this.#takes(",")) {
        // A list may end with a comma, the inputs of a function may not.
        if (end === ")" && this.#peek().text === end) throw this.#unexpected();
      } else if (this.#peek().text !== end) throw this.#unexpected();
    }
    return elements;
  }

  #parseEntries<Key>(parseKey: () => Key): readonly CelEntry<Key>[] {
    const entries: CelEntry<Key>[] = [];
    while (!this.#takes("}")) {
      const key = parseKey();
      this.#expect(":");
      entries.push({ key, value: this.#parseExpression() });
      if (!this.#takes(",") && this.#peek().text !== "}") throw this.#unexpected();
    }
    return entries;
  }

  #parsePrimary(): CelTree {
    if (this.#takes("(")) {
      const tree = this.#parseExpression();
      this.#expect(")");
      return tree;
    }
    if (this.#takes("[")) return { type: "list", elements: this.#parseList("]") };
    if (this.#takes("{")) return { type: "map", entries: this.#parseEntries(() => this.#parseExpression()) };
    // A dot before a name keeps it from being looked for in a container; there is none.
    const isRooted = this.#takes(".");
    const token = this.#peek();
    const constant = constants.get(token.text);
    const isName = token.type === "name" && constant === undefined && !reserved.has(token.text);
    if (token.type === "end" || token.type === "sign" || (isRooted && !isName)) throw this.#unexpected();
    if (token.type === "name" && reserved.has(token.text)) throw this.#unexpected();
    this.#next += 1;
    if (token.type === "bytes") return { type: "bytes", value: String(token.value) };
    if (token.type !== "name") return { type: "literal", value: token.value! };
    if (constant !== undefined) return { type: "literal", value: constant };
    if (this.#takes("(")) return this.#parseCall(token);
    return { type: "name", name: token.text };
  }

  #parseCall({ text: name, at }: CelToken): CelTree {
    const inputs = this.#parseList(")");
    if (name === "has" && (inputs.length !== 1 || inputs[0]!.type !== "select")) {
      throw new CelRefusal(`has, at position ${at}, the function has with something else than one field`);
    }
    return { type: "call", name, of: undefined, inputs };
  }
}

/** `a.b.c`, which may be the name of a message. */
function isPath(tree: CelTree): boolean {
  return tree.type === "name" || (tree.type === "select" && isPath(tree.of));
}
