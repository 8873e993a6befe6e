// Long messages on a narrow terminal: broken between words instead of anywhere.

/** Breaks `text` so that no line is longer than `columns`, but for words that are. Further lines begin with `indent`. */
export function wrapText(text: string, columns: number | undefined, indent = ""): string {
  if (columns === undefined || text.length <= columns) return text;
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (longer.length > columns && line.trim() !== "") {
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
