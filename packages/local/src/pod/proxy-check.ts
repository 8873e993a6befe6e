// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
import type { Socket } from "node:net";
import type { OnFailure } from "@tulle/listening/probes";
import type { AskedProxy } from "./until-quiet.ts";
const { request } = process.getBuiltinModule("node:http");
// The probe of a pod's proxy: Istio's health port, and what the agent says there of its own end.

const healthPort = 15_021;
const healthPath = "/healthz/ready";
const answerMs = 1000;
/** Of our agent (its `health-server.ts`), while it drains. */
const leavingText = "the agent is stopping";

/**
 * True when the proxy is ready; one that is may take `waitSeconds` to say so, and tells at once when it is not any
 * more. `onLeaving` is called when it says that it is about to end. Never rejects.
 */
export function proxyCheck(
  { proxyAt: address, connect }: AskedProxy,
  waitSeconds: number,
  onLeaving: () => void,
  onFailure: OnFailure = () => undefined,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const headers = { "user-agent": "tulle-probe", ...(waitSeconds > 0 ? { prefer: `wait=${waitSeconds}` } : {}) };
  const timeoutMs = waitSeconds * 1000 + answerMs;
  const createConnection = (): Socket => connect({ host: address, port: healthPort });
  const options = {
    host: address,
    port: healthPort,
    path: healthPath,
    headers,
    createConnection,
    timeout: timeoutMs,
  };
  const outgoing = request(options, (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => (text += chunk));
    response.once("error", () => resolve(false));
    response.once("end", () => {
      if (text.startsWith(leavingText)) onLeaving();
      if (response.statusCode !== 200) onFailure(`HTTP probe failed with statuscode: ${response.statusCode}`);
      resolve(response.statusCode === 200);
    });
  });
  outgoing.once("timeout", () => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)));
  outgoing.once("error", (error) => {
    onFailure(`GET ${healthPath} at ${address}:${healthPort}: ${error.message}`);
    resolve(false);
  });
  outgoing.once("close", () => resolve(false));
  outgoing.end();
  return promise;
}
