// A user of this machine who is not root, made for a test and taken away after it.
import { chownSync, lstatSync, readdirSync } from "node:fs";
import path from "node:path";
import { waitFor } from "./processes.ts";
import { runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

export class OrdinaryUser implements AsyncDisposable {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;

  private constructor(name: string, uid: number, gid: number) {
    this.name = name;
    this.uid = uid;
    this.gid = gid;
  }

  /** With ranges of numbers for user namespaces, as Debian gives them to whom it makes. @throws {ToolUnavailable} */
  static async make(): Promise<OrdinaryUser> {
    if (process.getuid?.() !== 0) throw new ToolUnavailable("a user", "it takes root to make one");
    const name = `tulle-test-${process.pid}`;
    await must("useradd", "--no-create-home", "--home-dir", "/nonexistent", "--user-group", name);
    const [uid, gid] = await Promise.all(["-u", "-g"].map(async (which) => Number(await must("id", which, name))));
    const file = await runCommand("grep", [`^${name}:`, "/etc/subuid"]);
    const user = new OrdinaryUser(name, uid!, gid!);
    if (file.code !== 0) await user.change("--add-subuids", "700000-765535", "--add-subgids", "700000-765535");
    return user;
  }

  /** As usermod(8) has it. */
  async change(...args: readonly string[]): Promise<void> {
    await must("usermod", ...args, this.name);
  }

  /** Gives the user a folder with all that is in it. */
  own(entry: string): void {
    const stats = lstatSync(entry);
    if (stats.isSymbolicLink()) return;
    chownSync(entry, this.uid, this.gid);
    if (stats.isDirectory()) for (const name of readdirSync(entry)) this.own(path.join(entry, name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // It refuses as long as a process of the user's is on its way out.
    await waitFor(async () => (await runCommand("userdel", [this.name])).code === 0, { what: `${this.name} to go` });
  }
}

async function must(program: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(program, args);
  if (code !== 0) throw new ToolUnavailable(program, stderr.trim());
  return stdout.trim();
}
