// In namespaces mode the supervisor itself lives in a network of its own, to which the simulated nodes are connected.
// It gets there by starting again in the place of itself: the process, its terminal and its number stay. The machine's
// network comes along as a descriptor, for published ports.
import { inheritedCopy, NetworkNamespace } from "@tulle/capture";
import { CannotStart } from "../cannot-start.ts";
import { findSystemPrograms } from "./system-programs.ts";

const variable = "TULLE_MACHINE_NETWORK_FD";

type Environment = Readonly<Record<string, string | undefined>>;

/** The machine's network, where this process was started again in one of its own; undefined before that. */
export function takeMachineNetwork(env: Environment): NetworkNamespace | undefined {
  const descriptor = env[variable];
  delete process.env[variable];
  return descriptor === undefined ? undefined : NetworkNamespace.of(Number(descriptor));
}

/**
 * Starts this program again, in a network with nothing in it; it comes back only by an error. `more` are descriptors
 * that it finds by their variables.
 * @throws {CannotStart}
 */
export function startInOwnNetwork(env: Environment, more: Readonly<Record<string, number>>): never {
  const without = "Leave --mode namespaces out: loopback mode needs none of it.";
  if (process.platform !== "linux")
    throw new CannotStart("pods can have networks of their own on Linux alone", without);
  findSystemPrograms(env["PATH"]);
  if (process.geteuid?.() !== 0) {
    throw new CannotStart(
      "it takes root to give pods networks of their own (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
      `Run it as root, in a clone that is root's. ${without}`,
    );
  }
  const machine = NetworkNamespace.current();
  try {
    NetworkNamespace.leaveCurrent();
  } catch (error) {
    throw new CannotStart(
      `no network can be made for the pods: ${(error as Error).message}`,
      `In a container it takes --privileged, or CAP_SYS_ADMIN and CAP_NET_ADMIN. ${without}`,
    );
  }
  const inherited: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) inherited[name] = value;
  const descriptors = { ...more, [variable]: machine.descriptor };
  for (const [name, descriptor] of Object.entries(descriptors)) inherited[name] = String(inheritedCopy(descriptor));
  process.execve!(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], inherited);
  throw new Error("this process could not be started again");
}
