// The words that start a program in a pod: its network and its files first, then its folder, then its user and rights.
import type { ProgramStart, ProgramUser } from "../network/pod-network.ts";
import type { SystemPrograms } from "./system-programs.ts";

/** Istio's: what it sends is not captured. */
export const proxyUser = 1337;

/**
 * What a program of root keeps. None of these leads out of the pod's network, changes its rules or makes it the proxy's
 * user.
 */
const rootRights = ["chown", "dac_override", "fowner", "fsetid", "kill", "net_bind_service"];

export interface PodSpaces {
  /** Paths of the namespaces. */
  readonly network: string;
  readonly mounts: string;
}

export function startWords(
  { nsenter, env, setpriv }: SystemPrograms,
  { network, mounts }: PodSpaces,
  { cwd, user }: ProgramStart,
): readonly string[] {
  return [
    nsenter,
    `--net=${network}`,
    `--mount=${mounts}`,
    "--",
    // Entering the files leads to their root.
    env,
    "-C",
    cwd,
    setpriv,
    ...userWords(user),
    "--",
  ];
}

function userWords(user: ProgramUser): readonly string[] {
  if (user === "proxy") {
    // Installation and state may lie in folders that nobody else may enter. It reads them, and writes to its own alone.
    const right = "+dac_read_search";
    return [
      ...identity(proxyUser, proxyUser),
      `--inh-caps=-all,${right}`,
      `--ambient-caps=-all,${right}`,
      `--bounding-set=-all,${right}`,
      "--no-new-privs",
    ];
  }
  const { uid, gid } = user;
  const kept = rootRights.map((name) => `+${name}`).join(",");
  const who = uid === undefined && gid === undefined ? [] : identity(uid, gid ?? uid);
  return [...who, "--inh-caps=-all", `--bounding-set=-all,${kept}`];
}

function identity(uid: number | undefined, gid: number | undefined): readonly string[] {
  return [
    ...(gid === undefined ? [] : [`--regid=${gid}`]),
    ...(uid === undefined ? [] : [`--reuid=${uid}`]),
    "--clear-groups",
  ];
}
