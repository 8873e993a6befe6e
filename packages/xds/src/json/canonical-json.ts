// Protobuf JSON as Envoy takes it beyond the standard, put into the standard's form: enum names in any case, and one
// value where a list is meant (as Consul writes grpc_services), and durations by their fields.
import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { anyRegistry, typeNameOfUrl } from "./any-registry.ts";

/** protobuf-es stops at 100 as well. */
export const maxDepth = 100;

/** The name as it is declared; undefined = there is none of that spelling. A number in quotes is taken as it stands. */
function enumName(type: DescEnum, text: string): string | undefined {
  const upper = text.toUpperCase();
  const found =
    type.values.find(({ name }) => name === text) ?? type.values.find(({ name }) => name.toUpperCase() === upper);
  return found?.name;
}

/** The value itself where nothing has to change. What is wrong is left as it is. */
export function canonicalJson(schema: DescMessage, json: unknown, depth = 0): unknown {
  if (depth > maxDepth) return json;
  if (typeof json !== "object" || json === null || Array.isArray(json)) return json;
  if (schema.typeName === "google.protobuf.Duration") return durationText(json);
  const inner = schema.typeName === "google.protobuf.Any" ? innerSchema(json) : schema;
  if (inner === undefined || inner.typeName.startsWith("google.protobuf.")) return json;
  let changed: Record<string, unknown> | undefined;
  for (const [key, value] of Object.entries(json)) {
    const field = inner.fields.find((known) => known.jsonName === key || known.name === key);
    const next = field === undefined || value === null ? value : canonicalField(field, value, depth);
    if (next !== value) (changed ??= { ...json })[key] = next;
  }
  return changed ?? json;
}

/** `{seconds: 1, nanos: 500000000}` is `1.5s`. */
function durationText(json: object): unknown {
  const { seconds = 0, nanos = 0, ...others } = json as Readonly<Record<string, unknown>>;
  const isWhole = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value);
  const isRead = isWhole(seconds) && isWhole(nanos) && seconds >= 0 && nanos >= 0 && nanos < 1e9;
  if (!isRead || Object.keys(others).length > 0) return json;
  return nanos === 0 ? `${seconds}s` : `${seconds}.${String(nanos).padStart(9, "0")}s`;
}

function innerSchema(json: object): DescMessage | undefined {
  const typeUrl = (json as { readonly "@type"?: unknown })["@type"];
  return typeof typeUrl === "string" ? anyRegistry.getMessage(typeNameOfUrl(typeUrl)) : undefined;
}

function canonicalField(field: DescField, json: unknown, depth: number): unknown {
  switch (field.fieldKind) {
    case "list": {
      const list = Array.isArray(json) ? json : [json];
      const next = list.map((item: unknown) => canonicalItem(field.message ?? field.enum, item, depth));
      return next.every((item, index) => item === list[index]) && list === json ? json : next;
    }
    case "map": {
      if (typeof json !== "object" || json === null) return json;
      const entries = Object.entries(json).map(([key, item]) => [
        key,
        canonicalItem(field.message ?? field.enum, item, depth),
      ]);
      return Object.fromEntries(entries) as unknown;
    }
    case "message":
    case "enum":
      return canonicalItem(field.message ?? field.enum, json, depth);
    case "scalar":
      return json;
  }
}

function canonicalItem(type: DescMessage | DescEnum | undefined, json: unknown, depth: number): unknown {
  if (type === undefined) return json;
  if (type.kind === "message") return canonicalJson(type, json, depth + 1);
  if (typeof json !== "string" || type.typeName === "google.protobuf.NullValue") return json;
  return /^-?\d+$/.test(json) ? Number(json) : (enumName(type, json) ?? json);
}
