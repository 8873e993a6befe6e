// Long messages on a narrow terminal: broken between words instead of anywhere.
import { padToWidth, textWidth } from "./text-width.ts";

/** How what an example is for begins. */
const comment = "  # ";

/** A description that has less room beside its term stands below it. */
const leastRoom = 30;

/**
 * Breaks `text` so that no line is longer than `columns`, but for words that are. Further lines begin with `indent`.
 */
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

/** Breaks `text` behind `before`, with which every line begins; further lines are indented by `indent` more. */
export function wrapBehind(before: string, text: string, columns: number | undefined, indent = ""): string {
  const room = columns === undefined ? undefined : columns - textWidth(before);
  return before + wrapText(text, room, indent).replaceAll("\n", `\n${before}`);
}

/**
 * Each line for itself. Indented lines are examples and lists, to be copied as they are; what an example is for stands
 * above it, as a comment of a shell.
 */
export function wrapLines(text: string, columns: number | undefined): string {
  const lines = text.split("\n").map((line) => {
    if (line.startsWith(comment)) return wrapBehind(comment, line.slice(comment.length), columns);
    return line.startsWith(" ") ? line : wrapText(line, columns, line.startsWith("Usage: ") ? "  " : "");
  });
  return lines.join("\n");
}

/** A line of a list: the term and, beside it or below it, what it means. `width` is that of the widest term. */
export function wrapItem(term: string, width: number, meaning: string, columns: number | undefined): string {
  const beside = width + 4;
  const isBelow = columns !== undefined && columns - beside < leastRoom && beside + textWidth(meaning) > columns;
  const text = wrapBehind(" ".repeat(isBelow ? 6 : beside), meaning, columns);
  return isBelow ? `  ${term}\n${text}` : `  ${padToWidth(term, width)}  ${text.trimStart()}`.trimEnd();
}
