// The contract between the frame and a command: one file or folder a command in `commands/`, one row in `commands.ts`.
//
// A command's file exports `register(command, context)`. The frame has made `command` (name and summary come from the
// row in `commands.ts`) and loads the file only when that command, or its help, is asked for; so a file may import
// what it needs at the top. `register` adds arguments, options, sub-commands, examples and the action:
// - addInstanceOption(command): `--dir`, where the command talks to a running instance
// - addOutputOption(command): `-o json|yaml`, where there is data
// - addExamples(command, [["tulle pods -o json", "everything, for a program"]])
//
// Its action takes what it is about from `context.instance(options)` and shows it by `context.printData`; pods.ts is a
// short one to begin with.
//
// An action that returns ended well (exit status 0). What goes wrong is thrown as a `CommandFailure`; any other error
// is a bug and shown with its stack. Output goes through `context`, never through `console` or `process`.
import type { Command } from "commander";
import type { Instance } from "@tulle/local/instance";

export type OutputFormat = "json" | "yaml";

/** What `addClusterOptions` adds to a command's parsed options. */
export interface ClusterOptions {
  readonly context?: string;
  readonly kubeconfig?: string;
}

/** What `addInstanceOption` adds to a command's parsed options. */
export interface InstanceOption extends ClusterOptions {
  readonly dir?: string;
}

/** Value of `-n`. */
export interface NamespaceOption {
  readonly namespace?: string;
}

/** What `addOutputOption` adds to a command's parsed options. */
export interface OutputOption {
  readonly output?: OutputFormat;
}

/** The world as a command sees it; tests hand in their own. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: NodeJS.ReadableStream;
  /** Standard output is a terminal: progress and colour are welcome. */
  readonly isTerminal: boolean;
  /** Width of the terminal; undefined when there is none. */
  readonly columns: number | undefined;
  /** Lines; a terminal gets colours, and nothing else that steers it. */
  stdout(text: string): void;
  stderr(text: string): void;
  /** Takes the last lines of standard output back, which is a terminal. */
  eraseLines(count: number): void;
  /**
   * The running instance that the command is about: `--context` or `--kubeconfig`, `--dir`, `TULLE_API`, `TULLE_DIR`,
   * a `.tulle` found upwards, the only live one below, else the only live one; where none is, the kubeconfig's
   * cluster. @throws {CommandFailure} exit status 3 when there is none or more than one
   */
  instance(options: InstanceOption): Promise<Instance>;
  /** Prints `data` in the wanted format, else the text for people. */
  printData(data: unknown, format: OutputFormat | undefined, text: () => string): Promise<void>;
}

export interface CommandModule {
  readonly register: (command: Command, context: CommandContext) => void;
}

/** One row of the table in `commands.ts`. */
export interface CommandRow {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** One line, as shown in `tulle --help`. */
  readonly summary: string;
  /** The heading under which `tulle --help` lists it. */
  readonly group: string;
  readonly load: () => Promise<CommandModule>;
}
