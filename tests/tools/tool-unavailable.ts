// The one error that every tool finder throws, so that the test runner can tell "this machine lacks a tool" from "the
// code is wrong".

/**
 * The text by which `tools/test.ts` recognises a missing tool in a failure that came through a hook or another process.
 */
export const TOOL_UNAVAILABLE_MARK = "TOOL NOT AVAILABLE";

/**
 * Thrown when a program that a test needs is neither on this machine nor can be installed; the message names it and the
 * remedy.
 */
export class ToolUnavailable extends Error {
  override readonly name = "ToolUnavailable";
  readonly tool: string;

  constructor(tool: string, reason: string, options?: ErrorOptions) {
    super(`${TOOL_UNAVAILABLE_MARK}: ${tool}: ${reason}`, options);
    this.tool = tool;
  }
}
