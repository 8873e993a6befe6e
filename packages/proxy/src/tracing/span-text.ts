// Text of a head for a span: heads are read a character a byte, spans are UTF-8.

/** A tag is a word to look for, no store: a path of 60 KiB in each of them would fill the buffers. */
export const maxTagCharacters = 4096;

export function spanText(wire: string): string {
  const text = wire.length > maxTagCharacters ? wire.slice(0, maxTagCharacters) : wire;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    // Beyond a byte: configuration wrote it, not the wire.
    if (code > 0xff) return text;
    if (code > 0x7f) return Buffer.from(text, "latin1").toString("utf8");
  }
  return text;
}
