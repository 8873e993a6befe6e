// GET of a page of one of our own processes.
import type { Socket } from "node:net";
import type { Connect } from "./network/pod-network.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { request } = process.getBuiltinModule("node:http");

/** @throws when it does not answer 200 in time */
export function getText(url: string, connect: Connect, timeoutMs = 2000): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const { hostname: host, port } = new URL(url);
  const createConnection = (): Socket => connect({ host, port: Number(port) });
  const outgoing = request(url, { createConnection, timeout: timeoutMs }, (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => (text += chunk));
    response.once("error", reject);
    response.once("end", () => {
      if (response.statusCode === 200) resolve(text);
      else reject(new Error(`${url} answered ${response.statusCode}`));
    });
  });
  outgoing.once("timeout", () => outgoing.destroy(new Error(`${url} did not answer in ${timeoutMs} ms`)));
  outgoing.once("error", reject);
  outgoing.end();
  return promise;
}
