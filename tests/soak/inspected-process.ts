// What a running Node process holds, asked by its inspector: the heap after a collection, and what keeps its loop
// alive.
import { readdir } from "node:fs/promises";

export interface Holdings {
  readonly heapBytes: number;
  /** Kernel descriptors. */
  readonly descriptors: number;
  /** By kind, such as TCPSocketWrap. */
  readonly resources: Readonly<Record<string, number>>;
}

interface Reply {
  readonly id: number;
  readonly result?: { readonly result?: { readonly value?: string } };
}

/** `address` is where `node --inspect` listens. */
export async function holdingsOf(address: string, pid: number): Promise<Holdings> {
  const targets = (await (await fetch(`http://${address}/json/list`)).json()) as { webSocketDebuggerUrl: string }[];
  const socket = new WebSocket(targets[0]!.webSocketDebuggerUrl);
  const waiting = new Map<number, (reply: Reply) => void>();
  socket.addEventListener("message", ({ data }) => {
    const reply = JSON.parse(String(data)) as Reply;
    waiting.get(reply.id)?.(reply);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.addEventListener("open", () => resolve());
  socket.addEventListener("error", () => reject(new Error(`no inspector at ${address}`)));
  await promise;
  const ask = (method: string, params: object = {}): Promise<Reply> => {
    const asked = Promise.withResolvers<Reply>();
    const id = waiting.size + 1;
    waiting.set(id, asked.resolve);
    socket.send(JSON.stringify({ id, method, params }));
    return asked.promise;
  };
  try {
    // What the first one finalizes, the second one frees.
    await ask("HeapProfiler.collectGarbage");
    await ask("HeapProfiler.collectGarbage");
    const expression = "JSON.stringify([process.memoryUsage().heapUsed, process.getActiveResourcesInfo()])";
    const { result } = await ask("Runtime.evaluate", { expression, returnByValue: true });
    const [heapBytes, kinds] = JSON.parse(result!.result!.value!) as [number, string[]];
    const resources = Object.fromEntries([...Map.groupBy(kinds, String)].map(([kind, all]) => [kind, all.length]));
    return { heapBytes, descriptors: (await readdir(`/proc/${pid}/fd`)).length, resources };
  } finally {
    socket.close();
  }
}
