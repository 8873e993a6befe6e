// A clone whose Tulle is measured: this one, or one of another commit, side by side under this one's bench.
import path from "node:path";
import { pathToFileURL } from "node:url";

export interface Tree {
  /** As tables call its Tulle. */
  readonly name: string;
  readonly folder: string;
}

export const ownTree: Tree = { name: "Tulle", folder: path.resolve(import.meta.dirname, "..") };

/** The Node that the tree pins. */
export function nodeOf({ folder }: Tree): string {
  return path.join(folder, "node_modules", ".bin", "node");
}

/** A module of the tree's own, `file` relative to it: what prepares work for a program has to be of the same commit. */
export async function importFrom(tree: Tree, file: string): Promise<unknown> {
  return import(pathToFileURL(path.join(tree.folder, file)).href);
}
