// Keeps other users of the machine away from an instance's addresses, past its proxies too: a table of nftables that
// refuses what their programs send there. Nothing in a loopback address tells one user's program from another's; the
// kernel does.
import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";

export interface OwnUserTableOptions {
  /** Of the table; nobody else's may have it. */
  readonly name: string;
  /** `127.16.4.0/22` */
  readonly range: string;
  /** Who may send there, besides root. */
  readonly uid: number;
  /** nft(8), or the words that run it with the right to change the machine's tables. */
  readonly nft: readonly string[];
  /** The table has gone without being closed, and whoever likes may send. */
  readonly onLost: (reason: string) => void;
}

/** Ends with the process that holds it, however that ends. */
export interface OwnUserTable {
  close(): Promise<void>;
}

/** The table could not be made; the message is nft's. */
export class NoOwnUserTable extends Error {
  override readonly name = "NoOwnUserTable";
}

const startTimeoutMs = 10_000;
const rootUid = 0;

/**
 * What is sent is judged by its sender's socket, whether it goes to the instance's addresses or comes from them: a
 * connection's first packet, and answers of a program that another user has put in a pod's place, wherever the caller
 * is. Packets that belong to no open socket pass, since they answer and open nothing; all but one kind. A listener that
 * is flooded, as its owner may do by himself, accepts by cookies, which are sent by no socket (tcp(7), tcp_syncookies):
 * only a known user's listener gets a connection from there. Its callers try again.
 */
export function ownUserRules({ name, range, uid }: Pick<OwnUserTableOptions, "name" | "range" | "uid">): string {
  const users = [...new Set([rootUid, uid])].join(", ");
  const rule = (text: string): string => `add rule ip ${name} output ${text}`;
  return [
    // The kernel drops a table with an owner when the socket that made it is closed (nft(8), "flags owner").
    `add table ip ${name} { flags owner; }`,
    `add chain ip ${name} output { type filter hook output priority filter; }`,
    rule(`ip daddr ${range} meta skuid != { ${users} } reject`),
    rule(`ip saddr ${range} meta skuid { ${users} } accept`),
    rule(`ip saddr ${range} meta skuid != { ${users} } reject`),
    rule(`ip saddr ${range} tcp flags & (syn | ack) == syn | ack drop`),
    // Printed back when it is in effect.
    `list table ip ${name}`,
    "",
  ].join("\n");
}

/** @throws {NoOwnUserTable} */
export async function openOwnUserTable(options: OwnUserTableOptions): Promise<OwnUserTable> {
  const [program = "nft", ...words] = options.nft;
  // Who is not root has no folders for the system's programs on PATH (Debian).
  const env = { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin` };
  // A group of its own: Ctrl-C is for the supervisor, which closes the table last. Interactive: with its input, nft
  // ends.
  const nft = spawn(program, [...words, "-i"], { detached: true, stdio: ["pipe", "pipe", "pipe"], env });
  let isClosing = false;
  let isMade = false;
  const ended = new Promise<string>((resolve) => {
    nft.once("error", (error) => resolve(error.message));
    nft.once("exit", (code, signal) => resolve(`nft ended with ${signal ?? code}`));
  });
  nft.stdin.on("error", () => undefined); // it may have ended before it was told anything
  const close = async (): Promise<void> => {
    isClosing = true;
    nft.stdin.end();
    await ended;
  };
  nft.stdin.write(ownUserRules(options));
  const problem = await problemOf(nft, ended);
  if (problem !== undefined) {
    nft.kill("SIGKILL");
    throw new NoOwnUserTable(problem);
  }
  isMade = true;
  void ended.then((reason) => {
    if (isMade && !isClosing) options.onLost(reason);
  });
  return { close };
}

/** Undefined once the rule is in effect. */
async function problemOf(
  nft: ChildProcessByStdio<Writable, Readable, Readable>,
  ended: Promise<string>,
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  let told = "";
  let complaints = "";
  nft.stdout.setEncoding("utf8").on("data", (text: string) => {
    told = (told + text).slice(-4096);
    if (/^\s+ip saddr .* drop\s*$/m.test(told)) resolve(undefined);
  });
  nft.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints = (complaints + text).slice(0, 4096);
    const [line] = complaints.split("\n", 1);
    if (complaints.includes("\n")) resolve(line);
  });
  void ended.then((reason) => resolve(complaints.trim() || reason));
  const timer = setTimeout(() => resolve(`no answer within ${startTimeoutMs} ms`), startTimeoutMs);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
