/**
 * Checks a parsed document against a schema: tells every problem with its path, and gives back the value as the types
 * promise it (defaults filled in, nulls taken for absent, enums in their listed spelling).
 */
import { isDeepStrictEqual } from "node:util";
import type { FindingCode } from "../findings/finding.ts";
import { nearestName } from "../findings/nearest-name.ts";
import { quote, type Format } from "./formats.ts";
import type { EnumNode, FieldNode, ListNode, MapNode, Node, NumberNode, ObjectNode, Report } from "./schema.ts";
import type { Path } from "../findings/places.ts";

export interface Problem {
  readonly code: FindingCode;
  readonly severity: "error" | "warning";
  readonly path: Path;
  readonly message: string;
  readonly suggestion?: string;
}

export interface Checked {
  readonly value: unknown;
  /** True when a problem is an error: the value then breaks the promise of the types. */
  readonly failed: boolean;
  readonly problems: readonly Problem[];
}

/**
 * Problems of each severity that are told of one document; a file that is something else altogether would give
 * thousands.
 */
export const maxProblems = 50;

export function check(node: Node, value: unknown, options: { readonly unknownField: "error" | "warning" }): Checked {
  const checker = new Checker(options.unknownField);
  const checked = checker.check(node, value, [], []);
  return { value: checked, failed: checker.failed, problems: [...checker.problems, ...checker.leftOut()] };
}

class Checker {
  readonly problems: Problem[] = [];
  failed = false;
  /** All that there are of each severity, told or not. */
  readonly #counts = { error: 0, warning: 0 };
  readonly #unknownField: "error" | "warning";
  /** Above zero inside a field that is not implemented: its parts are not warned of one by one. */
  #insideNotImplemented = 0;
  /** Above zero inside a field whose values are nobody's business. */
  #insideSecret = 0;

  constructor(unknownField: "error" | "warning") {
    this.#unknownField = unknownField;
  }

  check(node: Node, value: unknown, path: Path, parents: readonly ObjectNode[]): unknown {
    switch (node.type) {
      case "string": {
        if (typeof value !== "string") return this.#wrongType("text", value, path);
        this.#checkFormat(node.format, value, path);
        return value;
      }
      case "enum":
        return this.#checkEnum(node, value, path);
      case "integer":
      case "number":
        return this.#checkNumber(node, value, path);
      case "boolean":
        return typeof value === "boolean" ? value : this.#wrongType("true or false", value, path);
      case "intOrString":
        return this.#checkIntOrString(value, path);
      case "json":
        return value;
      case "list":
        return this.#checkList(node, value, path, parents);
      case "map":
        return this.#checkMap(node, value, path, parents);
      case "object":
        return this.#checkObject(node, value, path, parents);
      default:
        return node satisfies never;
    }
  }

  #checkFormat(format: Format | undefined, value: string, path: Path): void {
    const wrong = format?.check(value);
    if (wrong !== undefined) this.#error(path, wrong);
    const odd = wrong === undefined ? format?.warn?.(value) : undefined;
    if (odd !== undefined) this.#add("IST0133", "warning", path, odd);
  }

  #checkEnum(node: EnumNode, value: unknown, path: Path): unknown {
    if (typeof value !== "string") return this.#wrongType(`one of ${node.values.join(", ")}`, value, path);
    const known = node.values.find(
      (candidate) => candidate === value || (node.ignoreCase && candidate === value.toUpperCase()),
    );
    if (known === undefined) {
      const nearest = this.#isFull("error") ? undefined : nearestName(value, node.values);
      const suggestion = nearest === undefined ? undefined : `Did you mean ${nearest}?`;
      this.#error(path, `${quote(value)} is not one of ${node.values.join(", ")}`, suggestion);
      return value;
    }
    if (node.notImplemented.includes(known) && this.#insideNotImplemented === 0) {
      this.#add("TUL0001", "warning", path, `${known} is not implemented yet and has no effect`);
    }
    const instead = node.deprecated[known];
    if (instead !== undefined) this.#add("IST0002", "warning", path, `${known} is deprecated`, `Write ${instead}.`);
    return known;
  }

  #checkNumber(node: NumberNode, value: unknown, path: Path): unknown {
    const wanted = node.type === "integer" ? "a whole number" : "a number";
    if (typeof value !== "number" || !Number.isFinite(value)) return this.#wrongType(wanted, value, path);
    if (node.type === "integer" && !Number.isSafeInteger(value)) return this.#wrongType(wanted, value, path);
    const { minimum = -Infinity, maximum = Infinity } = node;
    if (value < minimum || value > maximum) {
      const range =
        maximum === Infinity
          ? `at least ${minimum}`
          : minimum === -Infinity
            ? `at most ${maximum}`
            : `from ${minimum} to ${maximum}`;
      this.#error(path, `${value} is out of range: it has to be ${range}`);
    }
    return value;
  }

  #checkIntOrString(value: unknown, path: Path): unknown {
    if (typeof value === "number" && Number.isSafeInteger(value)) {
      if (value < 1 || value > 65_535) this.#error(path, `${value} is out of range: it has to be from 1 to 65535`);
      return value;
    }
    if (typeof value !== "string") return this.#wrongType("a port number or a port name", value, path);
    // Kubernetes takes digits in quotes for a name and then refuses them, since a name needs a letter.
    const isName = value.length <= 15 && /[a-z]/.test(value) && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(value);
    if (!isName) {
      this.#error(path, `${quote(value)} is neither a port number nor a port name`, numberInQuotes(value));
    }
    return value;
  }

  #checkList(node: ListNode, value: unknown, path: Path, parents: readonly ObjectNode[]): unknown {
    if (!Array.isArray(value)) return this.#wrongType("a list", value, path);
    const items = value.map((item, index) => this.check(node.items, item, [...path, index], parents));
    if (items.length < node.minItems) this.#error(path, "the list is empty; it needs at least one entry");
    if (node.uniqueBy !== undefined) this.#checkUnique(items, node.uniqueBy, path);
    return items;
  }

  #checkUnique(items: readonly unknown[], field: string, path: Path): void {
    const seen = new Map<unknown, number>();
    items.forEach((item, index) => {
      if (!isMapping(item) || item[field] === undefined) return;
      const first = seen.get(item[field]);
      if (first === undefined) seen.set(item[field], index);
      else this.#error([...path, index, field], `the ${field} is the same as that of entry ${first + 1}`);
    });
  }

  #checkMap(node: MapNode, value: unknown, path: Path, parents: readonly ObjectNode[]): unknown {
    if (!isMapping(value)) return this.#wrongType("a mapping", value, path);
    const entries: [string, unknown][] = [];
    for (const [key, item] of Object.entries(value)) {
      if (item === null || item === undefined) {
        const hint =
          node.values.type === "object" ? "Write {} if presence alone is meant." : 'Write "" for an empty text.';
        this.#error([...path, key], `${quote(key)} has no value`, hint);
        continue;
      }
      this.#checkFormat(node.keyFormat, key, [...path, key]);
      entries.push([key, this.check(node.values, item, [...path, key], parents)]);
    }
    return Object.fromEntries(entries);
  }

  #checkObject(node: ObjectNode, value: unknown, path: Path, parents: readonly ObjectNode[]): unknown {
    if (!isMapping(value)) return this.#wrongType("a mapping", value, path);
    const errorsBefore = this.#counts.error;
    const entries: [string, unknown][] = [];
    for (const [name, item] of Object.entries(value)) {
      const field = Object.hasOwn(node.fields, name) ? node.fields[name] : undefined;
      if (field === undefined) {
        if (node.unread.includes(name)) entries.push([name, item]);
        else this.#unknown(node, name, path, parents);
        continue;
      }
      if (item === null || item === undefined) continue;
      const fieldPath = [...path, name];
      if (field.deprecated !== undefined) {
        this.#add("IST0002", "warning", fieldPath, `"${name}" is deprecated`, `Write "${field.deprecated}".`);
      }
      const isNotImplemented = field.status !== "implemented";
      if (isNotImplemented && this.#insideNotImplemented === 0) this.#tellStatus(name, field, item, fieldPath);
      if (isNotImplemented) this.#insideNotImplemented += 1;
      if (field.secret === true) this.#insideSecret += 1;
      entries.push([name, this.check(field.node, item, fieldPath, [...parents, node])]);
      if (field.secret === true) this.#insideSecret -= 1;
      if (isNotImplemented) this.#insideNotImplemented -= 1;
    }
    const checked = Object.fromEntries(entries);
    this.#checkPresence(node, checked, path, this.#counts.error > errorsBefore);
    for (const [name, field] of Object.entries(node.fields)) {
      if (checked[name] === undefined && field.default !== undefined) checked[name] = field.default;
    }
    // Rules read the value by its type, which holds only when all its parts are fine.
    if (this.#counts.error === errorsBefore) this.#runRules(node, checked, path);
    return checked;
  }

  #tellStatus(name: string, field: FieldNode, value: unknown, path: Path): void {
    if (field.status === "notImplemented") {
      this.#add("TUL0001", "warning", path, `"${name}" is not implemented yet and ${field.effect}`);
      return;
    }
    if (field.saysNothing?.some((each) => isDeepStrictEqual(each, value)) === true) return;
    const message = `"${name}" is not implemented yet, and without it ${field.effect}: the resource is refused`;
    this.#add("TUL0001", "error", path, message, `Leave "${name}" out if that is what you want.`);
  }

  #checkPresence(node: ObjectNode, checked: Readonly<Record<string, unknown>>, path: Path, hasErrors: boolean): void {
    for (const [name, field] of Object.entries(node.fields)) {
      if (field.required && checked[name] === undefined) this.#error(path, `"${name}" is missing`, field.description);
    }
    for (const names of [...node.exactlyOne, ...node.atMostOne]) {
      const used = names.filter((name) => checked[name] !== undefined);
      if (used.length > 1) {
        this.#error(
          [...path, used[1]!],
          `only one of ${listNames(names)} is possible, and ${listNames(used)} are there`,
        );
      }
      // A misspelt field has been told of already.
      if (used.length === 0 && node.exactlyOne.includes(names) && !hasErrors)
        this.#error(path, `one of ${listNames(names)} is needed`);
    }
  }

  #runRules(node: ObjectNode, checked: unknown, path: Path): void {
    const report: Report = ({ path: below = [], message, suggestion, code = "IST0106", severity }) => {
      if (code === "TUL0001" && this.#insideNotImplemented > 0) return;
      const own = code === "IST0106" ? "error" : "warning";
      this.#add(code, severity ?? own, [...path, ...below], message, suggestion);
    };
    for (const rule of node.rules) rule(checked as never, report);
  }

  #unknown(node: ObjectNode, name: string, path: Path, parents: readonly ObjectNode[]): void {
    const names = [...Object.keys(node.fields), ...node.unread];
    // To look for what was meant takes much longer than to see that it is unknown.
    const isTold = !this.#isFull(this.#unknownField);
    const nearest = isTold ? nearestName(name, names) : undefined;
    const suggestion =
      homeOf(node, name, parents) ?? (nearest === undefined ? undefined : `Did you mean "${nearest}"?`);
    const known = names.length <= 12 ? `; known are ${names.join(", ")}` : "";
    const where = path.length === 0 ? "" : ` in "${String(path.findLast((step) => typeof step === "string"))}"`;
    this.#add(
      "IST0106",
      this.#unknownField,
      [...path, name],
      `unknown field ${quote(name)}${where}${suggestion === undefined ? known : ""}`,
      suggestion,
    );
  }

  #wrongType(wanted: string, value: unknown, path: Path): unknown {
    if (this.#insideSecret > 0) this.#error(path, `expected ${wanted}, found another type of value`);
    else this.#error(path, `expected ${wanted}, found ${describeValue(value)}`, typeHint(wanted, value));
    return value;
  }

  #error(path: Path, message: string, suggestion?: string): void {
    this.#add("IST0106", "error", path, message, suggestion);
  }

  #add(code: FindingCode, severity: "error" | "warning", path: Path, message: string, suggestion?: string): void {
    if (severity === "error") this.failed = true;
    const isFull = this.#isFull(severity);
    this.#counts[severity] += 1;
    if (isFull) return;
    const problem = { code, severity, path, message };
    this.problems.push(suggestion === undefined ? problem : { ...problem, suggestion });
  }

  /** Warnings never take the place of errors. */
  #isFull(severity: "error" | "warning"): boolean {
    return this.#counts[severity] >= maxProblems;
  }

  /** How many problems have not been told. */
  leftOut(): readonly Problem[] {
    return (["error", "warning"] as const)
      .filter((severity) => this.#counts[severity] > maxProblems)
      .map((severity) => {
        const message = `${this.#counts[severity] - maxProblems} more ${severity}s of this resource are not shown`;
        return { code: "IST0106", severity, path: [], message };
      });
  }
}

export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A field of that very name in a neighbouring object: the usual slip of indentation. */
function homeOf(node: ObjectNode, name: string, parents: readonly ObjectNode[]): string | undefined {
  for (const [childName, child] of Object.entries(node.fields)) {
    const inner = child.node.type === "list" ? child.node.items : child.node;
    if (inner.type === "object" && Object.hasOwn(inner.fields, name)) {
      return `"${name}" belongs into "${childName}": indent it below.`;
    }
  }
  const isAbove = parents.some((parent) => Object.hasOwn(parent.fields, name));
  return isAbove ? `"${name}" belongs further out: check the indentation.` : undefined;
}

function listNames(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(", ");
}

/** A value as a message tells it. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (typeof value === "string") return `the text ${quote(value)}`;
  if (typeof value === "number") return `the number ${value}`;
  if (typeof value === "boolean") return String(value);
  return Array.isArray(value) ? "a list" : "a mapping";
}

function typeHint(wanted: string, value: unknown): string | undefined {
  if (wanted === "text" && (typeof value === "number" || typeof value === "boolean")) {
    // Not with its value: 1.10 has become 1.1 by now.
    return "Put it in quotes.";
  }
  if (wanted === "a list" && isMapping(value)) return 'Begin each entry with "- ".';
  if (wanted === "a list" && typeof value === "string") return `Write - ${quote(value)} on a line of its own.`;
  if (wanted === "a mapping" && Array.isArray(value)) return 'Leave out the "- ".';
  if (typeof value !== "string") return undefined;
  if (wanted === "true or false" && /^(y|yes|n|no|on|off|true|false)$/i.test(value)) {
    return `Write ${/^(y|yes|on|true)$/i.test(value)} without quotes.`;
  }
  return wanted.endsWith("number") ? numberInQuotes(value) : undefined;
}

function numberInQuotes(value: string): string | undefined {
  return /^\d+$/.test(value) ? `Write ${value} without quotes.` : undefined;
}
