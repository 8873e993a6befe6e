// How commands about resources read their arguments: kinds by any of their names, files and standard input.
import {
  findKind,
  kindDefinitions,
  kinds,
  loadPaths,
  loadText,
  nearestName,
  type Kind,
  type Loaded,
} from "@tulle/config";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext } from "../command/command-module.ts";

/** Most bytes read from standard input. */
const maxStdinBytes = 16 * 1024 * 1024;

/** The kind that `name` means: `VirtualService`, `virtualservices` or `vs`. */
export function parseKind(name: string): Kind {
  const kind = findKind(name);
  if (kind !== undefined) return kind;
  const names = kinds.flatMap((each) => [
    each.toLowerCase(),
    kindDefinitions[each].plural,
    ...kindDefinitions[each].shortNames,
  ]);
  const near = nearestName(name, names);
  throw new CommandFailure(`there is no kind "${name}"`, {
    hint: `${near === undefined ? "" : `Did you mean "${near}"? `}Kinds: ${describeKinds()}.`,
    exitCode: exitCodes.usage,
  });
}

/** All kinds with their short names, for help texts. */
export function describeKinds(): string {
  return kinds
    .map((kind) => {
      const { plural, shortNames } = kindDefinitions[kind];
      return shortNames.length === 0 ? plural : `${plural} (${shortNames.join(", ")})`;
    })
    .join(", ");
}

/** Reads manifests from files, folders and, for `-`, from standard input. */
export async function loadManifests(paths: readonly string[], context: CommandContext): Promise<Loaded> {
  if (!paths.includes("-")) return loadPaths(paths);
  if (paths.length > 1) {
    throw new CommandFailure('"-" (standard input) cannot be mixed with files', { exitCode: exitCodes.usage });
  }
  return { ...loadText(await readStdin(context.stdin), "<stdin>"), files: ["<stdin>"] };
}

async function readStdin(stdin: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const buffer = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    bytes += buffer.length;
    if (bytes > maxStdinBytes) throw new CommandFailure(`standard input is longer than ${maxStdinBytes} bytes`);
    chunks.push(buffer);
  }
  return Buffer.concat(chunks);
}

/** As the table of kinds has them. */
export function inApplyOrder<T extends { readonly kind: Kind }>(resources: readonly T[]): readonly T[] {
  return resources.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
}

/** `virtualservice/catalog`, as kubectl names objects in its messages. */
export function displayName(kind: string, name: string): string {
  return `${kind.toLowerCase()}/${name}`;
}
