// Refuses every field of a resource that the proxy would not act on. Without this a control plane could ask for a limit
// or a check, be told ACK, and not get it.
import type { Message } from "@bufbuild/protobuf";
import { fieldTable } from "./field-table.ts";
import type { Place, Problems } from "./problems.ts";

interface FieldRule {
  readonly kind: "used" | "harmless" | "warned";
  readonly protoName: string;
  readonly reason: string;
}

function localName(protoName: string): string {
  return protoName.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function protoNameOf(local: string): string {
  return local.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const rules = new Map<string, ReadonlyMap<string, FieldRule>>();
for (const [typeName, row] of Object.entries(fieldTable)) {
  const fields = new Map<string, FieldRule>();
  const add = (kind: FieldRule["kind"], protoName: string, reason: string): void => {
    fields.set(localName(protoName), { kind, protoName, reason });
  };
  for (const name of row.used.split(/\s+/).filter((part) => part !== "")) add("used", name, "");
  for (const [name, reason] of Object.entries(row.harmless ?? {})) add("harmless", name, reason);
  for (const [name, reason] of Object.entries(row.warned ?? {})) add("warned", name, reason);
  rules.set(typeName, fields);
}

/** Whether nothing of that field is read, with a warning or without; `name` in either spelling. */
export function isIgnored(typeName: string, name: string): boolean {
  const kind = rules.get(typeName)?.get(localName(name))?.kind;
  return kind === "harmless" || kind === "warned";
}

function isMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && "$typeName" in value;
}

/** A set oneof: the field that was chosen, and its value. */
function oneofOf(value: unknown): { readonly case: string; readonly value: unknown } | undefined {
  if (typeof value !== "object" || value === null || isMessage(value) || !("case" in value)) return undefined;
  return typeof value.case === "string" && "value" in value ? { case: value.case, value: value.value } : undefined;
}

/** Whether a field's value is what it has when nobody set it; a wrapper (BoolValue …) that is set never is. */
function isUnset(value: unknown, key: string): boolean {
  if (value === undefined || key === "$typeName" || key === "$unknown") return true;
  if (value === "" || value === 0 || value === 0n || value === false) return true;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0;
  if (isMessage(value)) return false;
  if ("case" in value) return value.case === undefined;
  return Object.keys(value).length === 0;
}

/**
 * Walks the message and all nested messages that `fieldTable` knows. A field that is set and stands in no column is an
 * error at its place; messages without a row belong to whoever compiles them.
 */
export function checkFields(message: object, place: Place, problems: Problems): void {
  const fields = isMessage(message) ? rules.get(message.$typeName) : undefined;
  if (fields === undefined) return;
  // Not Object.keys: its list for each of a hundred thousand messages was a tenth of what a large push left to collect.
  for (const key in message) {
    const value = (message as Readonly<Record<string, unknown>>)[key];
    const plain = fields.get(key);
    if (plain?.kind === "used") {
      checkNested(value, plain.protoName, place, problems);
      continue;
    }
    if (isUnset(value, key)) continue;
    const oneof = oneofOf(value);
    const name = oneof?.case ?? key;
    const rule = oneof === undefined ? plain : fields.get(name);
    if (rule === undefined) {
      problems.error(place.field(protoNameOf(name)), "this field is not supported");
    } else if (rule.kind === "warned") {
      problems.warning(place.field(rule.protoName), `ignored: ${rule.reason}`);
    } else if (rule.kind === "used") {
      checkNested(oneof?.value, rule.protoName, place, problems);
    }
  }
}

function checkNested(value: unknown, protoName: string, place: Place, problems: Problems): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const element: unknown = value[index];
      if (!isMessage(element) || !rules.has(element.$typeName)) return;
      checkFields(element, place.field(protoName, index), problems);
    }
  } else if (isMessage(value) && rules.has(value.$typeName)) {
    checkFields(value, place.field(protoName), problems);
  }
}
