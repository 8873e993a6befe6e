// The browser in which page tests look at what a person would see; playwright-core drives it and brings none of its
// own.
import { debianTool } from "./debian-tool.ts";

/** Flags that a browser needs as root and in small containers; it runs only against pages of this repository. */
export const chromiumArguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] as const;

/** The absolute path of Chromium. @throws {ToolUnavailable} */
export function chromiumPath(): Promise<string> {
  return debianTool("chromium");
}
