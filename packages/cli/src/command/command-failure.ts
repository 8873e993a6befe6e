// What a command throws when it cannot do its work: the message says what is wrong and where, the hint what to do next.

/** The exit statuses of `tulle`, listed in docs/cli.md; scripts rely on them. */
export const exitCodes = {
  ok: 0,
  /** The command was understood, and what it was asked for could not be done. */
  failure: 1,
  /** The command line itself is wrong: unknown command or option, missing or malformed argument. */
  usage: 2,
  /** No instance runs, or it is not clear which one is meant. */
  noInstance: 3,
  /** Findings of severity error in the user's configuration. */
  findings: 4,
  /** Ended by Ctrl-C (128 + SIGINT, as shells count). */
  interrupted: 130,
} as const;

/** One of those; of `tulle exec` that of the command that it ran. */
export type ExitCode = number;

/**
 * Printed as `tulle: <message>`, then the hint on lines of its own; never with a stack trace. Without a message nothing
 * is printed.
 */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  readonly hint: string | undefined;
  readonly exitCode: ExitCode;

  constructor(
    message: string,
    options: { readonly hint?: string; readonly exitCode?: ExitCode; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.hint = options.hint;
    this.exitCode = options.exitCode ?? exitCodes.failure;
  }
}
