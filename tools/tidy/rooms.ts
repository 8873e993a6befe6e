// The order of the folders inside a package, its rooms: read from tables in ARCHITECTURE.md, so that the page and the
// check cannot differ. A file imports values only from its own room and from those below it; types may come from above,
// in circles of few files.
import path from "node:path";
import { importsOf } from "./import-table.ts";
import { isHandWrittenCode, type Finding, type SourceFile } from "./source-file.ts";
import { isOfTests } from "./test-code.ts";

export interface RoomTable {
  readonly folder: string;
  /** The lowest first. A room may lie inside another. */
  readonly rooms: readonly string[];
}

/** Files that know each other by their types alone; more are one thing in many files. */
const maxCircle = 3;

export function readRoomTables(markdown: string): readonly RoomTable[] {
  return [
    ...markdown.matchAll(/<!-- rooms of (\S+), the lowest first: read by tools\/tidy\.ts -->\s*((?:\|.*\n)+)/g),
  ].map(([, folder = "", table = ""]) => ({
    folder,
    rooms: [...table.matchAll(/^\| `([a-z0-9/-]+)`/gm)].map(([, room = ""]) => room),
  }));
}

interface Import {
  readonly target: string;
  readonly isType: boolean;
  readonly line: number;
}

export function checkRooms(files: readonly SourceFile[], { folder, rooms }: RoomTable): readonly Finding[] {
  const own = files.filter((file) => file.path.startsWith(`${folder}/`) && isHandWrittenCode(file) && !isOfTests(file));
  const imports = new Map(own.map((file) => [file.path, importsWithin(file)]));
  // Files beside the rooms put them together, and stand above them.
  const heightOf = (file: string): number => {
    const within = file.slice(folder.length + 1);
    if (!within.includes("/")) return rooms.length;
    const room = rooms
      .filter((each) => within.startsWith(`${each}/`))
      .reduce((a, b) => (a.length > b.length ? a : b), "");
    return rooms.indexOf(room);
  };
  return own.flatMap(({ path: from }): readonly Finding[] => {
    const height = heightOf(from);
    if (height < 0) return [error(from, undefined, `is in no room of ${folder} (ARCHITECTURE.md)`)];
    return imports
      .get(from)!
      .filter(({ target, isType }) => !isType && heightOf(target) > height)
      .map(({ target, line }) => error(from, line, `runs up: ${target} is in a higher room (ARCHITECTURE.md)`));
  });
}

/** Of all packages, with rooms or without. */
export function checkCircles(files: readonly SourceFile[]): readonly Finding[] {
  const own = files.filter((file) => file.path.startsWith("packages/") && isHandWrittenCode(file) && !isOfTests(file));
  const graph = new Map(own.map((file) => [file.path, importsWithin(file).map(({ target }) => target)]));
  return findCircles(graph)
    .filter((circle) => circle.length > maxCircle)
    .map((circle) => error(circle[0]!, undefined, `is in a circle of ${circle.length} files: ${circle.join(", ")}`));
}

function error(place: string, line: number | undefined, message: string): Finding {
  return { place, ...(line !== undefined && { line }), severity: "error", message };
}

function importsWithin(file: SourceFile): readonly Import[] {
  return importsOf(file)
    .filter(({ specifier }) => specifier.startsWith("."))
    .map(({ specifier, isType, line }) => ({
      target: path.posix.join(path.posix.dirname(file.path), specifier),
      isType,
      line,
    }));
}

/**
 * The groups of files each of which leads to each other (Tarjan's strongly connected components), in the order of their
 * names.
 */
function findCircles(graph: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string): void => {
    index.set(file, index.size);
    low.set(file, index.get(file)!);
    stack.push(file);
    for (const next of graph.get(file)!) {
      if (!graph.has(next)) continue;
      if (!index.has(next)) {
        visit(next);
        low.set(file, Math.min(low.get(file)!, low.get(next)!));
      } else if (stack.includes(next)) {
        low.set(file, Math.min(low.get(file)!, index.get(next)!));
      }
    }
    if (low.get(file) === index.get(file)) circles.push(stack.splice(stack.indexOf(file)).toSorted());
  };
  for (const file of graph.keys()) if (!index.has(file)) visit(file);
  return circles;
}
