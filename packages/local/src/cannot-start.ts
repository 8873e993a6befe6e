// Why an instance cannot start or does not keep others out, in words for the person at the terminal.
import { type SocketLookup, socketLookup } from "@tulle/capture";
import { NotOwn } from "@tulle/identity/own";

/** What the start needs cannot be had; the suggestion says what to do. */
export class CannotStart extends Error {
  override readonly name = "CannotStart";
  readonly suggestion: string;

  constructor(message: string, suggestion: string) {
    super(message);
    this.suggestion = suggestion;
  }
}

/** Of an error on the way to the state of the manifests in `dir`; another error comes back as it is. */
export function stateProblem(dir: string, error: unknown): Error {
  if (error instanceof NotOwn) {
    return new CannotStart(
      error.message,
      "State is kept in folders that are this user's alone, since whoever can write there can command the mesh. Where the folder is another user's, run a clone of your own.",
    );
  }
  if (!(error instanceof Error)) return new Error(String(error), { cause: error });
  if (!("syscall" in error)) return error;
  return new CannotStart(
    `the state of ${dir} cannot be written: ${error.message}`,
    "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT")
      ? "The disk is full, or your share of it is used up: make room and start again."
      : "It lies beside the manifests, in .tulle: run a folder that you may write to, as in a clone of your own.",
  );
}

/** Where it is not told at once whose socket is at the other end of a connection. */
const lookupTroubles: Readonly<Partial<Record<SocketLookup, string>>> = {
  table:
    "this process may not ask the kernel for a socket's owner (NETLINK_SOCK_DIAG): proxies read the table of all connections for each one at 15007 and 15000, which is slower",
  none: "this system does not tell whose socket it is: programs of other users are not kept from the pods' ports 15007 and 15000",
};

export function socketLookupTrouble(): string | undefined {
  return lookupTroubles[socketLookup()];
}
