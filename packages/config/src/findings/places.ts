/**
 * Where each value of a resource was written. Resources stay plain data (they are compared, serialised and sent), so
 * their places lie beside them: a table by JSON pointer, found through the object's identity.
 */
import type { Place } from "./finding.ts";

/** The way to a value within a resource: names of fields, and places in lists. */
export type Path = readonly (string | number)[];

/**
 * Positions of one resource: JSON pointer (RFC 6901) of a value → its [line, column]. Plain JSON, it travels with
 * `apply`.
 */
export interface PlaceTable {
  readonly file: string;
  readonly at: Readonly<Record<string, readonly [line: number, column: number]>>;
}

const tables = new WeakMap<object, PlaceTable>();

/** Remembers the places of `resource` for as long as that object lives. Answers the same object. */
export function attachPlaces<T extends object>(resource: T, table: PlaceTable | undefined): T {
  if (table !== undefined) tables.set(resource, table);
  return resource;
}

/** The place table of `resource`, if it came from a file. */
export function placesOf(resource: object): PlaceTable | undefined {
  return tables.get(resource);
}

/** The place of the value at `path`, or of the nearest value around it. */
export function placeIn(table: PlaceTable | undefined, path: Path): Place | undefined {
  if (table === undefined) return undefined;
  for (let length = path.length; length >= 0; length -= 1) {
    const at = table.at[jsonPointer(path.slice(0, length))];
    if (at !== undefined) return { file: table.file, line: at[0], column: at[1] };
  }
  return undefined;
}

/** The place in the user's file of the value at `path` of `resource`; undefined when it came from no file. */
export function placeOf(resource: object, path: Path = []): Place | undefined {
  return placeIn(tables.get(resource), path);
}

export function jsonPointer(path: Path): string {
  return path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** A path as a person writes it: `spec.http[0].match[0].headers["x-dark-launch"].exact`. */
export function formatPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[A-Za-z_][\w]*$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}
