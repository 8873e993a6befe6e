// Takes a message apart at one of its lists without decoding it: a route configuration of ten thousand routes is then
// read one route at a time, with pauses between them, and nothing of it but its bytes is kept.
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

export interface SplitMessage {
  /**
   * The message without the list; encodings that follow each other merge into one message (protobuf's encoding guide).
   */
  readonly rest: Uint8Array;
  /** The encoded elements; views of the message's own bytes. */
  readonly elements: readonly Uint8Array[];
}

/**
 * `fieldNumber` is that of a repeated message field.
 * @throws RangeError where the bytes are cut short or are no message
 */
export function splitList(bytes: Uint8Array, fieldNumber: number): SplitMessage {
  const reader = new BinaryReader(bytes);
  const elements: Uint8Array[] = [];
  const others: Uint8Array[] = [];
  let othersStart = 0;
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [number, wireType] = reader.tag();
    if (number !== fieldNumber || wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, number);
      continue;
    }
    if (start > othersStart) others.push(bytes.subarray(othersStart, start));
    elements.push(reader.bytes());
    othersStart = reader.pos;
  }
  if (reader.len > othersStart) others.push(bytes.subarray(othersStart));
  return { rest: others.length === 1 ? others[0]! : Buffer.concat(others), elements };
}
