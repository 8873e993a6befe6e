// A message of Envoy's together with what becomes of each of its fields, made once from rows (field-row.ts) and the
// descriptor. A message that can be reached through a field in use and has no row stops the program: so a new field of
// Envoy is never passed over in silence.
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { FieldRow, FieldRows, WholeRow } from "./field-row.ts";

export interface FieldRule {
  readonly kind: "used" | "harmless" | "warned" | "told" | "refused";
  readonly protoName: string;
  readonly reason: string;
  /** The rules of the message in that field; undefined for plain values, and for what is not looked into. */
  readonly nested: FieldRules | undefined;
  readonly isMap: boolean;
}

/** By local name, of every field; the cases of a oneof by their own. */
export type FieldRules = ReadonlyMap<string, FieldRule>;

export interface CheckedMessage<D extends DescMessage = DescMessage> {
  readonly schema: D;
  readonly rules: FieldRules;
}

/** Made once a type, whoever asks first: the row of a type is one and the same everywhere. */
const known = new Map<string, { readonly row: FieldRows[string]; readonly rules: FieldRules }>();

/** @throws when a row is missing, stands twice, or names a field that the message does not have. */
export function checkedMessage<D extends DescMessage>(schema: D, ...tables: readonly FieldRows[]): CheckedMessage<D> {
  return { schema, rules: rulesOf(schema, tables, "") };
}

function rulesOf(schema: DescMessage, tables: readonly FieldRows[], reachedFrom: string): FieldRules {
  const row = rowOf(schema, tables, reachedFrom);
  const before = known.get(schema.typeName);
  if (before !== undefined) {
    if (before.row !== row) throw new Error(`${schema.typeName} has two rows`);
    return before.rules;
  }
  const rules = new Map<string, FieldRule>();
  // Before its fields: a message may hold others of its type.
  known.set(schema.typeName, { row, rules });
  for (const [kind, protoName, reason] of columnsOf(schema, row)) {
    const field = schema.fields.find(({ name }) => name === protoName);
    if (field === undefined) throw new Error(`${schema.typeName} has no field ${protoName}, which its row names`);
    if (rules.has(field.localName)) throw new Error(`the row of ${schema.typeName} names ${protoName} twice`);
    const nested = kind === "used" ? nestedRules(field, tables) : undefined;
    rules.set(field.localName, { kind, protoName, reason, nested, isMap: field.fieldKind === "map" });
  }
  for (const { localName, name } of schema.fields) {
    if (rules.has(localName)) continue;
    rules.set(localName, { kind: "refused", protoName: name, reason: "", nested: undefined, isMap: false });
  }
  return rules;
}

function nestedRules(field: DescField, tables: readonly FieldRows[]): FieldRules | undefined {
  const { message } = field;
  // Durations, wrappers, structs, and extensions, which are checked when they are decoded.
  if (message === undefined || message.typeName.startsWith("google.protobuf.")) return undefined;
  return rulesOf(message, tables, `${field.parent.typeName}.${field.name}`);
}

function rowOf(schema: DescMessage, tables: readonly FieldRows[], reachedFrom: string): FieldRows[string] {
  const rows = tables.map((table) => table[schema.typeName]).filter((row) => row !== undefined);
  if (rows.length === 1) return rows[0]!;
  const where = reachedFrom === "" ? "" : `, which ${reachedFrom} holds,`;
  throw new Error(`${schema.typeName}${where} has ${rows.length === 0 ? "no row" : "two rows"}`);
}

type Column = readonly [kind: FieldRule["kind"], protoName: string, reason: string];

function columnsOf(schema: DescMessage, row: FieldRow | WholeRow | string): readonly Column[] {
  if (typeof row === "string") return namesIn(row).map((name) => ["used", name, ""]);
  if ("whole" in row) return schema.fields.map(({ name }) => ["harmless", name, row.whole]);
  return [
    ...namesIn(row.used).map((name): Column => ["used", name, ""]),
    ...Object.entries(row.harmless ?? {}).map(([name, reason]): Column => ["harmless", name, reason]),
    ...Object.entries(row.warned ?? {}).map(([name, reason]): Column => ["warned", name, reason]),
    ...namesIn(`${row.told ?? ""} ${row.apart ?? ""}`).map((name): Column => ["told", name, ""]),
  ];
}

function namesIn(text: string): readonly string[] {
  return text.split(/\s+/).filter((name) => name !== "");
}
