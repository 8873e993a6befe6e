// What `--help` prints: every setting of the table, each flag on a line of its own with its meaning below, so that it
// reads alike in narrow and wide terminals.
import type { Setting } from "./settings.ts";
import { environmentName, settings } from "./settings.ts";

const lineWidth = 79;
const indent = " ".repeat(8);

export function helpText(): string {
  const flags = settings.map((setting) => entry(flagOf(setting), meaningOf(setting)));
  return [
    "Usage: npm run authorization-server -- [flags]",
    "",
    entry("--config FILE", "YAML or JSON file with these settings"),
    ...flags,
    "",
    `Each setting is also read from the environment, such as ${environmentName(settings[0]!)}.`,
  ].join("\n");
}

function flagOf({ name, kind }: Setting): string {
  return kind === "flag" ? `--${name}` : `--${name} ${kind.toUpperCase()}`;
}

function meaningOf({ help, kind, choices, fallback }: Setting): string {
  const values = choices === undefined ? "" : `: ${choices.join(", ")}`;
  return `${help}${values}${kind === "flag" || fallback === "" ? "" : ` (default ${fallback})`}`;
}

function entry(flag: string, meaning: string): string {
  const lines = [`    ${flag}`, indent.trimEnd()];
  for (const word of meaning.split(" ")) {
    const last = lines.at(-1)!;
    const longer = last === "" ? indent + word : `${last} ${word}`;
    if (longer.length <= lineWidth || last === "") lines[lines.length - 1] = longer;
    else lines.push(indent + word);
  }
  return lines.join("\n");
}
