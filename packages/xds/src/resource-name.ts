// What can be read of a resource without its schema.
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/**
 * A resource's name: the first field of every xDS resource message (`name`, or `cluster_name` in a
 * ClusterLoadAssignment). Empty if it has none or the bytes are broken.
 */
export function resourceName(value: Uint8Array): string {
  try {
    const reader = new BinaryReader(value);
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === 1 && wireType === WireType.LengthDelimited) return reader.string();
      reader.skip(wireType, field);
    }
  } catch {
    // Broken bytes have no name; decoding the message says what is wrong with them.
  }
  return "";
}
