// What a person types to run `tulle` again: messages that name a command to type say it so.
import path from "node:path";

export interface Invocation {
  /** The program as a launcher was started: `./tulle`, `/usr/local/bin/tulle`, or a script that nobody types. */
  readonly invokedAs: string | undefined;
  readonly cwd: string;
  readonly searchPath: string | undefined;
  /** The launcher of a clone; undefined for an installed package. */
  readonly cloneScript: string | undefined;
}

const plain = "tulle";

/** `tulle` where a shell finds it by that name, else the path to it from here. */
export function commandName({ invokedAs, cwd, searchPath = "", cloneScript }: Invocation): string {
  const isOnPath = (file: string): boolean =>
    searchPath
      .split(path.delimiter)
      .some((folder) => folder !== "" && path.join(folder, plain) === path.normalize(file));
  if (invokedAs === undefined) return plain;
  const isTyped = path.basename(invokedAs) === plain;
  // The script behind `npm start` is typed by nobody; what is typed in a clone is the one at its root.
  const file = isTyped ? invokedAs : cloneScript;
  if (file === undefined || isOnPath(file)) return plain;
  return quoted(asTypedFrom(cwd, path.resolve(cwd, file)));
}

function asTypedFrom(cwd: string, file: string): string {
  const relative = path.relative(cwd, file);
  const typed = relative.startsWith("..") ? relative : `./${relative}`;
  return typed.length < file.length ? typed : file;
}

/** By backslashes: the text around it may have quotes already. */
function quoted(file: string): string {
  return file.replaceAll(/[^\w./~+@%-]/g, String.raw`\$&`);
}

/**
 * The text with that name for `tulle` wherever a command is written out. Prose about Tulle, and the name at the start
 * of a message, stay.
 */
export function withCommandName(text: string, name: string, commands: readonly string[]): string {
  if (name === plain) return text;
  const typed = new RegExp(
    String.raw`(^|[\s'"(\x60])tulle(?= (?:${commands.join("|")}|<command>|…|--help)(?![\w-]))`,
    "gm",
  );
  return text.replaceAll(typed, (_all, before: string) => before + name);
}
