// Labels or annotations of a pod as Kubernetes writes them into a file of a `downwardAPI` volume: a line `name="value"`
// each, the value quoted as Go quotes it (strconv.Quote).

/** Of those for which `isWanted`. @throws {SyntaxError} naming the line */
export function parseDownwardFile(
  text: string,
  isWanted: (name: string) => boolean = () => true,
): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const equals = line.indexOf("=");
    const name = line.slice(0, equals);
    if (equals <= 0 || !isWanted(name)) continue;
    const value = unquote(line.slice(equals + 1));
    if (value === undefined) throw new SyntaxError(`${name} has no quoted value`);
    found[name] = value;
  }
  return found;
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
  '"': '"',
};

const quoted = /^"((?:[^"\\]|\\.)*)"$/s;
/** A byte that is no UTF-8 is written by its number, as are characters that nobody sees. */
const escape = /\\(?:x([\da-f]{2})|u([\da-f]{4})|U([\da-f]{8})|(.))/g;

function unquote(text: string): string | undefined {
  const inner = quoted.exec(text)?.[1];
  if (inner === undefined) return undefined;
  let isSound = true;
  const value = inner.replaceAll(escape, (_, x?: string, u?: string, long?: string, letter?: string) => {
    const code = Number.parseInt(x ?? u ?? long ?? "", 16);
    const character = letter === undefined ? codePoint(code) : letters[letter];
    isSound &&= character !== undefined;
    return character ?? "";
  });
  return isSound ? value : undefined;
}

function codePoint(code: number): string | undefined {
  return code <= 0x10_ff_ff ? String.fromCodePoint(code) : undefined;
}
