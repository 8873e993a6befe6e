// The words that start a program in a pod: its network and its files first, then its folder, then its user and rights.
import type { ProgramEntry, ProgramStart, ProgramUser } from "../network/pod-network.ts";
import type { SystemPrograms } from "./system-programs.ts";

/** Istio's: what it sends is not captured. */
export const proxyUser = 1337;

/**
 * What a program of root keeps. None of these leads out of the pod's network or changes its rules; and none makes it
 * the proxy's user, as long as files give nobody another user: with `chown` it could make one that does.
 */
const rootRights = ["chown", "dac_override", "fowner", "fsetid", "kill", "net_bind_service"];

export interface PodSpaces {
  /** Paths of the namespaces. */
  readonly network: string;
  readonly mounts: string;
}

/**
 * What a system's loader and C library read before a program's first line, and leave alone in a setuid program
 * (ld.so(8), secure-execution mode). The programs that lead into the pod have all rights of root: a library that one of
 * the pod's users has written is not loaded into them.
 */
const readBeforeStart = new RegExp(
  "^(?:LD_.*|MALLOC_.*|GCONV_PATH|GETCONF_DIR|GLIBC_TUNABLES|HOSTALIASES|LOCALDOMAIN|LOCPATH|NIS_PATH|NLSPATH|" +
    "RESOLV_HOST_CONF|RES_OPTIONS|TMPDIR|TZDIR)$",
);

export function programEntry(
  programs: SystemPrograms,
  spaces: PodSpaces,
  { cwd, user, env }: ProgramStart,
): Pick<ProgramEntry, "enter" | "env"> {
  const all = Object.entries(env);
  const late = all.filter(([name]) => readBeforeStart.test(name)).map(([name, value]) => `${name}=${value}`);
  return {
    enter: [...startWords(programs, spaces, cwd, user), ...(late.length === 0 ? [] : [programs.env, ...late])],
    env: Object.fromEntries(all.filter(([name]) => !readBeforeStart.test(name))),
  };
}

function startWords(
  { nsenter, env, setpriv }: SystemPrograms,
  { network, mounts }: PodSpaces,
  cwd: string,
  user: ProgramUser,
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
    return [...identity(proxyUser, proxyUser), "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"];
  }
  const { uid, gid } = user;
  const kept = rootRights.map((name) => `+${name}`).join(",");
  const who = uid === undefined && gid === undefined ? [] : identity(uid, gid ?? uid);
  return [...who, "--inh-caps=-all", `--bounding-set=-all,${kept}`, "--no-new-privs"];
}

function identity(uid: number | undefined, gid: number | undefined): readonly string[] {
  return [
    ...(gid === undefined ? [] : [`--regid=${gid}`]),
    ...(uid === undefined ? [] : [`--reuid=${uid}`]),
    "--clear-groups",
  ];
}
