// Columns for people: as wide as their widest cell, two spaces apart, without trailing blanks.
import { printable } from "@tulle/telemetry";
import { padToWidth, textWidth } from "./text-width.ts";
import { wrapBehind } from "./wrap-text.ts";

function formatTable(header: readonly string[], rows: readonly (readonly string[])[], gap: number): string {
  const lines = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => textWidth(line[column] ?? ""))));
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, column) => padToWidth(cell, widths[column]! + gap))
          .join("")
          .trimEnd()}\n`,
    )
    .join("");
}

/**
 * What others have named themselves stays in its cell: it ends no line, and steers no terminal that the output comes to
 * later.
 */
function printableCells(rows: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return rows.map((row) => row.map((cell) => printable(cell)));
}

export interface FittingOptions {
  /** Width of the terminal, if there is one. */
  readonly columns: number | undefined;
  /** Spaces between columns, tried in this order. */
  readonly gaps?: readonly number[];
  /** Column that a row is known by. */
  readonly title: number;
  /** Said in the place of a table without rows. */
  readonly empty?: string;
}

/**
 * The table. Where the terminal is narrower than that: each row's title on a line of its own above its other columns;
 * and where even that is too wide, one paragraph a row, with a line for each other column.
 */
export function formatFitting(
  header: readonly string[],
  given: readonly (readonly string[])[],
  { columns = Number.POSITIVE_INFINITY, gaps = [2], title, empty }: FittingOptions,
): string {
  if (given.length === 0 && empty !== undefined) return `${empty}\n`;
  const rows = printableCells(given);
  for (const gap of gaps) {
    const table = formatTable(header, rows, gap);
    if (fits(table, columns)) return table;
  }
  const titled = underTitles(header, rows, title);
  if (fits(titled, columns)) return titled;
  const others = header.map((name, column) => ({ name, column })).filter(({ column }) => column !== title);
  const width = Math.max(...others.map(({ name }) => name.length));
  return rows
    .map((row) => {
      // In a paragraph nothing needs a place of its own to be absent.
      const present = others.filter(({ column }) => !absent.has(row[column] ?? ""));
      const lines = present.map(({ name, column }) => {
        const value = row[column] ?? "";
        const room = columns - width - 4;
        // A word that is too long beside its name stands below it.
        if (value.split(" ").some((word) => textWidth(word) > room))
          return `  ${name}\n${wrapBehind("    ", value, columns)}`;
        return `  ${name.padEnd(width)}  ${wrapBehind(" ".repeat(width + 4), value, columns).trimStart()}`.trimEnd();
      });
      return [row[title] ?? "", ...lines].map((line) => `${line}\n`).join("");
    })
    .join("\n");
}

const absent: ReadonlySet<string> = new Set(["", "-"]);

function fits(text: string, columns: number): boolean {
  return text.split("\n").every((line) => textWidth(line) <= columns);
}

function underTitles(header: readonly string[], rows: readonly (readonly string[])[], title: number): string {
  const indented = (line: readonly string[]): string[] => ["", ...line.filter((_, column) => column !== title)];
  const lines = formatTable(indented(header), rows.map(indented), 2).split("\n");
  const titles = [header[title]!, ...rows.map((row) => row[title] ?? "")];
  return titles.map((text, index) => `${text}\n${lines[index]!}\n`).join("");
}
