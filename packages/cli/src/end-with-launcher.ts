// Under another Node than the pinned one `bin/tulle.mjs` waits in a process of its own. Whoever kills that one, with
// SIGKILL too, means this one: a pipe from there tells.
import { Socket } from "node:net";
import { takeLauncher } from "./command/launcher.ts";

/** Ends this process as SIGTERM does once the launcher, if there is one, has ended. */
export function endWithLauncher(): void {
  const descriptor = takeLauncher(process.env);
  if (descriptor === undefined) return;
  const pipe = new Socket({ fd: descriptor, readable: true, writable: false });
  pipe.on("error", () => undefined);
  pipe.once("close", () => process.kill(process.pid, "SIGTERM"));
  pipe.resume();
  // It must not keep a command alive that is done.
  pipe.unref();
}
