// What an operator has chosen, laid over the defaults as Helm lays it, and checked: a value that is not there is an
// error with the name that was probably meant, where Helm would pass over it.
import { nearestName } from "@tulle/config";
import { defaultsOf, type Fields, type Group, isLeaf, type Leaf, type Values, valueTable } from "./values.ts";

export interface CheckedValues {
  readonly values: Values;
  /** What is wrong, each in a sentence that begins with the value's path. */
  readonly problems: readonly string[];
}

/** Later ones win. */
export function valuesOf(given: readonly Fields[]): CheckedValues {
  const values = given.reduce(laidOver, defaultsOf(valueTable)) as Values;
  return { values, problems: problemsOf(values, valueTable, "") };
}

/** Mappings entry by entry, all else as a whole; null takes away what was there. */
export function laidOver(under: Fields, over: Fields): Fields {
  const result = new Map(Object.entries(under));
  for (const [name, value] of Object.entries(over)) {
    const before = result.get(name);
    if (value === null) result.delete(name);
    else result.set(name, isFields(before) && isFields(value) ? laidOver(before, value) : value);
  }
  // Each as a property of its own, whatever its name.
  return Object.fromEntries(result);
}

function problemsOf(values: Fields, group: Group, path: string): readonly string[] {
  const unknown = Object.keys(values).filter((name) => !Object.hasOwn(group, name));
  return [
    ...unknown.map((name) => {
      const near = nearestName(name, Object.keys(group));
      const hint = near === undefined ? `there are ${Object.keys(group).join(", ")}` : `did you mean ${path}${near}?`;
      return `${path}${name}: there is no such value; ${hint}`;
    }),
    ...Object.entries(group).flatMap(([name, entry]): readonly string[] => {
      const value = values[name];
      const at = `${path}${name}`;
      if (isLeaf(entry)) return problemOf(value, entry, at);
      return isFields(value) ? problemsOf(value, entry, `${at}.`) : [`${at}: it must be a mapping`];
    }),
  ];
}

const forms: Readonly<Record<Leaf["type"], { readonly what: string; readonly is: (value: unknown) => boolean }>> = {
  text: { what: "a text", is: (value) => typeof value === "string" },
  whole: { what: "a whole number", is: (value) => Number.isSafeInteger(value) && (value as number) >= 0 },
  switch: { what: "true or false", is: (value) => typeof value === "boolean" },
  mapping: { what: "a mapping", is: isFields },
  list: { what: "a list", is: Array.isArray },
};

function problemOf(value: unknown, { type, choices }: Leaf, path: string): readonly string[] {
  const { what, is } = forms[type];
  if (!is(value))
    return [`${path}: it must be ${what}${value === undefined ? "" : `, and not ${JSON.stringify(value)}`}`];
  if (choices === undefined || choices.includes(value as string)) return [];
  return [`${path}: it must be one of ${choices.join(", ")}, and not ${JSON.stringify(value)}`];
}

/** Helm's `--set`: `a.b=c,d=true,e[0].f=1,g={x,y}`, a backslash before what stands for itself. @throws {Error} */
export function parseSet(text: string): Fields {
  let result: Fields = {};
  for (const part of splitOutside(text, ",")) {
    const [path = "", ...rest] = splitOutside(part, "=");
    if (rest.length === 0 || path === "") throw new Error(`"${part}" is no <path>=<value>`);
    const steps = splitOutside(path, ".").flatMap((step) => {
      const [name = "", ...indexes] = step.split(/\[(\d+)\]/).filter((each) => each !== "");
      return [unescaped(name), ...indexes.map(Number)];
    });
    result = withValue(result, steps, valueText(rest.join("="))) as Fields;
  }
  return result;
}

/** Where `separator` stands outside of braces, and without a backslash. */
function splitOutside(text: string, separator: string): readonly string[] {
  const parts = [""];
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const letter = text[index]!;
    if (letter === "\\") {
      parts[parts.length - 1] += letter + (text[index + 1] ?? "");
      index += 1;
      continue;
    }
    if (letter === "{") depth += 1;
    if (letter === "}") depth -= 1;
    if (letter === separator && depth === 0) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts;
}

function valueText(text: string): unknown {
  const within = /^\{(.*)\}$/s.exec(text)?.[1];
  if (within !== undefined) return within === "" ? [] : splitOutside(within, ",").map(valueText);
  if (text === "true" || text === "false") return text === "true";
  if (text === "null") return null;
  // As Helm: 0 is a number, and 007 is none.
  if (/^(?:0|-?[1-9]\d{0,14})$/.test(text)) return Number(text);
  return unescaped(text);
}

const unescaped = (text: string): string => text.replaceAll(/\\(.)/gs, "$1");

function withValue(under: unknown, [step, ...rest]: readonly (string | number)[], value: unknown): unknown {
  if (step === undefined) return value;
  if (typeof step === "number") {
    const items = Array.isArray(under) ? [...(under as readonly unknown[])] : [];
    items[step] = withValue(items[step], rest, value);
    return Array.from(items, (item) => item ?? null);
  }
  const fields = isFields(under) ? under : {};
  return { ...fields, [step]: withValue(fields[step], rest, value) };
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
