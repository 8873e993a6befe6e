// Writes messages as protobuf JSON for config dumps and golden files: fields in the schema's order, map keys sorted. An
// Any whose type this build does not know is carried and shown as what it is, bytes.
import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageShape,
  clone,
  fromBinary,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { type Any, StructSchema } from "@bufbuild/protobuf/wkt";
import { anyRegistry, typeNameOfUrl } from "./any-registry.ts";

export interface JsonOptions {
  /** As Envoy's `/config_dump` writes them (`snake_case`), or as proto3 JSON does by default. */
  readonly fieldNames?: "snake_case" | "camelCase";
}

/** Holds the base64 of an Any that could not be decoded; the codec refuses to read it back. */
export const undecodedKey = "@undecoded";

const structUrl = `type.googleapis.com/${StructSchema.typeName}`;

export function messageToJson<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
  options: JsonOptions = {},
): JsonValue {
  const copy = clone(schema, message);
  prepare(schema, copy);
  const useProtoFieldName = options.fieldNames === "snake_case";
  return finish(toJson(schema as DescMessage, copy, { registry: anyRegistry, useProtoFieldName }));
}

/** Sorts maps and replaces Anys that cannot be shown, in place. */
function prepare(schema: DescMessage, message: Message): void {
  if (schema.typeName === "google.protobuf.Any") prepareAny(message as Any);
  if (schema.typeName.startsWith("google.protobuf.")) return;
  for (const field of schema.fields) {
    const holder = message as unknown as Record<string, unknown>;
    const value = fieldValue(field, holder);
    if (value === undefined) continue;
    if (field.fieldKind === "map") holder[field.localName] = sorted(value as Record<string, unknown>);
    if (field.message === undefined) continue;
    for (const item of messagesOf(field, value)) prepare(field.message, item);
  }
}

function fieldValue(field: DescField, message: Readonly<Record<string, unknown>>): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const chosen = message[field.oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return chosen.case === field.localName ? chosen.value : undefined;
}

function messagesOf(field: DescField, value: unknown): readonly Message[] {
  if (field.fieldKind === "list") return value as Message[];
  if (field.fieldKind === "map") return Object.values(value as Record<string, Message>);
  return [value as Message];
}

function sorted(map: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function prepareAny(any: Any): void {
  if (any.typeUrl === "") return;
  const schema = anyRegistry.getMessage(typeNameOfUrl(any.typeUrl));
  if (schema !== undefined) {
    try {
      const inner = fromBinary(schema, any.value);
      prepare(schema, inner);
      any.value = toBinary(schema, inner);
      return;
    } catch {
      // Bytes that are no message of the type they claim: shown as bytes, like an unknown type.
    }
  }
  // The Struct only carries the placeholder through toJson, which knows no other way to write a type it cannot decode.
  any.value = toBinary(StructSchema, structOf({ "@type": any.typeUrl, [undecodedKey]: base64Encode(any.value) }));
  any.typeUrl = structUrl;
}

function structOf(fields: Readonly<Record<string, string>>) {
  const entries = Object.entries(fields).map(([key, value]) => [
    key,
    { $typeName: "google.protobuf.Value" as const, kind: { case: "stringValue" as const, value } },
  ]);
  return { $typeName: "google.protobuf.Struct" as const, fields: Object.fromEntries(entries) };
}

/** Unpacks placeholders, and puts `@type` first, where people look for it. */
function finish(json: JsonValue): JsonValue {
  if (Array.isArray(json)) return json.map(finish);
  if (typeof json !== "object" || json === null) return json;
  const { "@type": typeUrl, value } = json;
  const isCarrier = typeUrl === structUrl && typeof value === "object" && value !== null && undecodedKey in value;
  if (isCarrier) return value;
  const result: JsonObject = typeUrl === undefined ? {} : { "@type": typeUrl };
  for (const [key, member] of Object.entries(json)) result[key] = finish(member);
  return result;
}
