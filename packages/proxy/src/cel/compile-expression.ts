// A CEL expression as a function on one request: Envoy's language of conditions
// (extensions.access_loggers.filters.cel.v3) and of Istio's dimensions (stats.PluginConfig), as far as operators,
// functions and attributes are known here. Whatever is not is told when the configuration comes.
import { type CelSubject, type ReadAttribute, attributes } from "./attributes.ts";
import { type CelValue, areEqual, celText, isList, isMap, order } from "./cel-value.ts";
import { compileRe2 } from "./re2.ts";
import { type BinaryOperator, type CelTree, parseExpression } from "@tulle/telemetry/cel";

export type CompiledExpression =
  | {
      readonly ok: true;
      readonly isTrue: (subject: CelSubject) => boolean;
      readonly value: ReadAttribute;
      /** Attributes that it reads. */
      readonly attributes: ReadonlySet<string>;
    }
  | { readonly ok: false; readonly reason: string };

interface Compilation {
  readonly known: ReadonlyMap<string, ReadAttribute>;
  readonly used: Set<string>;
  readonly reasons: string[];
}

/**
 * What does not come to `true`, be it text or an error, does not hold (Envoy: CELAccessLogExtensionFilter). `more` has
 * attributes that only its caller knows.
 */
export function compileExpression(
  text: string,
  more: ReadonlyMap<string, ReadAttribute> = new Map(),
): CompiledExpression {
  const parsed = parseExpression(text);
  return parsed.ok ? compileTreeExpression(parsed.tree, more) : parsed;
}

export function compileTreeExpression(
  tree: CelTree,
  more: ReadonlyMap<string, ReadAttribute> = new Map(),
): CompiledExpression {
  const { unsupported, ...expression } = evaluated(tree, more);
  return unsupported === undefined ? expression : { ok: false, reason: unsupported };
}

type LogExpression = Exclude<CompiledExpression, { ok: false }> & { readonly unsupported: string | undefined };

/**
 * For logs, in which an Envoy looks for attributes with each line: what cannot be evaluated here has no value, as what
 * is not there has none in Envoy. `unsupported` says what that is.
 */
export function compileLogExpression(text: string): LogExpression | Exclude<CompiledExpression, { ok: true }> {
  const parsed = parseExpression(text);
  return parsed.ok ? evaluated(parsed.tree, new Map()) : parsed;
}

function evaluated(tree: CelTree, more: ReadonlyMap<string, ReadAttribute>): LogExpression {
  const known = more.size === 0 ? attributes : new Map([...attributes, ...more]);
  const compilation: Compilation = { known, used: new Set(), reasons: [] };
  const value = compileTree(tree, compilation);
  const { used, reasons } = compilation;
  const unsupported = reasons.length === 0 ? undefined : reasons.join("; ");
  return { ok: true, isTrue: (subject) => value(subject) === true, value, attributes: used, unsupported };
}

function compileTree(tree: CelTree, compilation: Compilation): ReadAttribute {
  switch (tree.type) {
    case "literal": {
      const { value } = tree;
      return () => value;
    }
    case "list": {
      const elements = tree.elements.map((element) => compileTree(element, compilation));
      return (subject) => {
        const values = elements.map((element) => element(subject));
        return values.includes(undefined) ? undefined : values;
      };
    }
    case "not": {
      const of = compileTree(tree.of, compilation);
      return (subject) => {
        const value = of(subject);
        return typeof value === "boolean" ? !value : undefined;
      };
    }
    case "binary":
      return compileBinary(tree, compilation);
    case "call":
      return compileCall(tree, compilation);
    case "index": {
      const of = compileTree(tree.of, compilation);
      const key = compileTree(tree.key, compilation);
      return (subject) => elementOf(of(subject), key(subject));
    }
    case "name":
    case "select":
      return compileAttribute(tree, compilation);
    case "conditional": {
      const condition = compileTree(tree.condition, compilation);
      const whenTrue = compileTree(tree.whenTrue, compilation);
      const whenFalse = compileTree(tree.whenFalse, compilation);
      return (subject) => {
        const holds = condition(subject);
        return typeof holds === "boolean" ? (holds ? whenTrue : whenFalse)(subject) : undefined;
      };
    }
    case "bytes":
    case "map":
    case "message":
    case "negate":
      compilation.reasons.push(`${unevaluated[tree.type]} are not supported`);
      return () => undefined;
  }
}

const unevaluated = {
  bytes: "texts of bytes",
  map: "maps",
  message: "messages",
  negate: "negative values that are no numbers",
} as const;

function elementOf(value: CelValue, key: CelValue): CelValue {
  if (isList(value)) return typeof key === "number" ? value[key] : undefined;
  return isMap(value) && typeof key === "string" ? value.get(key) : undefined;
}

function compileAttribute(tree: CelTree & { type: "name" | "select" }, compilation: Compilation): ReadAttribute {
  const path = pathOf(tree);
  const attribute = path === undefined ? undefined : compilation.known.get(path);
  if (path !== undefined && attribute !== undefined) {
    compilation.used.add(path);
    return attribute;
  }
  // A map's field may be named behind a dot as well.
  if (tree.type === "select" && isMapLike(tree.of, compilation.known)) {
    const of = compileTree(tree.of, compilation);
    return (subject) => elementOf(of(subject), tree.field);
  }
  compilation.reasons.push(`the attribute ${path ?? "behind a value"} is not supported`);
  return () => undefined;
}

/** Maps of headers and of metadata, and what is in the latter. */
const mapName = /(^node|_peer|\.(headers|trailers|filter_metadata))$/;

function isMapLike(tree: CelTree, known: ReadonlyMap<string, ReadAttribute>): boolean {
  if (tree.type === "index") return true;
  const path = pathOf(tree);
  if (path === undefined || (tree.type !== "select" && tree.type !== "name")) return false;
  if (known.has(path)) return mapName.test(path);
  return tree.type === "select" && isMapLike(tree.of, known) && !(pathOf(tree.of) ?? "").endsWith("ers");
}

/** `a.b.c`; undefined for what is no plain path. */
function pathOf(tree: CelTree): string | undefined {
  if (tree.type === "name") return tree.name;
  if (tree.type !== "select") return undefined;
  const before = pathOf(tree.of);
  return before === undefined ? undefined : `${before}.${tree.field}`;
}

type Arithmetic = "+" | "-" | "*" | "/" | "%";

const comparisons: Readonly<
  Record<Exclude<BinaryOperator, "&&" | "||" | Arithmetic>, (left: CelValue, right: CelValue) => CelValue>
> = {
  "==": areEqual,
  "!=": (left, right) => {
    const equal = areEqual(left, right);
    return equal === undefined ? undefined : !equal;
  },
  "<": (left, right) => ordered(order(left, right), (by) => by < 0),
  "<=": (left, right) => ordered(order(left, right), (by) => by <= 0),
  ">": (left, right) => ordered(order(left, right), (by) => by > 0),
  ">=": (left, right) => ordered(order(left, right), (by) => by >= 0),
  in: (left, right) => {
    if (left === undefined) return undefined;
    if (isList(right)) return right.some((element) => areEqual(left, element) === true);
    return isMap(right) && typeof left === "string" ? right.get(left) !== undefined : undefined;
  },
};

function ordered(by: number | undefined, test: (by: number) => boolean): boolean | undefined {
  return by === undefined ? undefined : test(by);
}

function isArithmetic(operator: BinaryOperator): operator is Arithmetic {
  return "+-*/%".includes(operator);
}

function sum(left: CelValue, right: CelValue): CelValue {
  if (typeof left === "string" && typeof right === "string") return left + right;
  return typeof left === "number" && typeof right === "number" ? left + right : undefined;
}

/** One side decides alone where it can, whatever becomes of the other (cel-spec: "Logical Operators"). */
function compileBinary(tree: CelTree & { type: "binary" }, compilation: Compilation): ReadAttribute {
  const { operator } = tree;
  const left = compileTree(tree.left, compilation);
  const right = compileTree(tree.right, compilation);
  if (operator === "+") return (subject) => sum(left(subject), right(subject));
  if (isArithmetic(operator)) {
    compilation.reasons.push(`the operator ${operator} is not supported`);
    return () => undefined;
  }
  if (operator === "&&" || operator === "||") {
    const decides = operator === "||";
    return (subject) => {
      const first = left(subject);
      if (first === decides) return decides;
      const second = right(subject);
      if (second === decides) return decides;
      return first === !decides && second === !decides ? !decides : undefined;
    };
  }
  const compare = comparisons[operator];
  return (subject) => compare(left(subject), right(subject));
}

/** Of a text, with another one. */
const textTests: ReadonlyMap<string, (text: string, other: string) => boolean> = new Map([
  ["startsWith", (text: string, other: string) => text.startsWith(other)],
  ["endsWith", (text: string, other: string) => text.endsWith(other)],
  ["contains", (text: string, other: string) => text.includes(other)],
]);

function compileCall(tree: CelTree & { type: "call" }, compilation: Compilation): ReadAttribute {
  const { name, of, inputs } = tree;
  const [input] = inputs;
  if (name === "has" && of === undefined && inputs.length === 1 && input?.type === "select") {
    const value = compileTree(input, compilation);
    return (subject) => value(subject) !== undefined;
  }
  const test = textTests.get(name);
  if (test !== undefined && of !== undefined && input !== undefined && inputs.length === 1) {
    const text = compileTree(of, compilation);
    const other = compileTree(input, compilation);
    return (subject) => {
      const whole = text(subject);
      const part = other(subject);
      return typeof whole === "string" && typeof part === "string" ? test(whole, part) : undefined;
    };
  }
  if (name === "matches" && of !== undefined && input?.type === "literal" && inputs.length === 1) {
    return compileMatches(of, String(input.value), compilation);
  }
  const conversion = conversions.get(name);
  const converted = of ?? input;
  if (conversion !== undefined && converted !== undefined && inputs.length === (of === undefined ? 1 : 0)) {
    const value = compileTree(converted, compilation);
    return (subject) => conversion(value(subject));
  }
  compilation.reasons.push(`the function ${name} is not supported in this form`);
  return () => undefined;
}

/** Of one value, which may stand before the dot. */
const conversions: ReadonlyMap<string, (value: CelValue) => CelValue> = new Map<string, (value: CelValue) => CelValue>([
  ["string", celText],
  ["int", (value) => (celText(value) === undefined ? undefined : wholeNumber(Number(value)))],
  [
    "size",
    (value) => (isList(value) ? value.length : typeof value === "string" ? Array.from(value).length : undefined),
  ],
]);

function wholeNumber(value: number): number | undefined {
  return Number.isFinite(value) ? Math.trunc(value) : undefined;
}

/** RE2, anywhere in the text (cel-spec: `matches`). */
function compileMatches(of: CelTree, pattern: string, compilation: Compilation): ReadAttribute {
  const value = compileTree(of, compilation);
  try {
    const regex = compileRe2(pattern);
    return (subject) => {
      const text = value(subject);
      return typeof text === "string" ? regex.matcher(text).find() : undefined;
    };
  } catch {
    compilation.reasons.push(`the regular expression ${pattern} is none of RE2`);
    return () => undefined;
  }
}
