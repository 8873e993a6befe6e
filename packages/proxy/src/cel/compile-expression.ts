// A CEL expression as a function on one request: Envoy's language of conditions
// (extensions.access_loggers.filters.cel.v3), as far as operators, functions and attributes are known here. Whatever is
// not is an error of the configuration.
import { type CelSubject, type ReadAttribute, attributes } from "./attributes.ts";
import { type CelValue, areEqual, isHeaders, isList, order } from "./cel-value.ts";
import { type BinaryOperator, type CelTree, parseExpression } from "./parse-expression.ts";

export type CompiledExpression =
  | { readonly ok: true; readonly isTrue: (subject: CelSubject) => boolean }
  | { readonly ok: false; readonly reason: string };

/** What does not come to `true`, be it text or an error, does not hold (Envoy: CELAccessLogExtensionFilter). */
export function compileExpression(text: string): CompiledExpression {
  const parsed = parseExpression(text);
  if (!parsed.ok) return parsed;
  const reasons: string[] = [];
  const value = compileTree(parsed.tree, reasons);
  if (reasons.length > 0) return { ok: false, reason: reasons.join("; ") };
  return { ok: true, isTrue: (subject) => value(subject) === true };
}

function compileTree(tree: CelTree, reasons: string[]): ReadAttribute {
  switch (tree.type) {
    case "literal": {
      const { value } = tree;
      return () => value;
    }
    case "list": {
      const elements = tree.elements.map((element) => compileTree(element, reasons));
      return (subject) => {
        const values = elements.map((element) => element(subject));
        return values.includes(undefined) ? undefined : values;
      };
    }
    case "not": {
      const of = compileTree(tree.of, reasons);
      return (subject) => {
        const value = of(subject);
        return typeof value === "boolean" ? !value : undefined;
      };
    }
    case "binary":
      return compileBinary(tree.operator, compileTree(tree.left, reasons), compileTree(tree.right, reasons));
    case "call":
      return compileCall(tree, reasons);
    case "index": {
      const of = compileTree(tree.of, reasons);
      const key = compileTree(tree.key, reasons);
      return (subject) => elementOf(of(subject), key(subject));
    }
    case "name":
    case "select":
      return compileAttribute(tree, reasons);
  }
}

function elementOf(value: CelValue, key: CelValue): CelValue {
  if (isList(value)) return typeof key === "number" ? value[key] : undefined;
  return isHeaders(value) && typeof key === "string" ? value.get(key) : undefined;
}

function compileAttribute(tree: CelTree & { type: "name" | "select" }, reasons: string[]): ReadAttribute {
  const path = pathOf(tree);
  const attribute = path === undefined ? undefined : attributes.get(path);
  if (attribute !== undefined) return attribute;
  // A map's field may be named behind a dot as well.
  const outer = tree.type === "select" && pathOf(tree.of);
  if (tree.type === "select" && typeof outer === "string" && outer.endsWith(".headers")) {
    const of = compileTree(tree.of, reasons);
    return (subject) => elementOf(of(subject), tree.field);
  }
  reasons.push(`the attribute ${path ?? "behind a value"} is not supported`);
  return () => undefined;
}

/** `a.b.c`; undefined for what is no plain path. */
function pathOf(tree: CelTree): string | undefined {
  if (tree.type === "name") return tree.name;
  if (tree.type !== "select") return undefined;
  const before = pathOf(tree.of);
  return before === undefined ? undefined : `${before}.${tree.field}`;
}

const comparisons: Readonly<
  Record<Exclude<BinaryOperator, "&&" | "||">, (left: CelValue, right: CelValue) => CelValue>
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
    return isHeaders(right) && typeof left === "string" ? right.get(left) !== undefined : undefined;
  },
};

function ordered(by: number | undefined, test: (by: number) => boolean): boolean | undefined {
  return by === undefined ? undefined : test(by);
}

/** One side decides alone where it can, whatever becomes of the other (cel-spec: "Logical Operators"). */
function compileBinary(operator: BinaryOperator, left: ReadAttribute, right: ReadAttribute): ReadAttribute {
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

function compileCall(tree: CelTree & { type: "call" }, reasons: string[]): ReadAttribute {
  const { name, of, inputs } = tree;
  const [input] = inputs;
  if (name === "has" && of === undefined && inputs.length === 1 && input?.type === "select") {
    const value = compileTree(input, reasons);
    return (subject) => value(subject) !== undefined;
  }
  const test = textTests.get(name);
  if (test !== undefined && of !== undefined && input !== undefined && inputs.length === 1) {
    const text = compileTree(of, reasons);
    const other = compileTree(input, reasons);
    return (subject) => {
      const whole = text(subject);
      const part = other(subject);
      return typeof whole === "string" && typeof part === "string" ? test(whole, part) : undefined;
    };
  }
  reasons.push(`the function ${name} is not supported in this form`);
  return () => undefined;
}
