// Refuses every field of a resource that the proxy would not act on. Without this a control plane could ask for a limit
// or a check, be told ACK, and not get it.
import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { CheckedMessage, FieldRules } from "./checked-message.ts";
import type { Place, Problems } from "./problems.ts";

/**
 * Walks the message and all messages in its fields. A field that is set and stands in no column of its row is an error
 * at its place. One that this proxy's descriptors do not know is newer than the proxy: it is ignored with a warning,
 * where Envoy counts it.
 */
export function checkFields<D extends DescMessage>(
  { rules }: CheckedMessage<D>,
  message: MessageShape<D>,
  place: Place,
  problems: Problems,
): void {
  check(rules, message, place, problems);
}

/** Whether nothing of that field is read, with a warning or without. */
export function isIgnored({ schema, rules }: CheckedMessage, protoName: string): boolean {
  const field = schema.fields.find(({ name, jsonName }) => name === protoName || jsonName === protoName);
  const kind = field && rules.get(field.localName)?.kind;
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
function isUnset(value: unknown): boolean {
  if (value === undefined || value === "" || value === 0 || value === 0n || value === false) return true;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0;
  if (isMessage(value)) return false;
  if ("case" in value) return value.case === undefined;
  return Object.keys(value).length === 0;
}

function check(rules: FieldRules, message: object, place: Place, problems: Problems): void {
  // Not Object.keys: its list for each of a hundred thousand messages was a tenth of what a large push left to collect.
  for (const key in message) {
    if (key === "$typeName") continue;
    const value = (message as Readonly<Record<string, unknown>>)[key];
    if (key === "$unknown") {
      warnOfNewFields(value as Message["$unknown"], place, problems);
      continue;
    }
    const plain = rules.get(key);
    if (plain?.kind === "used") {
      if (plain.nested !== undefined) checkNested(plain.nested, value, plain.protoName, plain.isMap, place, problems);
      continue;
    }
    if (isUnset(value)) continue;
    const oneof = oneofOf(value);
    const name = oneof?.case ?? key;
    const rule = oneof === undefined ? plain : rules.get(name);
    if (rule === undefined) continue;
    if (rule.kind === "refused") {
      problems.error(place.field(rule.protoName), "this field is not supported");
    } else if (rule.kind === "warned") {
      problems.warning(place.field(rule.protoName), `ignored: ${rule.reason}`);
    } else if (rule.nested !== undefined) {
      checkNested(rule.nested, oneof?.value, rule.protoName, false, place, problems);
    }
  }
}

function checkNested(
  rules: FieldRules,
  value: unknown,
  protoName: string,
  isMap: boolean,
  place: Place,
  problems: Problems,
): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      check(rules, value[index] as object, place.field(protoName, index), problems);
    }
  } else if (isMap) {
    for (const [key, element] of Object.entries(value)) {
      check(rules, element as object, place.key(protoName, key), problems);
    }
  } else {
    check(rules, value, place.field(protoName), problems);
  }
}

function warnOfNewFields(fields: Message["$unknown"], place: Place, problems: Problems): void {
  for (const number of new Set(fields?.map(({ no }) => no))) {
    problems.warning(place, `ignored: field number ${number}, which is newer than this proxy`);
  }
}
