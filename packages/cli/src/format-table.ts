// Columns for people: as wide as their widest cell, two spaces apart, without trailing blanks.

export function formatTable(header: readonly string[], rows: readonly (readonly string[])[], gap = 2): string {
  const lines = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, column) => cell.padEnd(widths[column]! + gap))
          .join("")
          .trimEnd()}\n`,
    )
    .join("");
}
