// The browser in which page tests look at what a person would see; playwright-core drives it and brings none of its
// own.
import { debianTool } from "./debian-tool.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

/** Flags that a browser needs as root and in small containers; it runs only against pages of this repository. */
export const chromiumArguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] as const;

/**
 * The absolute path of Chromium's engine without what a window needs: pages, network, cookies and policies are the
 * same, and it costs a third of the browser's CPU. Where it cannot be had the browser does. @throws {ToolUnavailable}
 */
export async function headlessShellPath(): Promise<string> {
  try {
    return await debianTool("chromium-headless-shell");
  } catch (error) {
    if (!(error instanceof ToolUnavailable)) throw error;
    return chromiumPath();
  }
}

/** The absolute path of Chromium, as a person has it. @throws {ToolUnavailable} */
export function chromiumPath(): Promise<string> {
  return debianTool("chromium");
}
