// Files that are looked at again when they may have changed: secrets that come by files, and the certificates that
// secrets name. What is watched are directories, because files are replaced by moving others into their place, and in
// Kubernetes by moving a link.
import { type FSWatcher, watch } from "node:fs";
import path from "node:path";
import type { Clock } from "@tulle/timing";
import type { Logger } from "@tulle/telemetry";

/** Changes within this time are one: a certificate and its key are written one after another. */
const settleMs = 100;

export interface WatchedFilesOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Something in the directories of that user has changed. */
  readonly onChange: (user: string) => void;
}

interface Watched {
  readonly watcher: FSWatcher;
  readonly users: Set<string>;
}

export class WatchedFiles {
  readonly #options: WatchedFilesOptions;
  readonly #directories = new Map<string, Watched>();
  readonly #pending = new Map<string, () => void>();

  constructor(options: WatchedFilesOptions) {
    this.#options = options;
  }

  /**
   * All that this user depends on, in the place of what it named before. Says which cannot be watched, such as those
   * that are not there.
   */
  set(user: string, directories: ReadonlySet<string>): readonly string[] {
    for (const [directory, watched] of this.#directories) {
      if (directories.has(directory) || !watched.users.delete(user)) continue;
      if (watched.users.size > 0) continue;
      watched.watcher.close();
      this.#directories.delete(directory);
    }
    return [...directories].filter((directory) => {
      const known = this.#directories.get(directory);
      if (known === undefined) return !this.#watch(directory, user);
      known.users.add(user);
      return false;
    });
  }

  close(): void {
    for (const { watcher } of this.#directories.values()) watcher.close();
    for (const cancel of this.#pending.values()) cancel();
    this.#directories.clear();
    this.#pending.clear();
  }

  #watch(directory: string, user: string): boolean {
    const { log } = this.#options;
    const fail = (error: Error): void => {
      log.warning("a directory cannot be watched: changes in it are not seen", { directory, reason: error.message });
    };
    try {
      const users = new Set([user]);
      const watcher = watch(directory, { persistent: false }, () => this.#changed(users));
      watcher.on("error", fail);
      this.#directories.set(directory, { watcher, users });
      return true;
    } catch (error) {
      fail(error as Error);
      return false;
    }
  }

  #changed(users: ReadonlySet<string>): void {
    for (const user of users) {
      if (this.#pending.has(user)) continue;
      const tell = (): void => {
        this.#pending.delete(user);
        this.#options.onChange(user);
      };
      this.#pending.set(user, this.#options.clock.after(settleMs, tell));
    }
  }
}

/** Where to look for changes of a file: in the directory that is named, or in its own. */
export function directoryOf(file: string, watchedDirectory: string | undefined): string {
  return watchedDirectory ?? path.dirname(file);
}
