// Puts rules into the kernel and takes them out by nft(8), one transaction a call: the kernel has all of it or what it
// had before. A failure says what is missing on the machine.
import { spawn } from "node:child_process";
import { captureRules, captureTable, removalRules } from "./capture-rules.ts";
import type { CapturePlan } from "./capture-plan.ts";

/** Capture is as it was before the call. The message is whole sentences: what failed, and what to do. */
export class CaptureFailure extends Error {
  override readonly name = "CaptureFailure";
}

export interface NftOptions {
  /** nft(8), or the words that run it in another network namespace or with the right to change tables. */
  readonly nft?: readonly string[];
  /** Default 10,000: a transaction takes a few milliseconds. */
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 10_000;
/** Of what nft prints; a table with the longest lists is smaller. */
const maxOutputCharacters = 4 * 1024 * 1024;

/**
 * Makes the table, or replaces it, and looks whether the kernel has it.
 *
 * @throws {CaptureFailure}
 */
export async function installCapture(plan: CapturePlan, options: NftOptions = {}): Promise<void> {
  const rules = captureRules(plan);
  await applyRules(rules, options);
  const found = countVerdicts((await installedRules(options)) ?? "");
  const sent = countVerdicts(rules);
  if (found === sent) return;
  // Half of it must not stay. Where even that fails, the message is as true.
  await removeCapture(options).catch(() => undefined);
  throw new CaptureFailure(
    `nft took the rules, but the kernel has ${found} of ${sent}; they were removed again. Does another program change ` +
      `the table ${captureTable}?`,
  );
}

/** What is not there is no error. @throws {CaptureFailure} */
export async function removeCapture(options: NftOptions = {}): Promise<void> {
  await applyRules(removalRules, options);
}

/** The table as nft prints it; undefined where there is none. @throws {CaptureFailure} */
export async function installedRules(options: NftOptions = {}): Promise<string | undefined> {
  const { exitCode, stdout, stderr } = await runNft(["list", "table", "inet", captureTable], "", options);
  if (exitCode === 0) return stdout;
  if (/No such file or directory/.test(stderr)) return undefined;
  throw failureOf(stderr, exitCode);
}

/** One transaction. @throws {CaptureFailure} */
export async function applyRules(rules: string, options: NftOptions = {}): Promise<void> {
  const { exitCode, stderr } = await runNft(["-f", "-"], rules, options);
  if (exitCode !== 0) throw failureOf(stderr, exitCode);
}

/** Rules are counted, since each version of nft writes them in its own way. */
function countVerdicts(rules: string): number {
  const lines = rules.split("\n").filter((line) => !/^\s*(?:#|type )/.test(line));
  return lines.filter((line) => /\b(?:accept|goto|redirect|reject|zone set)\b/.test(line)).length;
}

function failureOf(stderr: string, exitCode: number | string): CaptureFailure {
  const said = stderr.trim().split("\n")[0] || `it ended with ${exitCode} and said nothing`;
  return new CaptureFailure(`nft: ${said.replace(/\.*$/, "")}. ${adviceFor(stderr)}`.trimEnd());
}

function adviceFor(stderr: string): string {
  if (/not permitted|Permission denied|must be root/i.test(stderr)) {
    return "It takes CAP_NET_ADMIN in this network namespace: run it as root, or add NET_ADMIN to the container.";
  }
  if (/No such file or directory|not supported|Protocol error/i.test(stderr)) {
    return (
      "This kernel lacks a part that capture needs. It takes Linux 5.2 or newer with nf_tables, nft_chain_nat, " +
      "nft_redir, nft_ct and nft_reject_inet; modprobe loads each, outside of containers."
    );
  }
  return "";
}

interface NftResult {
  /** Exit status, or the name of the signal that ended it. */
  readonly exitCode: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

async function runNft(args: readonly string[], input: string, options: NftOptions): Promise<NftResult> {
  const { nft = ["nft"], timeoutMs = defaultTimeoutMs } = options;
  const [program = "nft", ...words] = nft;
  // Who is not root has no folders for the system's programs on PATH (Debian). Messages are looked at: in English.
  const env = { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`, LC_ALL: "C" };
  const child = spawn(program, [...words, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env,
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  const { promise, resolve, reject } = Promise.withResolvers<NftResult>();
  let stdout = "";
  let stderr = "";
  child.stdout
    .setEncoding("utf8")
    .on("data", (text: string) => (stdout = (stdout + text).slice(0, maxOutputCharacters)));
  child.stderr
    .setEncoding("utf8")
    .on("data", (text: string) => (stderr = (stderr + text).slice(0, maxOutputCharacters)));
  child.stdin.on("error", () => undefined); // it may have ended before it was told anything
  child.stdin.end(input);
  child.once("error", (error: NodeJS.ErrnoException) => reject(notStarted(program, error)));
  child.once("close", (code, signal) => resolve({ exitCode: code ?? signal ?? "", stdout, stderr }));
  return promise;
}

function notStarted(program: string, error: NodeJS.ErrnoException): CaptureFailure {
  if (error.code !== "ENOENT") return new CaptureFailure(`${program} could not be started: ${error.message}.`);
  return new CaptureFailure(
    `${program} is not installed, and capture is made by it. Install nftables (Debian, Ubuntu: apt-get install nftables; Alpine: apk add nftables).`,
  );
}
