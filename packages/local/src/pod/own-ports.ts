// Whether it is the pod's own programs that take connections at its address. An address on loopback can be taken by
// anybody while the pod's program is not there, so that a probe that is answered well says nothing of who answers.
import {
  commandOf,
  environmentOf,
  familyOf,
  holdersOf,
  listeningSocket,
  listProcesses,
  type OwnedSocket,
  type ProcessRow,
} from "@tulle/capture";
import { ownUid, userName } from "@tulle/identity/own";

const rootUid = 0;

export interface OwnPortsOptions {
  readonly podName: string;
  readonly address: string;
  /** Process ids of the pod's programs; each leads a process group and a session. */
  readonly leaders: () => readonly number[];
}

export class OwnPorts {
  readonly #options: OwnPortsOptions;
  /** By port: the socket that was looked at last, and what came of it. */
  readonly #seen = new Map<number, { readonly cookie: bigint; readonly foreign: string | undefined }>();

  constructor(options: OwnPortsOptions) {
    this.#options = options;
  }

  /**
   * Who takes connections at one of the ports without being the pod's, and what to do; undefined when nobody does, or
   * it cannot be known.
   */
  foreignHolder(ports: readonly number[]): string | undefined {
    for (const port of ports) {
      const foreign = this.#foreignHolder(port);
      if (foreign !== undefined) return foreign;
    }
    return undefined;
  }

  #foreignHolder(port: number): string | undefined {
    const socket = listeningSocket({ ip: this.#options.address, port });
    if (typeof socket === "string") return undefined;
    const seen = this.#seen.get(port);
    if (seen?.cookie === socket.cookie) return seen.foreign;
    const holder = this.#holderBesidesPod(socket);
    const where = `${this.#options.address}:${port}`;
    const foreign =
      holder === undefined ? undefined : `${where} is held by ${holder}, which is not of this pod; end it`;
    this.#seen.set(port, { cookie: socket.cookie, foreign });
    return foreign;
  }

  /** The leaders are looked at first: nearly always one of them has it, and other processes need not be listed. */
  #holderBesidesPod({ inode, uid }: OwnedSocket): string | undefined {
    const leaders = this.#options.leaders();
    if (holdersOf(inode, leaders).length > 0) return undefined;
    const all = listProcesses();
    const family = new Set(leaders.flatMap((leader) => familyOf(leader, all)));
    if (holdersOf(inode, family).length > 0) return undefined;
    const isTrusted = uid === rootUid || uid === ownUid();
    const holders = holdersOf(
      inode,
      all.map(({ pid }: ProcessRow) => pid),
    );
    const podNames = holders.map((pid) => environmentOf(pid).get("POD_NAME"));
    // A daemon has left its family behind; its variables tell where it comes from. Those of another user could say
    // anything.
    if (isTrusted && podNames.includes(this.#options.podName)) return undefined;
    // Root may do anything here, as for a container whose port it forwards; only another pod's program is in the wrong
    // place.
    if (uid === rootUid && podNames.every((name) => name === undefined)) return undefined;
    const [pid] = holders;
    // A program with capabilities hides its files from its own user.
    if (isTrusted && pid === undefined) return undefined;
    const who = uid === ownUid() ? "" : `user ${userName(uid)}${pid === undefined ? "" : ", "}`;
    return `${who}${pid === undefined ? "" : `process ${pid} (${commandOf(pid)})`}`;
  }
}
