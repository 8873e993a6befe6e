// One HTTP request over a Unix socket, whole: how tests ask a control plane as its owner does, by hand.
import { request } from "node:http";

export interface SocketAnswer {
  readonly status: number;
  readonly body: string;
}

export interface SocketRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export function socketRequest(socketPath: string, path: string, options: SocketRequest = {}): Promise<SocketAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<SocketAnswer>();
  const { body, ...rest } = options;
  const outgoing = request({ socketPath, path, agent: false, ...rest }, (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => (text += chunk));
    response.once("error", reject);
    response.once("end", () => resolve({ status: response.statusCode ?? 0, body: text }));
  });
  outgoing.once("error", reject);
  outgoing.end(body);
  return promise;
}
