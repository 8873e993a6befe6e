// Manifests with values in the place of their words: what `tulle install` applies. Its twin is print-template.ts,
// which tells Helm to do the same.
import { type Condition, Expression, type Manifest, type Template, When } from "./template.ts";
import type { Fields, Values } from "./values.ts";

export interface Release {
  readonly namespace: string;
  readonly values: Values;
}

export function evaluateManifests(manifests: readonly Manifest[], release: Release): readonly Fields[] {
  return manifests.flatMap(
    (manifest) => (evaluated(manifest, release) as Fields | undefined) ?? ([] as readonly Fields[]),
  );
}

function holds(condition: Condition, release: Release): boolean {
  switch (condition.is) {
    case "set":
      return isTrue(valueAt(condition.path, release));
    case "equal":
      return valueAt(condition.path, release) === condition.to;
    case "not":
      return !holds(condition.condition, release);
    case "all":
      return condition.of.every((each) => holds(each, release));
  }
}

/** Undefined for what is not there. */
function evaluated(template: Template, release: Release): unknown {
  if (template instanceof When)
    return holds(template.condition, release) ? evaluated(template.template, release) : undefined;
  if (template instanceof Expression) return meaning(template, release);
  if (Array.isArray(template)) {
    const items = (template as readonly Template[]).map((item) => evaluated(item, release));
    return items.filter((item) => item !== undefined);
  }
  if (typeof template !== "object" || template === null) return template;
  const entries = Object.entries(template).map(([name, of]) => [name, evaluated(of, release)] as const);
  return Object.fromEntries(entries.filter(([, of]) => of !== undefined));
}

function meaning({ words }: Expression, release: Release): unknown {
  switch (words.word) {
    case "value":
      return valueAt(words.path, release) ?? null;
    case "namespace":
      return release.namespace;
    case "text":
      return words.parts.map((part) => textOf(part, release)).join("");
    case "choose":
      return textOf(holds(words.condition, release) ? words.chosen : words.otherwise, release);
    case "merged": {
      const own = Object.entries(words.own).map(([name, of]) => [name, textOf(of, release)]);
      return { ...(valueAt(words.path, release) as Fields), ...(Object.fromEntries(own) as Fields) };
    }
    case "json":
      return goJson(
        typeof words.of === "string"
          ? valueAt(words.of, release)
          : Object.fromEntries(Object.entries(words.of).map(([name, path]) => [name, valueAt(path, release)])),
      );
  }
}

function textOf(part: string | Expression, release: Release): string {
  return typeof part === "string" ? part : String(meaning(part, release));
}

function valueAt(path: string, { values }: Release): unknown {
  return path.split(".").reduce<unknown>((within, name) => (within as Fields | undefined)?.[name], values);
}

/** As Go's templates take it. */
function isTrue(of: unknown): boolean {
  if (Array.isArray(of)) return of.length > 0;
  if (typeof of === "object" && of !== null) return Object.keys(of).length > 0;
  return Boolean(of);
}

/** JSON as Go's encoding/json writes it: names in order, and what HTML reads escaped. */
function goJson(of: unknown): string {
  const sorted = JSON.stringify(
    of,
    (_name, each: unknown) => {
      if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
      return Object.fromEntries(
        Object.entries(each).toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
      );
    },
    2,
  );
  return sorted.replaceAll(/[<>&\u2028\u2029]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
