// Long messages on a narrow terminal: broken between words instead of anywhere.
import { padToWidth, textWidth } from "./text-width.ts";

/** A description that has less room beside its term stands below it. */
const leastRoom = 30;

/** Breaks `text` so that no line is longer than `columns`, but for words that are. Further lines begin with `indent`. */
export function wrapText(text: string, columns: number | undefined, indent = ""): string {
  if (columns === undefined || textWidth(text) <= columns) return text;
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (textWidth(longer) > columns && line.trim() !== "") {
      lines.push(line);
      line = indent + word;
    } else {
      line = longer;
    }
  }
  return [...lines, line].join("\n");
}

/** Each line for itself. Indented lines are examples and lists, to be copied as they are. */
export function wrapLines(text: string, columns: number | undefined): string {
  const lines = text.split("\n").map((line) => (line.startsWith(" ") ? line : wrapText(line, columns)));
  return lines.join("\n");
}

/** A line of a list: the term and, beside it or below it, what it means. `width` is that of the widest term. */
export function wrapItem(term: string, width: number, meaning: string, columns: number | undefined): string {
  const beside = width + 4;
  const isBelow = columns !== undefined && columns - beside < leastRoom && beside + textWidth(meaning) > columns;
  const indent = isBelow ? 6 : beside;
  const text = wrapText(meaning, columns === undefined ? undefined : columns - indent);
  const lines = text.replaceAll("\n", `\n${" ".repeat(indent)}`);
  return isBelow ? `  ${term}\n${" ".repeat(indent)}${lines}` : `  ${padToWidth(term, width)}  ${lines}`.trimEnd();
}
