/** The thread of `loadPathsApart`. */
import { parentPort, workerData } from "node:worker_threads";
import { loadForPost } from "./load-apart.ts";

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, and no window
parentPort!.postMessage(await loadForPost(workerData as readonly string[]));
