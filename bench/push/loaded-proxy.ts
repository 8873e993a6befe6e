// A proxy on one core under a steady load from the other, whose p99 is told a window at a time: what a push or a scrape
// does to requests is the difference of two windows.
import path from "node:path";
import { envoyPath } from "../../tests/tools/envoy-path.ts";
import { type StartedProcess, startProcess, waitFor } from "../../tests/tools/processes.ts";
import { onCore } from "../measure/on-core.ts";
import type { Window } from "./steady-load.ts";

const proxyCore = 0;
export const loadCore = 1;
export const requestsPerSecond = 2000;
const loadProgram = path.join(import.meta.dirname, "steady-load.ts");
const cli = path.resolve(import.meta.dirname, "../../packages/cli/bin/tulle.mjs");

/** `name` is Tulle or Envoy; resolves when it answers through its listener. It ends with `stack`. */
export async function startProxy(
  name: string,
  bootstrap: string,
  listenPort: number,
  stack: AsyncDisposableStack,
): Promise<StartedProcess> {
  const common = ["-c", bootstrap, "--concurrency", "1", "-l", "warning"];
  const [command, args] =
    name === "Tulle"
      ? [process.execPath, [cli, "proxy", ...common]]
      : [await envoyPath(), [...common, "--disable-hot-restart"]];
  const proxy = stack.use(await startProcess(...onCore(proxyCore, command, args), { name }));
  await waitFor(async () => (await fetch(`http://127.0.0.1:${listenPort}/api/catalog`)).ok, {
    what: `${name} to answer`,
    timeoutMs: 30_000,
    details: () => proxy.output(),
  });
  return proxy;
}

export function startLoad(listenPort: number, windowMs: number): Promise<StartedProcess> {
  const args = [loadProgram, listenPort, requestsPerSecond, windowMs].map(String);
  return startProcess(...onCore(loadCore, process.execPath, args), { name: "load" });
}

/** Resolves when that window has ended. */
export async function windowOf(load: StartedProcess, number: number): Promise<Window> {
  const [, json] = await load.waitForOutput(new RegExp(`^window ${number} (\\{.*\\})$`, "m"), { timeoutMs: 60_000 });
  return JSON.parse(json!) as Window;
}
