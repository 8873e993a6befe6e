// Reads protobuf JSON strictly, as Envoy reads its bootstrap: an unknown field or type is refused with its path and the
// nearest known name, all of them at once, because a setting that is dropped in silence is the worst kind.
import { type DescField, type DescMessage, type JsonValue, type MessageShape, fromJson } from "@bufbuild/protobuf";
import { anyRegistry, anyTypeNames, typeNameOfUrl } from "./any-registry.ts";
import { canonicalJson, maxDepth } from "./canonical-json.ts";
import { didYouMean } from "./nearest-name.ts";

export interface JsonProblem {
  /** In the document's own spelling: `static_resources.listeners[0].name`; empty for the document itself. */
  readonly path: string;
  readonly message: string;
}

export type JsonResult<T> =
  | { readonly ok: true; readonly message: T }
  | {
      readonly ok: false;
      readonly problems: readonly JsonProblem[];
      /**
       * The message without what is wrong in it, for whoever has more to say about the rest; undefined = there is no
       * rest.
       */
      readonly rest: T | undefined;
    };

/**
 * Reads a message from proto3 JSON. Field names may be camelCase or snake_case; an Any has `@type` and, beside it, the
 * fields of its message.
 */
export function messageFromJson<D extends DescMessage>(schema: D, json: unknown): JsonResult<MessageShape<D>> {
  const canonical = canonicalJson(schema, json);
  const problems: JsonProblem[] = [];
  checkMessage(schema, canonical, "", 0, problems);
  try {
    if (problems.length === 0) {
      return { ok: true, message: fromJson(schema, canonical as JsonValue, { registry: anyRegistry }) };
    }
  } catch (error) {
    locate(schema, canonical, "", problems);
    if (problems.length === 0) problems.push({ path: "", message: reason(error) });
    return { ok: false, problems, rest: readRest(schema, canonical, problems) };
  }
  if (problems.some(({ message }) => message === tooDeep)) return { ok: false, problems, rest: undefined };
  // What is misspelt does not hide what is wrong elsewhere.
  const rest = without(canonical, problems);
  const values: JsonProblem[] = [];
  locate(schema, rest, "", values);
  const all = [...problems, ...values];
  return { ok: false, problems: all, rest: readRest(schema, rest, values) };
}

function readRest<D extends DescMessage>(
  schema: D,
  json: unknown,
  problems: readonly JsonProblem[],
): MessageShape<D> | undefined {
  try {
    return fromJson(schema, without(json, problems) as JsonValue, { registry: anyRegistry });
  } catch {
    return undefined;
  }
}

/**
 * A copy without the values at the problems' paths. Elements of lists are emptied, so that the others keep their
 * places.
 */
function without(json: unknown, problems: readonly JsonProblem[]): unknown {
  const copy = structuredClone(json);
  for (const { path } of problems) {
    const steps = pathSteps(path);
    const last = steps.pop();
    let parent: unknown = copy;
    for (const step of steps) parent = (parent as Record<string | number, unknown> | undefined)?.[step];
    // Without its type an Any is nothing.
    if (last === "@type") {
      for (const key of Object.keys((parent as object | undefined) ?? {}))
        delete (parent as Record<string, unknown>)[key];
      continue;
    }
    if (last === undefined || typeof parent !== "object" || parent === null) continue;
    if (Array.isArray(parent)) parent[Number(last)] = {};
    else delete (parent as Record<string, unknown>)[last];
  }
  return copy;
}

/** The steps of a problem's path: keys as text, places in lists as numbers. */
export function pathSteps(path: string): (string | number)[] {
  return [...path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.[\]]+)/g)].map((match) => {
    if (match[1] !== undefined) return JSON.parse(`"${match[1]}"`) as string;
    return match[2] === undefined ? match[3]! : Number(match[2]);
  });
}

/** protobuf-es puts the message's or field's name before the reason, which the path says better. */
function reason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/^cannot decode (message|field) \S+ from JSON: /, "");
}

/** protobuf-es would overflow the stack. */
const tooDeep = `nested deeper than ${maxDepth} messages`;

function isObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function join(path: string, key: string): string {
  const step = /^[\p{L}_@][\p{L}\p{N}_@-]*$/u.test(key) ? key : `[${JSON.stringify(key)}]`;
  if (path === "") return step;
  return step.startsWith("[") ? path + step : `${path}.${step}`;
}

/** Messages whose JSON has a form of its own; protobuf-es checks their values. */
function hasOwnForm(schema: DescMessage): boolean {
  return schema.typeName.startsWith("google.protobuf.") && schema.typeName !== "google.protobuf.Empty";
}

function fieldOf(schema: DescMessage, key: string): DescField | undefined {
  return schema.fields.find((field) => field.jsonName === key || field.name === key);
}

function checkMessage(schema: DescMessage, json: unknown, path: string, depth: number, problems: JsonProblem[]): void {
  const report = (key: string, message: string): void => void problems.push({ path: join(path, key), message });
  if (schema.typeName === "google.protobuf.Any") {
    checkAny(json, path, depth, problems);
    return;
  }
  if (hasOwnForm(schema)) return;
  if (!isObject(json)) {
    problems.push({ path, message: `expected an object (${schema.typeName}), found ${describe(json)}` });
    return;
  }
  if (depth > maxDepth) {
    problems.push({ path, message: tooDeep });
    return;
  }
  const seen = new Map<string, string>();
  for (const [key, value] of Object.entries(json)) {
    const field = fieldOf(schema, key);
    if (field === undefined) {
      const names = schema.fields.map((known) => (key.includes("_") ? known.name : known.jsonName));
      report(key, `unknown field in ${schema.typeName}${didYouMean(key, names)}`);
      continue;
    }
    const group = field.oneof === undefined ? field.name : `oneof ${field.oneof.name}`;
    const other = seen.get(group);
    if (other !== undefined && value !== null) report(key, `cannot stand beside ${JSON.stringify(other)}`);
    if (value !== null) seen.set(group, key);
    // JSON null stands for a field that is not set.
    if (value !== null) checkField(field, value, join(path, key), depth, problems);
  }
}

function checkField(field: DescField, json: unknown, path: string, depth: number, problems: JsonProblem[]): void {
  switch (field.fieldKind) {
    case "list":
      if (!Array.isArray(json)) {
        problems.push({ path, message: `expected a list, found ${describe(json)}` });
        return;
      }
      for (const [index, item] of json.entries()) {
        const place = `${path}[${index}]`;
        if (field.listKind === "message") checkMessage(field.message, item, place, depth + 1, problems);
        if (field.listKind === "enum") checkEnum(field, item, place, problems);
      }
      return;
    case "map":
      if (!isObject(json)) {
        problems.push({ path, message: `expected an object, found ${describe(json)}` });
        return;
      }
      for (const [key, item] of Object.entries(json)) {
        const place = join(path, key);
        if (field.mapKind === "message") checkMessage(field.message, item, place, depth + 1, problems);
        if (field.mapKind === "enum") checkEnum(field, item, place, problems);
      }
      return;
    case "message":
      checkMessage(field.message, json, path, depth + 1, problems);
      return;
    case "enum":
      checkEnum(field, json, path, problems);
      return;
    case "scalar":
      return;
  }
}

function checkEnum(field: DescField & { enum: object }, json: unknown, path: string, problems: JsonProblem[]): void {
  if (typeof json !== "string" || field.enum === undefined || field.enum.typeName === "google.protobuf.NullValue")
    return;
  const names = field.enum.values.map((value) => value.name);
  if (names.includes(json)) return;
  const known = names.length <= 12 ? ` (one of ${names.join(", ")})` : "";
  problems.push({ path, message: `unknown value ${JSON.stringify(json)}${didYouMean(json, names)}${known}` });
}

function checkAny(json: unknown, path: string, depth: number, problems: JsonProblem[]): void {
  if (!isObject(json)) {
    problems.push({ path, message: `expected an object with "@type", found ${describe(json)}` });
    return;
  }
  const { "@type": typeUrl, ...content } = json;
  if (typeof typeUrl !== "string") {
    // An empty Any is legal, and says nothing.
    if (Object.keys(json).length > 0) problems.push({ path, message: `has no "@type"` });
    return;
  }
  const typeName = typeNameOfUrl(typeUrl);
  const schema = anyRegistry.getMessage(typeName);
  if (schema === undefined) {
    problems.push({
      path: join(path, "@type"),
      message: `unknown type ${JSON.stringify(typeName)}${didYouMean(typeName, anyTypeNames())}`,
    });
    return;
  }
  if (hasOwnForm(schema)) checkMessage(schema, content["value"], join(path, "value"), depth + 1, problems);
  else checkMessage(schema, content, path, depth + 1, problems);
}

/** Finds the values that protobuf-es refuses: those fields that cannot be read alone, followed to their depth. */
function locate(schema: DescMessage, json: unknown, path: string, problems: JsonProblem[]): void {
  if (schema.typeName === "google.protobuf.Any" && isObject(json)) {
    const { "@type": typeUrl, ...content } = json;
    const inner = anyRegistry.getMessage(typeNameOfUrl(String(typeUrl)));
    if (inner !== undefined && !hasOwnForm(inner)) locate(inner, content, path, problems);
    return;
  }
  if (hasOwnForm(schema) || !isObject(json)) return;
  for (const [key, value] of Object.entries(json)) {
    const field = fieldOf(schema, key);
    if (field === undefined) continue;
    const error = failure(schema, { [key]: value });
    if (error === undefined) continue;
    const before = problems.length;
    const inner = field.message;
    const place = join(path, key);
    if (inner !== undefined && field.fieldKind === "message") locate(inner, value, place, problems);
    if (inner !== undefined && Array.isArray(value)) {
      value.forEach((item, index) => locate(inner, item, `${place}[${index}]`, problems));
    }
    if (inner !== undefined && field.fieldKind === "map" && isObject(value)) {
      for (const [name, item] of Object.entries(value)) locate(inner, item, join(place, name), problems);
    }
    if (problems.length === before) problems.push({ path: place, message: reason(error) });
  }
}

function failure(schema: DescMessage, json: JsonValue | object): unknown {
  try {
    fromJson(schema, json as JsonValue, { registry: anyRegistry });
    return undefined;
  } catch (error) {
    return error;
  }
}

function describe(json: unknown): string {
  if (json === null) return "null";
  if (json === undefined) return "nothing";
  if (Array.isArray(json)) return "a list";
  return typeof json === "object" ? "an object" : JSON.stringify(json);
}
