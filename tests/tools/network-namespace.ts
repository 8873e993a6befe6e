// Networks of a test's own, in this very process: a socket or program belongs to the network that the thread is in when
// it is made. They have no names, so that nothing of them outlives the process, however it ends.
import { closeSync, openSync } from "node:fs";
import { debianTool } from "./debian-tool.ts";
import { lastLines, runCommand, type CommandResult } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

const newNetwork = 0x40_00_00_00;

interface ThreadCalls {
  readonly unshare: (flags: number) => number;
  readonly setns: (descriptor: number, type: number) => number;
}

let calls: ThreadCalls | undefined;

function threadCalls(): ThreadCalls {
  if (calls !== undefined) return calls;
  const definitions = {
    unshare: { arguments: ["i32"], return: "i32" },
    setns: { arguments: ["i32", "i32"], return: "i32" },
  } as const;
  const { functions } = process.getBuiltinModule("node:ffi").dlopen(null, definitions);
  return (calls = functions as unknown as ThreadCalls);
}

const ownNetwork = "/proc/thread-self/ns/net";

export class NetworkNamespace implements Disposable {
  readonly #descriptor: number;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** A network with nothing but its loopback interface, which is up. @throws {ToolUnavailable} for who is not root */
  static async create(): Promise<NetworkNamespace> {
    await debianTool("iproute2");
    const home = openSync(ownNetwork, "r");
    try {
      if (threadCalls().unshare(newNetwork) !== 0) {
        throw new ToolUnavailable("a network namespace", "it takes root to make one; run this test as root");
      }
      const created = new NetworkNamespace(openSync(ownNetwork, "r"));
      threadCalls().setns(home, newNetwork);
      await created.mustRun("ip", "link", "set", "lo", "up");
      return created;
    } finally {
      threadCalls().setns(home, newNetwork);
      closeSync(home);
    }
  }

  /** The network that this process is in. */
  static current(): NetworkNamespace {
    return new NetworkNamespace(openSync(ownNetwork, "r"));
  }

  /** What the call makes without waiting, sockets and processes, is in this network. */
  within<T>(make: () => T): T {
    const home = openSync(ownNetwork, "r");
    try {
      if (threadCalls().setns(this.#descriptor, newNetwork) !== 0) throw new Error("cannot enter the network");
      return make();
    } finally {
      threadCalls().setns(home, newNetwork);
      closeSync(home);
    }
  }

  /** The words before a command that run it in this network. */
  get enter(): readonly string[] {
    return ["nsenter", `--net=${this.#path}`, "--"];
  }

  /** For other processes, as long as this one has the network. */
  get #path(): string {
    return `/proc/${process.pid}/fd/${this.#descriptor}`;
  }

  run(command: string, ...args: readonly string[]): Promise<CommandResult> {
    // Who became root by `su` may have no folders for the system's programs on PATH.
    const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` };
    return this.within(() => runCommand(command, args, { env }));
  }

  async mustRun(command: string, ...args: readonly string[]): Promise<string> {
    const result = await this.run(command, ...args);
    if (result.code !== 0) throw new Error(`${command} ${args.join(" ")}: ${lastLines(result)}`);
    return result.stdout;
  }

  /** A cable: an interface of that name in both networks, or of another one in the second. */
  async connect(other: NetworkNamespace, name: string, nameThere = name): Promise<void> {
    await this.mustRun("ip", "link", "add", name, "type", "veth", "peer", "name", nameThere, "netns", other.#path);
    await this.mustRun("ip", "link", "set", name, "up");
    await other.mustRun("ip", "link", "set", nameThere, "up");
  }

  /** Processes and sockets that are there keep the network until they end. */
  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}
