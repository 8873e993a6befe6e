// What can be read of a resource without its schema.
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { Any } from "@bufbuild/protobuf/wkt";
import { resourceTypeOfUrl } from "./resource-types.ts";

/** type_url of a DiscoveryResponse, whose resources are not looked at; empty where the bytes are none. */
export function responseTypeUrl(response: Uint8Array): string {
  return textField(response, 4);
}

/** A resource's name, whatever its type. */
export function nameOfAny({ typeUrl, value }: Pick<Any, "typeUrl" | "value">): string {
  return resourceTypeOfUrl(typeUrl)?.onlyName ?? resourceName(value);
}

/**
 * A named resource's name: the first field of its message (`name`, or `cluster_name` in a
 * ClusterLoadAssignment). Empty if it has none or the bytes are broken.
 */
export function resourceName(value: Uint8Array): string {
  return textField(value, 1);
}

function textField(message: Uint8Array, wanted: number): string {
  try {
    const reader = new BinaryReader(message);
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === wanted && wireType === WireType.LengthDelimited) return reader.string();
      reader.skip(wireType, field);
    }
  } catch {
    // Broken bytes have no name; decoding the message says what is wrong with them.
  }
  return "";
}
