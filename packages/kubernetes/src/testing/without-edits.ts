// Undoes the edits of a file, for tests, by the new text and by what the edits say of the old one.
import type { Edit } from "../inject/text/edit-yaml.ts";

/** What was inserted is cut out of `text`; in the place of what was replaced stands what `original` has there. */
export function withoutEdits(text: string, original: string, edits: readonly Edit[]): string {
  let result = "";
  let at = 0;
  let end = 0;
  for (const { offset, length, text: put } of edits) {
    const kept = offset - end;
    result += text.slice(at, at + kept) + original.slice(offset, offset + length);
    at += kept + put.length;
    end = offset + length;
  }
  return result + text.slice(at);
}
