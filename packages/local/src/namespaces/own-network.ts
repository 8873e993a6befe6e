// In namespaces mode the supervisor itself lives in a network of its own, to which the simulated nodes are connected; a
// thread of it stays in the machine's. Who is not root becomes root of a user namespace first, by starting again in the
// place of itself: the process, its terminal and its number stay.
import { closeSync, readlinkSync } from "node:fs";
import os from "node:os";
import { inheritedCopy, NetworkNamespace } from "@tulle/capture";
import { CannotStart } from "../cannot-start.ts";
import { MachineNetwork } from "./machine-network.ts";
import { findSystemPrograms } from "./system-programs.ts";
import { makeUserNamespace } from "./user-namespace.ts";

const variable = "TULLE_IN_USER_NAMESPACE";

type Environment = Readonly<Record<string, string | undefined>>;

export interface OwnNetwork {
  readonly machine: MachineNetwork;
  /** Programs outside of it enter it before they enter anything in it; undefined where there is none. */
  readonly userNamespace: string | undefined;
}

/**
 * Puts this process into a network with nothing in it. It may start this program again; `more` are descriptors that it
 * finds by their variables then.
 * @throws {CannotStart}
 */
export async function enterOwnNetwork(env: Environment, more: Readonly<Record<string, number>>): Promise<OwnNetwork> {
  const without = "Leave --mode namespaces out: loopback mode needs none of it.";
  if (process.platform !== "linux")
    throw new CannotStart("pods can have networks of their own on Linux alone", without);
  const entered = env[variable];
  const isInside = entered !== undefined;
  delete process.env[variable];
  if (isInside) closeNamespace(Number(entered));
  if (process.geteuid!() !== 0) return startAsRootOfItsOwn(env, more);
  findSystemPrograms(env["PATH"]);
  try {
    const machine = new MachineNetwork();
    NetworkNamespace.leaveCurrent();
    return { machine, userNamespace: isInside ? `/proc/${process.pid}/ns/user` : undefined };
  } catch (error) {
    throw new CannotStart(
      `no network can be made for the pods: ${(error as Error).message}`,
      `In a container it takes --privileged, or CAP_SYS_ADMIN and CAP_NET_ADMIN. ${without}`,
    );
  }
}

async function startAsRootOfItsOwn(env: Environment, more: Readonly<Record<string, number>>): Promise<never> {
  const programs = findSystemPrograms(env["PATH"], "ordinary");
  const namespace = await makeUserNamespace(programs);
  const inherited: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) inherited[name] = value;
  for (const [name, descriptor] of Object.entries(more)) inherited[name] = String(inheritedCopy(descriptor));
  const entered = inheritedCopy(namespace);
  // There root is looked up by the machine's list of users, which knows another folder.
  Object.assign(inherited, { HOME: os.homedir(), [variable]: String(entered) });
  const entering = [`--user=/proc/self/fd/${entered}`, "--setuid", "0", "--setgid", "0", "--"];
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  process.execve!(programs.nsenter, [programs.nsenter, ...entering, ...again], inherited);
  throw new Error("this process could not be started again");
}

/** Every program of the mesh would have it, too. Whoever has set the variable himself closes nothing else by it. */
function closeNamespace(descriptor: number): void {
  try {
    if (readlinkSync(`/proc/self/fd/${descriptor}`).startsWith("user:")) closeSync(descriptor);
  } catch {
    // It is not there.
  }
}
