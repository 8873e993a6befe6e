// Decodes a large message with pauses: a route configuration of ten thousand routes takes a tenth of a second, in which
// a proxy would serve nobody. What is cut is the list of fields; encodings that follow each other merge into one
// message (protobuf's encoding guide, "last one wins", lists append).
import type { Pauses } from "@tulle/timing";
import {
  type DescField,
  type DescMessage,
  type MessageShape,
  create,
  fromBinary,
  mergeFromBinary,
} from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** About a tenth of a millisecond. */
const pieceBytes = 4096;

/** The same message as `fromBinary` gives, and the same errors. */
export async function decodeInSlices<D extends DescMessage>(
  schema: D,
  bytes: Uint8Array,
  pauses: Pauses,
): Promise<MessageShape<D>> {
  if (bytes.length <= pieceBytes) return fromBinary(schema, bytes);
  const message = create(schema);
  await mergeInSlices(schema, message, bytes, pauses);
  return message;
}

async function mergeInSlices<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
  bytes: Uint8Array,
  pauses: Pauses,
): Promise<void> {
  const reader = new BinaryReader(bytes);
  let mergedUpTo = 0;
  const mergeUpTo = (position: number): void => {
    if (position > mergedUpTo) mergeFromBinary(schema, message, bytes.subarray(mergedUpTo, position));
    mergedUpTo = position;
  };
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [number, wireType] = reader.tag();
    const valueStart = reader.pos;
    reader.skip(wireType, number);
    const end = reader.pos;
    const field = end - start > pieceBytes ? messageList(schema, number, wireType) : undefined;
    if (field !== undefined) {
      // An element that is large itself, such as a virtual host with all of the routes.
      mergeUpTo(start);
      const element = create(field.message);
      await mergeInSlices(field.message, element, new BinaryReader(bytes.subarray(valueStart, end)).bytes(), pauses);
      (message as unknown as Record<string, unknown[]>)[field.localName]!.push(element);
      mergedUpTo = end;
    } else if (end - mergedUpTo >= pieceBytes) {
      mergeUpTo(end);
    }
    if (pauses.isDue) await pauses.take();
  }
  mergeUpTo(bytes.length);
}

type MessageList = DescField & { readonly fieldKind: "list"; readonly listKind: "message" };

function messageList(schema: DescMessage, number: number, wireType: WireType): MessageList | undefined {
  const field = schema.fields.find((each) => each.number === number);
  const isList = field?.fieldKind === "list" && field.listKind === "message" && wireType === WireType.LengthDelimited;
  return isList ? field : undefined;
}
