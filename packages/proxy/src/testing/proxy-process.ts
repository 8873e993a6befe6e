// A whole proxy in a process of its own, as a test sees it: its ports, and what it holds.
import { type ChildProcess, fork } from "node:child_process";
import path from "node:path";
import type { Holdings } from "./proxy-program.ts";
import type { Scope } from "./running-proxy.ts";

export interface ProxyProcess<Name extends string = string> {
  readonly child: ChildProcess;
  readonly ports: Readonly<Record<Name, number>>;
  readonly adminPort: number;
  holdings(): Promise<Holdings>;
}

/** Ends with the test. */
export async function startProxyProcess<Name extends string>(t: Scope, bootstrap: string): Promise<ProxyProcess<Name>> {
  const child = fork(path.join(import.meta.dirname, "proxy-program.ts"), { execArgv: ["--expose-gc"] });
  t.after(() => void child.kill("SIGKILL"));
  const ended = new Promise<never>((_resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the proxy ended with ${code}`)));
  });
  ended.catch(() => undefined);
  const answer = <T>(): Promise<T> =>
    Promise.race([ended, new Promise<T>((resolve) => child.once("message", (message) => resolve(message as T)))]);
  const started = answer<{ ports: Record<Name, number>; adminPort: number }>();
  child.send({ bootstrap });
  const { ports, adminPort } = await started;
  const holdings = (): Promise<Holdings> => {
    const told = answer<Holdings>();
    child.send("measure");
    return told;
  };
  return { child, ports, adminPort, holdings };
}
