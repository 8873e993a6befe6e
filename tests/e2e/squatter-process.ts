// Starts a program of another user beside a mesh, and says what it was sent. Two real users; so this needs root.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { type StartedProcess, startProcess } from "../tools/processes.ts";
import { ToolUnavailable } from "../tools/tool-unavailable.ts";
import type { ShopInstance } from "./shop-instance.ts";
import type { SquatterTask } from "./squatter-program.ts";

export const nobody = 65_534;

export function requireRoot(): void {
  if (process.getuid?.() === 0) return;
  throw new ToolUnavailable("root", "only root may start a program under another user's id; run this test as root");
}

export class Squatter implements AsyncDisposable {
  readonly #process: StartedProcess;

  private constructor(started: StartedProcess) {
    this.#process = started;
  }

  static async start(task: Omit<SquatterTask, "uid">): Promise<Squatter> {
    const program = path.join(import.meta.dirname, "squatter-program.ts");
    const input = JSON.stringify({ uid: nobody, ...task });
    const started = await startProcess(process.execPath, [program], { name: "another user's program", input });
    await started.waitForOutput(/"ready"/);
    return new Squatter(started);
  }

  has(at: string): Promise<unknown> {
    return this.#process.waitForOutput(new RegExp(`"listening":"${at}"`));
  }

  crowded(at: string): Promise<unknown> {
    return this.#process.waitForOutput(new RegExp(`"crowded":"${at}"`));
  }

  /** All that was sent to it. */
  received(): string {
    return this.#process
      .stdout()
      .split("\n")
      .filter((line) => line.includes('"received"'))
      .map((line) => (JSON.parse(line) as { readonly text: string }).text)
      .join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stop({ signal: "SIGKILL" });
  }
}

export async function addressesOf(shop: ShopInstance): Promise<{ readonly api: string; readonly xds: string }> {
  const text = await readFile(path.join(shop.folder, ".tulle", "instance.json"), "utf8");
  const { apiUrl, xdsAddress } = JSON.parse(text) as { readonly apiUrl: string; readonly xdsAddress: string };
  return { api: new URL(apiUrl).host, xds: xdsAddress };
}
