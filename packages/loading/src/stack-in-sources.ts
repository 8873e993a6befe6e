// Stack traces of a bundled program name its bundle: here they name the sources, as they do without one.
import { existsSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Of an ES module, or of a file of CommonJS. */
const place = /(?:file:\/\/)?\/[^\s()]+?\.[cm]js:\d+:\d+/g;

/** `stack` with the places of the sources. Maps are read now: only a failure is worth their time and memory. */
export function stackInSources(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replaceAll(place, (text) => {
    const [, code = "", line = "", column = ""] = /^(.*):(\d+):(\d+)$/.exec(text) ?? [];
    const file = code.startsWith("file:") ? fileURLToPath(code) : code;
    if (!maps.has(file)) maps.set(file, mapOf(file));
    const origin = maps.get(file)?.findOrigin(Number(line), Number(column));
    if (origin === undefined || !("fileName" in origin)) return text;
    return `${path.resolve(path.dirname(file), origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function mapOf(file: string): SourceMap | undefined {
  const map = `${file}.map`;
  if (!existsSync(map)) return undefined;
  return new SourceMap(JSON.parse(readFileSync(map, "utf8")) as ConstructorParameters<typeof SourceMap>[0]);
}
