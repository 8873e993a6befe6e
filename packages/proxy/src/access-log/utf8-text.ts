// Text of heads and certificates as text of a message, which must be UTF-8: characters up to U+00FF stand for bytes.

const beyondAscii = /[\x80-\uffff]/;
const wide = /[\u0100-\uffff]/;
/** RFC 3629 §4, "Syntax of UTF-8 Byte Sequences", over the characters that stand for bytes. */
const sequences =
  /([\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})|[\x80-\xff]/g;

/** What the bytes say; one that is no part of UTF-8 is `!`, as in Envoy's entries. Text that is none of bytes stays. */
export function utf8Text(text: string): string {
  if (!beyondAscii.test(text) || wide.test(text)) return text;
  return text.replace(sequences, (_byte, sequence: string | undefined) =>
    sequence === undefined ? "!" : Buffer.from(sequence, "latin1").toString(),
  );
}
