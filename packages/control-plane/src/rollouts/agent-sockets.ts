// Whether it is a pod's agent that answers at the pod's address, where that is an address of this machine: while an
// agent starts again anybody may take it.
//
// The rule: the listening socket is of this process's own user, as every agent beside a control plane on its machine is
// (`tulle up` starts both), and of the processes that have it open one was started as the agent of that address
// (`INSTANCE_IP`, which programs of a pod do not get). Variables of other users' processes are not asked: they could
// say anything. A program of this user that says so too is believed; nothing keeps it from the agent's key either.
// Of addresses of other machines the kernel knows nothing.
import { commandOf, environmentOf, holdersOf, listProcesses, type OwnedSocket, type SocketOwner } from "@tulle/capture";
import { ownUid, userName } from "@tulle/identity/own";

/** By what `tulle agent` knows the pod's address (its `settings.ts`). */
const addressVariable = "INSTANCE_IP";
/** Sockets whose holders are remembered: to look through all processes costs milliseconds. */
const maxSeen = 4096;

export class AgentSockets {
  /** By the address and the socket's cookie, since one socket may have all addresses: what came of it. */
  readonly #seen = new Map<string, string | undefined>();

  /** Who has the socket without being the agent of that address, in words; undefined for the agent. */
  stranger(address: string, owner: SocketOwner): string | undefined {
    if (typeof owner === "string") return undefined;
    if (owner.uid !== ownUid()) return holderText(owner);
    const key = `${address} ${owner.cookie}`;
    if (this.#seen.has(key)) return this.#seen.get(key);
    const stranger = isOfAgent(address, owner) ? undefined : holderText(owner);
    if (this.#seen.size >= maxSeen) this.#seen.clear();
    this.#seen.set(key, stranger);
    return stranger;
  }
}

function isOfAgent(address: string, { inode }: OwnedSocket): boolean {
  const all = pids();
  const agents = all.filter((pid) => environmentOf(pid).get(addressVariable) === address);
  if (holdersOf(inode, agents).length > 0) return true;
  // A program with capabilities hides its files from its own user: nobody is seen to have the socket.
  return holdersOf(inode, all).length === 0;
}

function holderText({ inode, uid }: OwnedSocket): string {
  const [pid] = holdersOf(inode, pids());
  const program = pid === undefined ? "a program" : `process ${pid} (${commandOf(pid)})`;
  return uid === ownUid() ? program : `${program} of user ${userName(uid)}`;
}

function pids(): readonly number[] {
  return listProcesses().map(({ pid }) => pid);
}
