// Finds the shell commands that README and docs show, and what the comments before each say about running it:
//
// - `<!-- run: SESSION -->`: docs-commands.test.ts or docs-commands.long.test.ts runs it. The blocks of a page with the
//   same session name share one working folder. "shared shop" is one for all pages: each undoes what it changes;
//   `./tulle down` and what follows on its page wait for the end. "cluster" is for pages about clusters, each of which
//   leaves its cluster empty.
// - `<!-- prints: TEXT -->`, after that: the block's output holds this text. It may be repeated.
// - `<!-- not run: REASON -->`: shown only, and why.

export interface ShellBlock {
  /** Relative to the repository's root. */
  readonly page: string;
  /** Of the opening fence, from 1. */
  readonly line: number;
  readonly commands: string;
  readonly fate: BlockFate;
}

export type BlockFate =
  | { readonly kind: "run"; readonly session: string; readonly prints: readonly string[] }
  | { readonly kind: "notRun"; readonly reason: string }
  | { readonly kind: "unmarked" };

const shellFence = /^(\s*)```(sh|bash|shell|console|zsh)\s*$/;

export function shellBlocks(page: string, markdown: string): readonly ShellBlock[] {
  const lines = markdown.split("\n");
  const blocks: ShellBlock[] = [];
  for (let at = 0; at < lines.length; at++) {
    const fence = shellFence.exec(lines[at]!);
    if (fence === null) continue;
    const indent = fence[1]!;
    const end = lines.findIndex((line, index) => index > at && line.trim() === "```");
    const body = lines
      .slice(at + 1, end < 0 ? undefined : end)
      .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
    blocks.push({ page, line: at + 1, commands: body.join("\n"), fate: fateOf(commentsBefore(lines, at)) });
    at = end < 0 ? lines.length : end;
  }
  return blocks;
}

/** The comments that stand directly before a line, first one first. */
function commentsBefore(lines: readonly string[], at: number): readonly string[] {
  const comments: string[] = [];
  for (let index = at - 1; index >= 0; index--) {
    const comment = /^\s*<!--\s*(.*?)\s*-->\s*$/.exec(lines[index]!)?.[1];
    if (comment === undefined) break;
    comments.unshift(comment);
  }
  return comments;
}

function fateOf(comments: readonly string[]): BlockFate {
  const value = (key: string) =>
    comments.filter((comment) => comment.startsWith(`${key}:`)).map((comment) => comment.slice(key.length + 1).trim());
  const [reason] = value("not run");
  if (reason !== undefined && reason !== "") return { kind: "notRun", reason };
  const [session] = value("run");
  if (session !== undefined && session !== "") return { kind: "run", session, prints: value("prints") };
  return { kind: "unmarked" };
}
