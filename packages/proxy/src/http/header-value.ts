// Text that is to stand in a head. Heads go out as latin1, so that other characters must have become bytes before, and
// no text from outside may end the line that it stands in (RFC 9110 §5.5).

// oxlint-disable-next-line no-control-regex -- control characters are what is being looked for
const controlCharacter = /[\0-\x08\x0a-\x1f\x7f]/;
// oxlint-disable-next-line no-control-regex -- as above
const controlCharacters = /[\0-\x08\x0a-\x1f\x7f]/g;
const unsafeCharacter = /[^\t\x20-\x7e\x80-\xff]/;
const wideCharacter = /[^\0-\xff]/;
const wideCharacters = /[^\0-\xff]/g;

/** True when the text would end a line, or is not allowed in a field at all. */
export function hasControlCharacter(text: string): boolean {
  return controlCharacter.test(text);
}

/** The text as the latin1 characters of its UTF-8 bytes. */
export function utf8AsLatin1(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const beyondAscii = /[\x80-\xff]/;

/** What latin1 characters of a head say where their bytes are UTF-8; the same text where they are not. */
export function textOfBytes(value: string): string {
  if (!beyondAscii.test(value)) return value;
  try {
    return utf8.decode(Buffer.from(value, "latin1"));
  } catch {
    return value;
  }
}

const runsBeyondAscii = /[\x80-\xff]+/g;

/** The same for a line of several texts: what is UTF-8 in it is said once, in the characters that it means. */
export function textOfRuns(line: string): string {
  return beyondAscii.test(line) ? line.replace(runsBeyondAscii, textOfBytes) : line;
}

/** Control characters become spaces, as RFC 9110 §5.5 has it for fields. */
export function withoutControlCharacters(text: string): string {
  return controlCharacter.test(text) ? text.replace(controlCharacters, " ") : text;
}

/** A field value made of anything, as it may go on the wire. */
export function fieldValue(text: string): string {
  if (!unsafeCharacter.test(text)) return text;
  return withoutControlCharacters(wideCharacter.test(text) ? utf8AsLatin1(text) : text);
}

/**
 * The last line of defence before the wire: a character above U+00FF would be cut to its low byte there, which may be a
 * line feed. The length stays.
 */
export function latin1Only(text: string): string {
  return wideCharacter.test(text) ? text.replace(wideCharacters, "?") : text;
}
