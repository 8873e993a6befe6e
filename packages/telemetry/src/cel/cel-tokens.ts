// The words of a CEL expression (cel-spec: langdef, "Syntax"): names, numbers, texts and signs.

export interface CelToken {
  readonly type: "text" | "bytes" | "number" | "name" | "sign" | "end";
  readonly text: string;
  readonly at: number;
  /** Of a number or a text. */
  readonly value?: string | number;
}

/** What is wrong with an expression, after its name. */
export class CelRefusal extends Error {}

const space = /(?:\s|\/\/[^\n]*)*/y;
const word = new RegExp(
  [
    String.raw`(?<number>0x[0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?|\d+[uU]?)`,
    String.raw`(?<quoted>(?:[rR][bB]?|[bB][rR]?)?(?=["']))`,
    String.raw`(?<name>[A-Za-z_][A-Za-z0-9_]*)`,
    String.raw`(?<sign>&&|\|\||[=!<>]=|[!<>()[\]{},.?:+\-*/%])`,
  ].join("|"),
  "y",
);
const texts = {
  plain: /("""|''')((?:\\[\s\S]|(?!\1)[\s\S])*)\1|(["'])((?:\\.|(?!\3)[^\\\n\r])*)\3/y,
  raw: /("""|''')((?:(?!\1)[\s\S])*)\1|(["'])((?:(?!\3)[^\n\r])*)\3/y,
} as const;

export function celTokens(text: string): readonly CelToken[] {
  const tokens: CelToken[] = [];
  let at = 0;
  for (;;) {
    at = endOf(space, text, at)!;
    if (at === text.length) return [...tokens, { type: "end", text: "the end", at }];
    word.lastIndex = at;
    const groups = word.exec(text)?.groups;
    if (groups === undefined) throw new CelRefusal(`cannot be read at position ${at}`);
    const { number, quoted, name, sign } = groups;
    const start = at;
    if (quoted !== undefined) {
      const isRaw = /r/i.test(quoted);
      const found = matchAt(isRaw ? texts.raw : texts.plain, text, at + quoted.length);
      if (found === undefined) throw new CelRefusal(`cannot be read at position ${at}`);
      at += quoted.length + found[0].length;
      const content = found[2] ?? found[4] ?? "";
      const value = isRaw ? content : unescaped(content, start);
      tokens.push({ type: /b/i.test(quoted) ? "bytes" : "text", text: text.slice(start, at), at: start, value });
    } else {
      at = word.lastIndex;
      const spelling = text.slice(start, at);
      if (number !== undefined) {
        const value = Number(number.replace(/[uU]$/, ""));
        tokens.push({ type: "number", text: spelling, at: start, value });
      } else if (name !== undefined) tokens.push({ type: "name", text: name, at: start });
      else tokens.push({ type: "sign", text: sign!, at: start });
    }
  }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  const found = matchAt(pattern, text, at);
  return found === undefined ? undefined : at + found[0].length;
}

const letters: Readonly<Record<string, string>> = {
  a: "\u0007",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "?": "?",
  '"': '"',
  "'": "'",
  "`": "`",
};
const codePoint = /^(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/;

function unescaped(text: string, at: number): string {
  if (!text.includes("\\")) return text;
  return text.replace(
    /\\([xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|[\s\S])/g,
    (_, escape: string) => {
      const [, byte, short, long, octal] = codePoint.exec(escape) ?? [];
      const hex = byte ?? short ?? long;
      const code = hex === undefined ? (octal === undefined ? undefined : parseInt(octal, 8)) : parseInt(hex, 16);
      const character =
        code === undefined ? letters[escape] : code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
      if (character === undefined) {
        throw new CelRefusal(`has the unknown escape \\${escape} in the text at position ${at}`);
      }
      return character;
    },
  );
}
