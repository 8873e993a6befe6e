// Reads a file that is believed because nobody but this user can have written it.
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { NotOwn, openToOthers, requireNoOtherWriter, requireOwner } from "./not-own.ts";

export interface OwnFile {
  readonly text: string;
  /** Others may read it. */
  readonly isOpenToOthers: boolean;
}

/**
 * Undefined where there is no file. What is looked at is the opened file, so that no other can take its place
 * meanwhile.
 * @throws {NotOwn} for another user's file, one that others may write, or what is no file
 */
export function readOwnFile(file: string): OwnFile | undefined {
  let descriptor: number;
  try {
    // Not blocking: opening a pipe would wait for somebody to write to it.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    if (code === "ELOOP") throw new NotOwn(`${file} is a symbolic link: what it leads to is not believed`);
    throw error;
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw new NotOwn(`${file} is no file`);
    requireOwner(file, stats.uid);
    requireNoOtherWriter(file, stats.mode, "file");
    return { text: readFileSync(descriptor, "utf8"), isOpenToOthers: (stats.mode & openToOthers) !== 0 };
  } finally {
    closeSync(descriptor);
  }
}
