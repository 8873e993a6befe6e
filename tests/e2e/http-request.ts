// One request of a test and its whole answer.
import { type Agent, request } from "node:http";
import type { Socket } from "node:net";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutMs?: number;
  /** Keeps connections; without it the request has one of its own. */
  readonly agent?: Agent;
  /** Opens the request's connection, in the place of one to the address. */
  readonly connect?: () => Socket;
}

/** One request, whole. */
export function httpRequest(url: string, options: RequestOptions = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const outgoing = request(url, {
    method: options.method ?? "GET",
    headers: options.headers ?? {},
    timeout: options.timeoutMs ?? 30_000,
    // An agent would open connections itself.
    ...(options.connect === undefined ? { agent: options.agent ?? false } : { createConnection: options.connect }),
  });
  outgoing.once("response", (response) => {
    let body = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => (body += chunk));
    response.once("error", reject);
    response.once("end", () => resolve({ status: response.statusCode!, headers: response.headers, body }));
  });
  outgoing.once("timeout", () => outgoing.destroy(new Error(`${url} did not answer in time`)));
  outgoing.once("error", reject);
  outgoing.end(options.body);
  return promise;
}
