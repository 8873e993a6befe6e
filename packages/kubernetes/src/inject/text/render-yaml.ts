// Values as YAML that YAML 1.1 and 1.2 read alike: to kubectl's parser `on` and `1_000` are something else than text.

/** Lines of a value in block style, without indentation. */
export function blockLines(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0)
    return value.flatMap((item: unknown) => {
      const [first = "", ...rest] = blockLines(item);
      return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
    });
  if (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0)
    return Object.entries(value).flatMap(([key, each]) => pairLines(key, each));
  return [scalar(value)];
}

/** `key: value`, or the key and the lines below it. Items of a list stand right below, as kubectl prints them. */
export function pairLines(key: string, value: unknown): readonly string[] {
  const lines = blockLines(value);
  const isCollection = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  if (!isCollection) return [`${scalar(key)}: ${lines[0]!}`];
  const indent = Array.isArray(value) ? "" : "  ";
  return [`${scalar(key)}:`, ...lines.map((line) => indent + line)];
}

/** JSON, which is flow style of both versions. */
export function flowText(value: unknown): string {
  return JSON.stringify(value);
}

const plain = /^[A-Za-z/][\w./-]*$/;
/** Texts that are something else without quotes in YAML 1.1 or 1.2. */
const notPlain = /^(?:y|n|yes|no|on|off|true|false|null|nan|inf)$/i;

function scalar(value: unknown): string {
  if (typeof value !== "string") return flowText(value);
  if (plain.test(value) && !notPlain.test(value)) return value;
  // JSON in JSON's quotes is hard to read.
  return /^[\u0020-\u007e]*$/.test(value) && value.includes('"') ? `'${value.replaceAll("'", "''")}'` : flowText(value);
}
