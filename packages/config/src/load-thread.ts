/** The thread of `loadPathsApart`. */
import { parentPort, workerData } from "node:worker_threads";
import { loadForPost } from "./load-apart.ts";

parentPort!.postMessage(await loadForPost(workerData as readonly string[]));
