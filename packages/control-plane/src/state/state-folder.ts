// What a control plane knows of itself from one start to the next: small texts, each by a name. Here they are files
// of the user's own; elsewhere they may be kept by whatever starts the control plane.
import path from "node:path";
import { writeSecretFile } from "@tulle/identity";
import { makeOwnFolder, readOwnFile } from "@tulle/identity/own";
import type { Logger } from "@tulle/telemetry";

export interface KeptText {
  readonly text: string;
  /** Others could read it: a secret is to be made anew. */
  readonly mayBeKnown: boolean;
}

export interface VersionedText {
  /** Undefined where there is none. */
  readonly text: string | undefined;
  /** Undefined where there is none, or nobody else writes. */
  readonly version: string | undefined;
}

export interface KeptTexts {
  /** Undefined where there is none. @throws where it cannot be read, or may be somebody else's */
  read(name: string): Promise<KeptText | undefined>;
  /** In one step: a process that dies here leaves the old text or the new one. */
  write(name: string, text: string): Promise<void>;
  /** Where there is none. Resolves to what there is then: of several control planes that share it, one has written. */
  writeNew(name: string, text: string): Promise<string>;
  /** The text, and the version over which it can be written. */
  readVersion(name: string): Promise<VersionedText>;
  /** Undefined where another has written since that version: nothing has changed then. */
  writeOver(
    name: string,
    text: string,
    version: string | undefined,
  ): Promise<Pick<VersionedText, "version"> | undefined>;
  /** Calls back when another may have written any of them, where others can. Returns how to end that. */
  follow?(listener: () => void): () => void;
  /** Where a person finds it. */
  placeOf(name: string): string;
}

export class StateFolder implements KeptTexts {
  readonly path: string;
  /** Others could reach the folder until now. */
  readonly #wasOpenToOthers: boolean;

  /** Made where it is missing. @throws {NotOwn} where another user owns it, or has put something into it */
  constructor(folder: string, log: Pick<Logger, "warning">) {
    this.path = folder;
    this.#wasOpenToOthers = makeOwnFolder(folder);
    if (this.#wasOpenToOthers)
      log.warning("other users could reach the state directory: it is closed, and has a new token", {
        stateDirectory: folder,
      });
  }

  async read(name: string): Promise<KeptText | undefined> {
    const file = readOwnFile(this.placeOf(name));
    return file && { text: file.text, mayBeKnown: this.#wasOpenToOthers || file.isOpenToOthers };
  }

  write(name: string, text: string): Promise<void> {
    return writeSecretFile(this.placeOf(name), text);
  }

  async writeNew(name: string, text: string): Promise<string> {
    await this.write(name, text);
    return text;
  }

  async readVersion(name: string): Promise<VersionedText> {
    return { text: (await this.read(name))?.text, version: undefined };
  }

  async writeOver(name: string, text: string): Promise<Pick<VersionedText, "version">> {
    await this.write(name, text);
    return { version: undefined };
  }

  placeOf(name: string): string {
    return path.join(this.path, name);
  }
}
