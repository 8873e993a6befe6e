// The registry of every message that may stand in an Any, for the JSON codec. It loads a type's module when a document
// or a dump names it: a proxy's bootstrap names five of the four hundred, and each costs start-up time.
import { createRequire } from "node:module";
import { type DescMessage, type Registry, createRegistry } from "@bufbuild/protobuf";
import {
  AnySchema,
  BoolValueSchema,
  BytesValueSchema,
  DoubleValueSchema,
  DurationSchema,
  EmptySchema,
  FieldMaskSchema,
  FloatValueSchema,
  Int32ValueSchema,
  Int64ValueSchema,
  ListValueSchema,
  StringValueSchema,
  StructSchema,
  TimestampSchema,
  UInt32ValueSchema,
  UInt64ValueSchema,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import { messageFiles } from "../generated/message-files.ts";

const wellKnown = createRegistry(
  AnySchema,
  BoolValueSchema,
  BytesValueSchema,
  DoubleValueSchema,
  DurationSchema,
  EmptySchema,
  FieldMaskSchema,
  FloatValueSchema,
  Int32ValueSchema,
  Int64ValueSchema,
  ListValueSchema,
  StringValueSchema,
  StructSchema,
  TimestampSchema,
  UInt32ValueSchema,
  UInt64ValueSchema,
  ValueSchema,
);

const load = createRequire(import.meta.url);

const fileOfType = new Map<string, string>();
for (const [file, names] of Object.entries(messageFiles)) {
  const packageName = file.slice(0, file.lastIndexOf("/")).replaceAll("/", ".");
  for (const name of names) fileOfType.set(`${packageName}.${name}`, file);
}

const loaded = new Map<string, DescMessage>();

function getMessage(typeName: string): DescMessage | undefined {
  const known = wellKnown.getMessage(typeName) ?? loaded.get(typeName);
  if (known !== undefined) return known;
  const file = fileOfType.get(typeName);
  if (file === undefined) return undefined;
  // Synchronous, because the codec's lookups are; the modules have no top-level await.
  const module = load(`../generated/${file}.ts`) as Readonly<Record<string, DescMessage>>;
  const schema = module[`${typeName.slice(typeName.lastIndexOf(".") + 1)}Schema`]!;
  loaded.set(typeName, schema);
  return schema;
}

/** Full names of all types that an Any may hold. */
export function anyTypeNames(): readonly string[] {
  return [...[...wellKnown].map((type) => type.typeName), ...fileOfType.keys()];
}

export const anyRegistry: Registry = {
  kind: "registry",
  [Symbol.iterator]: () => loaded.values(),
  get: getMessage,
  getMessage,
  getEnum: () => undefined,
  getExtension: () => undefined,
  getExtensionFor: () => undefined,
  getService: () => undefined,
};

/** The type's name in an Any's `type_url`. */
export function typeNameOfUrl(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf("/") + 1);
}
