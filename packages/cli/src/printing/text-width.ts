// How many columns of a terminal a text takes: names of people may be of any script.
import { stripVTControlCharacters } from "node:util";

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** East Asian Width W and F (Unicode UAX 11), and what is drawn as an emoji. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;
const withoutWidth = /^[\p{Mark}\p{Format}]+$/u;

export function textWidth(given: string): number {
  const text = given.includes("\u001b") ? stripVTControlCharacters(given) : given;
  // What nearly every text is made of.
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of graphemes.segment(text)) {
    if (!withoutWidth.test(segment)) columns += wide.test(segment) ? 2 : 1;
  }
  return columns;
}

/** `padEnd` by columns. */
export function padToWidth(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - textWidth(text)));
}
