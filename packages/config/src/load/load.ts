/**
 * Reads manifests: folders and files of YAML (several documents a file) and JSON become resources and findings. A
 * document that cannot be read never stops the others.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Finding } from "../findings/finding.ts";
import { parseDocuments } from "../documents/parse-documents.ts";
import { parseResource } from "./parse-resource.ts";
import { placeOf } from "../findings/places.ts";
import { keyOf, keyText } from "../kinds/resource.ts";
import type { MeshResource } from "../kinds/resource.ts";

/** Largest manifest file. */
export const maxFileBytes = 16 * 1024 * 1024;

export interface Loaded {
  /** One resource for each key, in the order of the files (by name) and documents. */
  readonly resources: readonly MeshResource[];
  /** What is left of refused documents, for analysis alone. */
  readonly drafts: readonly MeshResource[];
  readonly findings: readonly Finding[];
  /** The files that were read. */
  readonly files: readonly string[];
}

/** Reads files and folders in the order given; a folder stands for its own .yaml, .yml and .json files by name. */
export async function loadPaths(paths: readonly string[]): Promise<Loaded> {
  const files: { readonly file: string; readonly isFromFolder: boolean }[] = [];
  const findings: Finding[] = [];
  for (const path of paths) {
    try {
      if ((await stat(path)).isDirectory()) {
        const names = (await readdir(path)).filter((name) => /\.(ya?ml|json)$/i.test(name)).sort();
        if (names.length === 0) findings.push(nothingIn(path));
        for (const name of names) files.push({ file: join(path, name), isFromFolder: true });
      } else {
        files.push({ file: path, isFromFolder: false });
      }
    } catch (error) {
      findings.push(unreadable(path, error));
    }
  }
  const loads: Omit<Loaded, "files">[] = [{ resources: [], drafts: [], findings }];
  for (const { file, isFromFolder } of files) loads.push(await loadFile(file, isFromFolder));
  return { ...mergeLoads(loads), files: files.map(({ file }) => file) };
}

async function loadFile(file: string, isFromFolder: boolean): Promise<Omit<Loaded, "files">> {
  try {
    const stats = await stat(file);
    // A pipe may be named on the command line; in a folder nobody means one, and reading it could wait for ever.
    if (isFromFolder && !stats.isFile()) return { resources: [], drafts: [], findings: [] };
    const { size } = stats;
    if (size > maxFileBytes) {
      return {
        resources: [],
        drafts: [],
        findings: [unreadable(file, new Error(`it has ${size} bytes, the limit is ${maxFileBytes}`))],
      };
    }
    return loadText(await readFile(file), file, { isFromFolder });
  } catch (error) {
    return { resources: [], drafts: [], findings: [unreadable(file, error)] };
  }
}

/** Reads the text of one file. `file` is the name that findings give. */
export function loadText(
  text: string | Uint8Array,
  file: string,
  options: { readonly isFromFolder?: boolean } = {},
): Omit<Loaded, "files"> {
  const { documents, findings } = parseDocuments(text, file);
  const loads: Omit<Loaded, "files">[] = [{ resources: [], drafts: [], findings }];
  for (const { value, places } of documents) {
    // A folder of manifests may hold a package.json: pointed out, but no error, unless it was asked for by name.
    if (options.isFromFolder === true && !looksLikeResource(value)) {
      const message = "this is no resource (it has neither apiVersion nor kind) and was left out";
      loads.push({
        resources: [],
        drafts: [],
        findings: [{ code: "TUL0002", severity: "info", message, place: { file, line: 1, column: 1 } }],
      });
      continue;
    }
    const { resource, draft, findings: found } = parseResource(value, places);
    loads.push({
      resources: resource === undefined ? [] : [resource],
      drafts: draft === undefined ? [] : [draft],
      findings: found,
    });
  }
  return mergeLoads(loads);
}

function looksLikeResource(value: unknown): boolean {
  return typeof value === "object" && value !== null && ("apiVersion" in value || "kind" in value);
}

/** Of two definitions of one object the last wins, and both places are told. */
function mergeLoads(loads: readonly Omit<Loaded, "files">[]): Omit<Loaded, "files"> {
  const resources = new Map<string, MeshResource>();
  const findings: Finding[] = [];
  for (const load of loads) {
    findings.push(...load.findings);
    for (const resource of load.resources) {
      const key = keyText(keyOf(resource));
      const earlier = resources.get(key);
      if (earlier !== undefined) findings.push(...definedTwice(earlier, resource));
      // The place in the order stays that of the first definition.
      resources.set(key, resource);
    }
  }
  const drafts = loads.flatMap((load) => load.drafts).filter((draft) => !resources.has(keyText(keyOf(draft))));
  return { resources: [...resources.values()], drafts, findings };
}

function definedTwice(earlier: MeshResource, later: MeshResource): readonly Finding[] {
  const shared = { code: "TUL0004", severity: "warning", resource: keyOf(later) } as const;
  const suggestion = "Remove one of the two definitions.";
  const earlierPlace = placeOf(earlier);
  const laterPlace = placeOf(later);
  const at = (place: typeof earlierPlace): string =>
    place === undefined ? "elsewhere" : `at ${place.file}:${place.line}:${place.column}`;
  return [
    {
      ...shared,
      message: `defined again ${at(laterPlace)}; this definition is not used`,
      suggestion,
      ...(earlierPlace === undefined ? {} : { place: earlierPlace }),
    },
    {
      ...shared,
      message: `defined before ${at(earlierPlace)}; this definition, the last one, is used`,
      suggestion,
      ...(laterPlace === undefined ? {} : { place: laterPlace }),
    },
  ];
}

function nothingIn(folder: string): Finding {
  return {
    code: "TUL0002",
    severity: "warning",
    message: `the folder ${folder} holds no .yaml, .yml or .json file`,
    suggestion: "Sub-folders are not read; name the folder that holds the manifests.",
    place: { file: folder, line: 1, column: 1 },
  };
}

function unreadable(path: string, error: unknown): Finding {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const reason = error instanceof Error ? error.message : String(error);
  const message = code === "ENOENT" ? `there is no file or folder ${path}` : `${path} cannot be read: ${reason}`;
  return { code: "TUL0002", severity: "error", message, place: { file: path, line: 1, column: 1 } };
}
