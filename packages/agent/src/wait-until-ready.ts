// What holds a pod's application back until its proxy is ready, where Kubernetes does not do it by itself: the init
// container of the capture, or a postStart hook of the proxy's container (`tulle agent wait`), which the kubelet waits
// for before it starts the next one.
import { setTimeout as pause } from "node:timers/promises";
import { healthPath, healthPort } from "./health-address.ts";

const { request } = process.getBuiltinModule("node:http");

export interface WaitOptions {
  readonly address: string;
  readonly timeoutMs: number;
  readonly periodMs: number;
}

/** Undefined when the agent is ready, else its last answer when the time was over. */
export async function waitUntilReady({ address, timeoutMs, periodMs }: WaitOptions): Promise<string | undefined> {
  const until = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask(address, Math.max(1, Math.min(timeoutMs, 1000)));
    if (answer === undefined || performance.now() >= until) return answer;
    await pause(periodMs);
  }
}

function ask(address: string, timeout: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const sent = request({ host: address, port: healthPort, path: healthPath, agent: false, timeout }, (response) => {
    response.resume();
    resolve(response.statusCode === 200 ? undefined : `the agent answers ${response.statusCode}`);
  });
  sent.on("timeout", () => sent.destroy(new Error(`no answer in ${timeout} ms`)));
  sent.on("error", (error) => resolve(error.message));
  sent.end();
  return promise;
}
