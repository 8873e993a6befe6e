// Where an authority's state outlives the process: files on a laptop, something that several control planes share
// elsewhere. Whoever opens the authority brings it along.
import type { CheckedAuthority } from "./check-authority.ts";

export interface AuthorityStorage {
  /** Where a person finds the state, for messages. */
  readonly place: string;
  /** Where a person puts an authority of their own. */
  readonly givenPlace: string | undefined;
  /** The newest state that there is; undefined where there is none. @throws where it cannot be said */
  read(): Promise<string | undefined>;
  /**
   * Puts a state in the place of the one that was last read or written here, in one step, and with it the roots for
   * everyone to read. False where another control plane has written since: nothing has changed then.
   */
  write(state: string, rootsPem: string): Promise<boolean>;
  /** An authority of the operator's own, which wins; undefined where there is none. */
  readGiven(nowMs: number): Promise<CheckedAuthority | undefined>;
  /** At start: somebody may have removed the roots, or edited them, since they were written. */
  keepRoots?(rootsPem: string): Promise<void>;
  /** Calls back when another may have changed the state, or the operator's authority. Returns how to end that. */
  follow?(listener: () => void): () => void;
}
