// Extension configurations: an Any that holds a message, or a TypedStruct that holds one as JSON. Decoding refuses what
// the proxy would not act on.
import { type DescMessage, type JsonObject, type MessageShape, fromBinary, fromJson } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { TypedStructSchema as UdpaTypedStructSchema } from "@tulle/xds/udpa/type/v1/typed_struct_pb";
import { TypedStructSchema } from "@tulle/xds/xds/type/v3/typed_struct_pb";
import { checkFields } from "./check-fields.ts";
import type { CheckedMessage } from "./checked-message.ts";
import type { Place, Problems } from "./problems.ts";

export type TypedConfig =
  | { readonly typeUrl: string; readonly form: "binary"; readonly bytes: Uint8Array }
  | { readonly typeUrl: string; readonly form: "json"; readonly json: JsonObject };

export const typeUrlPrefix = "type.googleapis.com/";

export function typeUrlOf(schema: DescMessage): string {
  return typeUrlPrefix + schema.typeName;
}

/** Undefined when nothing is configured. @throws when a TypedStruct is malformed. */
export function unwrapTypedConfig(any: Any | undefined): TypedConfig | undefined {
  if (any === undefined || any.typeUrl === "") return undefined;
  const wrapper = [TypedStructSchema, UdpaTypedStructSchema].find((schema) =>
    any.typeUrl.endsWith(`/${schema.typeName}`),
  );
  if (wrapper === undefined) return { typeUrl: any.typeUrl, form: "binary", bytes: any.value };
  const struct = fromBinary(wrapper, any.value);
  const typeUrl = struct.typeUrl.includes("/") ? struct.typeUrl : typeUrlPrefix + struct.typeUrl;
  return { typeUrl, form: "json", json: struct.value ?? {} };
}

/** The message, checked for fields that are not supported; undefined after an error. */
export function decodeTypedConfig<D extends DescMessage>(
  checked: CheckedMessage<D>,
  config: TypedConfig,
  place: Place,
  problems: Problems,
): MessageShape<D> | undefined {
  const { schema } = checked;
  try {
    const message = config.form === "binary" ? fromBinary(schema, config.bytes) : fromJson(schema, config.json);
    checkFields(checked, message, place, problems);
    return message;
  } catch (error) {
    problems.error(place, `not a valid ${schema.typeName}: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}
