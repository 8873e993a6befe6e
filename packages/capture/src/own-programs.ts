// Which sockets are of this user's own programs, or of what root has started here.
import { familyOf, holdersOf, listProcesses } from "./processes.ts";
import type { OwnedSocket, SocketOwner } from "./socket-owner.ts";

/** To look through all processes costs tens of milliseconds, and others could make it necessary again and again. */
const searchEveryMs = 100;
const maxSearched = 256;
const initProcess = 1;

/**
 * True for our own user and for root, which may do anything here. A socket that no process has is nobody's: who has
 * sent a request and closed at once is not told from anybody else. Systems that do not tell (they are not Linux) let
 * everybody pass; `tulle up` says so.
 */
export function isOfOwnUser(owner: SocketOwner): boolean {
  if (typeof owner === "object") return owner.uid === 0 || owner.uid === process.getuid?.();
  return owner === "unknown";
}

export class OwnPrograms {
  /** The process that has started all of the mesh here. */
  readonly #starter: number;
  /** By the cookies of sockets that processes were looked through for: whether one of ours has it. */
  readonly #searched = new Map<bigint, boolean>();
  #searchAtMs = 0;

  constructor(starter = process.ppid) {
    this.#starter = starter;
  }

  areAt(owner: SocketOwner): boolean {
    return isOfOwnUser(owner) || (typeof owner === "object" && process.getuid?.() === 0 && this.#isOfOurMesh(owner));
  }

  /**
   * What root runs here may have gone over to another user, as a database does: what has started this process has
   * started it too.
   */
  #isOfOurMesh({ inode, cookie }: OwnedSocket): boolean {
    const known = this.#searched.get(cookie);
    const nowMs = performance.now();
    if (known !== undefined || nowMs < this.#searchAtMs || this.#starter === initProcess) return known ?? false;
    this.#searchAtMs = nowMs + searchEveryMs;
    const isOurs = holdersOf(inode, familyOf(this.#starter, listProcesses())).length > 0;
    if (this.#searched.size >= maxSearched) this.#searched.clear();
    this.#searched.set(cookie, isOurs);
    return isOurs;
  }
}
