// A whole proxy in a process of its own, which tells what it holds when it is asked. Run with `--expose-gc`; the parent
// sends `{ bootstrap }` once and `measure` whenever it wants to know.
import fs from "node:fs";
import { type LogEntry, type LogFields, Logging } from "@tulle/telemetry";
import { parseBootstrap } from "../bootstrap/read-bootstrap.ts";
import { runProxy } from "../run-proxy.ts";

export interface Holdings {
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly descriptors: number;
  /** What keeps the process busy, counted by kind. */
  readonly resources: Readonly<Record<string, number>>;
  readonly connections: number;
  /** Lines of the log that are errors. */
  readonly errors: readonly { readonly message: string; readonly fields: LogFields | undefined }[];
}

declare const gc: () => void;

const errors: LogEntry[] = [];

process.once("message", (first: { readonly bootstrap: string }) => {
  void start(first.bootstrap);
});

async function start(bootstrap: string): Promise<void> {
  const proxy = await runProxy({
    bootstrap: parseBootstrap(bootstrap, "-"),
    logging: new Logging({ level: "error", sink: (entry) => errors.push(entry) }),
    env: {},
  });
  process.on("message", () => {
    // The second one takes what finalizers of the first have let go.
    gc();
    setImmediate(() => {
      gc();
      process.send!(holdings(proxy));
    });
  });
  const ports = Object.fromEntries([...proxy.listenerAddresses()].map(([name, [at]]) => [name, at!.port]));
  process.send!({ ports, adminPort: proxy.adminAddress?.port });
}

function holdings(proxy: Awaited<ReturnType<typeof runProxy>>): Holdings {
  const { heapUsed, external } = process.memoryUsage();
  const resources: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  const active = [...proxy.metrics.page(undefined).text.matchAll(/^envoy_\w*_cx_active\{[^}]*\} (\d+)$/gm)];
  return {
    heapBytes: heapUsed,
    externalBytes: external,
    descriptors: fs.readdirSync("/proc/self/fd").length,
    resources,
    errors: errors.map(({ message, fields }) => ({ message, fields })),
    connections: active.reduce((sum, [, count]) => sum + Number(count), 0),
  };
}
