// The programs of the system that change its network, nft(8), ip(8) and conntrack(8): how they are run, and what their
// failures mean.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { NetworkNamespace } from "../network-namespace.ts";

/** Capture is as it was before the call. The message is whole sentences: what failed, and what to do. */
export class CaptureFailure extends Error {
  override readonly name = "CaptureFailure";
}

export interface CaptureOptions {
  /** Words before each command: what runs it in another network namespace, or with the right to change it. */
  readonly prefix?: readonly string[];
  /** In which the command runs; this process's own when missing. */
  readonly network?: Pick<NetworkNamespace, "within">;
  /** Default 10,000: a transaction takes a few milliseconds. */
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 10_000;
/** Of what nft prints; a table with the longest lists is smaller. */
const maxOutputCharacters = 4 * 1024 * 1024;

/** What brings each program. */
const packagesOf = { nft: "nftables", ip: "iproute2", conntrack: "conntrack" } as const;

/** What a program of the system said when it failed, with what to do. */
export function failureOf(program: string, { stderr, exitCode }: ToolResult): CaptureFailure {
  const said = stderr.trim().split("\n")[0] || `it ended with ${exitCode} and said nothing`;
  return new CaptureFailure(`${program}: ${said.replace(/\.*$/, "")}. ${adviceFor(stderr)}`.trimEnd());
}

function adviceFor(stderr: string): string {
  if (/not permitted|Permission denied|must be root/i.test(stderr)) {
    return "It takes CAP_NET_ADMIN in this network namespace: run it as root, or add NET_ADMIN to the container.";
  }
  if (/No such file or directory|not supported|Protocol error/i.test(stderr)) {
    return (
      "This kernel lacks a part that capture needs. It takes Linux 5.2 or newer with nf_tables, nft_chain_nat, " +
      "nft_redir, nft_ct and nft_reject_inet, TPROXY 5.9 or newer with nft_tproxy; modprobe loads each, outside of " +
      "containers."
    );
  }
  return "";
}

export interface ToolResult {
  /** Exit status, or the name of the signal that ended it. */
  readonly exitCode: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** @throws {CaptureFailure} where it cannot be started */
export function runTool(
  tool: keyof typeof packagesOf,
  args: readonly string[],
  input: string,
  options: CaptureOptions,
): Promise<ToolResult> {
  const { prefix = [], timeoutMs = defaultTimeoutMs } = options;
  const [program = tool, ...words] = [...prefix, tool, ...args];
  // Who is not root has no folders for the system's programs on PATH (Debian). Messages are looked at: in English.
  const env = { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`, LC_ALL: "C" };
  const start = (): ChildProcessWithoutNullStreams =>
    spawn(program, words, { stdio: ["pipe", "pipe", "pipe"], env, timeout: timeoutMs, killSignal: "SIGKILL" });
  const child = options.network === undefined ? start() : options.network.within(start);
  const { promise, resolve, reject } = Promise.withResolvers<ToolResult>();
  const bounded = (text: string): string => text.slice(0, maxOutputCharacters);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout = bounded(stdout + text)));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr = bounded(stderr + text)));
  child.stdin.on("error", () => undefined); // it may have ended before it was told anything
  child.stdin.end(input);
  child.once("error", (error: NodeJS.ErrnoException) => reject(notStarted(program, packagesOf[tool], error)));
  child.once("close", (code, signal) => resolve({ exitCode: code ?? signal ?? "", stdout, stderr }));
  return promise;
}

function notStarted(program: string, packageName: string, error: NodeJS.ErrnoException): CaptureFailure {
  if (error.code !== "ENOENT") return new CaptureFailure(`${program} could not be started: ${error.message}.`);
  return new CaptureFailure(
    `${program} is not installed, and capture is made by it. Install ${packageName} ` +
      `(Debian, Ubuntu: apt-get install ${packageName}; Alpine: apk add ${packageName}).`,
  );
}
