// The text of a CEL expression as a tree (cel-spec: langdef, "Syntax"). Arithmetic, conditionals, macros, messages and
// raw, byte or triple-quoted literals are not read.

export type CelTree =
  | { readonly type: "literal"; readonly value: string | number | boolean | null }
  | { readonly type: "name"; readonly name: string }
  | { readonly type: "select"; readonly of: CelTree; readonly field: string }
  | { readonly type: "index"; readonly of: CelTree; readonly key: CelTree }
  | { readonly type: "list"; readonly elements: readonly CelTree[] }
  | { readonly type: "not"; readonly of: CelTree }
  | { readonly type: "binary"; readonly operator: BinaryOperator; readonly left: CelTree; readonly right: CelTree }
  /** `of` is what stands before the dot; undefined = a function. */
  | {
      readonly type: "call";
      readonly name: string;
      readonly of: CelTree | undefined;
      readonly inputs: readonly CelTree[];
    };

export type BinaryOperator = "&&" | "||" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "in";

export type ParsedExpression =
  | { readonly ok: true; readonly tree: CelTree }
  | { readonly ok: false; readonly reason: string };

const maxExpressionLength = 2048;
/** Of parentheses and the like in one another. */
const maxDepth = 64;

interface Token {
  readonly type: "string" | "number" | "name" | "sign" | "end";
  readonly text: string;
  readonly at: number;
}

class Refusal extends Error {}

const tokenPattern =
  /\s*(?:(?<number>\d+(?:\.\d+)?)|(?<name>[A-Za-z_][A-Za-z0-9_]*)|(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?<sign>&&|\|\||[=!<>]=|[!<>()[\],.-]))/y;
const trailingSpace = /\s*$/y;

/** Whole expressions only: what is left over is an error. */
export function parseExpression(text: string): ParsedExpression {
  try {
    if (text.length > maxExpressionLength) throw new Refusal(`is longer than ${maxExpressionLength} characters`);
    const parser = new Parser(tokensOf(text));
    return { ok: true, tree: parser.parseAll() };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.message };
    throw error;
  }
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    trailingSpace.lastIndex = at;
    if (trailingSpace.test(text)) return [...tokens, { type: "end", text: "the end", at: text.length }];
    tokenPattern.lastIndex = at;
    const groups = tokenPattern.exec(text)?.groups;
    if (groups === undefined) throw new Refusal(`cannot be read at position ${at}`);
    at = tokenPattern.lastIndex;
    for (const type of ["number", "name", "string", "sign"] as const) {
      const found = groups[type];
      if (found !== undefined) tokens.push({ type, text: found, at: at - found.length });
    }
  }
}

const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  "\\": "\\",
  '"': '"',
  "'": "'",
  "`": "`",
};

function unquoted({ text, at }: Token): string {
  return text.slice(1, -1).replace(/\\(.)/g, (_, letter: string) => {
    const character = escapes[letter];
    if (character === undefined) throw new Refusal(`has the unknown escape \\${letter} in the text at position ${at}`);
    return character;
  });
}

const relations: ReadonlySet<string> = new Set<BinaryOperator>(["==", "!=", "<", "<=", ">", ">=", "in"]);
const constants: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
]);

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  parseAll(): CelTree {
    const tree = this.#parseOr();
    if (this.#peek().type !== "end") throw this.#unexpected();
    return tree;
  }

  #peek(): Token {
    return this.#tokens[this.#next]!;
  }

  #unexpected(): Refusal {
    const { text, at } = this.#peek();
    return new Refusal(`has something that is not expected at position ${at}: ${text}`);
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

  #parseOr(): CelTree {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new Refusal(`has more than ${maxDepth} levels`);
    let left = this.#parseAnd();
    while (this.#takes("||")) left = { type: "binary", operator: "||", left, right: this.#parseAnd() };
    this.#depth -= 1;
    return left;
  }

  #parseAnd(): CelTree {
    let left = this.#parseRelation();
    while (this.#takes("&&")) left = { type: "binary", operator: "&&", left, right: this.#parseRelation() };
    return left;
  }

  #parseRelation(): CelTree {
    let left = this.#parseUnary();
    while (relations.has(this.#peek().text) && this.#peek().type !== "string") {
      const operator = this.#peek().text as BinaryOperator;
      this.#next += 1;
      left = { type: "binary", operator, left, right: this.#parseUnary() };
    }
    return left;
  }

  #parseUnary(): CelTree {
    let negations = 0;
    while (this.#takes("!")) negations += 1;
    let tree = this.#parseMember();
    for (; negations > 0; negations -= 1) tree = { type: "not", of: tree };
    return tree;
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
        tree = { type: "index", of: tree, key: this.#parseOr() };
        this.#expect("]");
      } else {
        return tree;
      }
    }
  }

  #takeName(): string {
    const { type, text } = this.#peek();
    if (type !== "name") throw this.#unexpected();
    this.#next += 1;
    return text;
  }

  #parseList(end: string): readonly CelTree[] {
    const elements: CelTree[] = [];
    if (this.#takes(end)) return elements;
    do elements.push(this.#parseOr());
    while (this.#takes(","));
    this.#expect(end);
    return elements;
  }

  #parsePrimary(): CelTree {
    if (this.#takes("(")) {
      const tree = this.#parseOr();
      this.#expect(")");
      return tree;
    }
    if (this.#takes("[")) return { type: "list", elements: this.#parseList("]") };
    const isNegative = this.#takes("-");
    const token = this.#peek();
    if (isNegative && token.type !== "number") throw this.#unexpected();
    if (token.type === "end" || token.type === "sign" || token.text === "in") throw this.#unexpected();
    this.#next += 1;
    if (token.type === "number") return { type: "literal", value: Number(token.text) * (isNegative ? -1 : 1) };
    if (token.type === "string") return { type: "literal", value: unquoted(token) };
    const constant = constants.get(token.text);
    if (constant !== undefined) return { type: "literal", value: constant };
    if (this.#takes("(")) return { type: "call", name: token.text, of: undefined, inputs: this.#parseList(")") };
    return { type: "name", name: token.text };
  }
}
