// A plain HTTP client over kept connections, light enough to load a server from the other core.
import { Agent, request } from "node:http";
import type { IncomingHttpHeaders } from "node:http";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface HttpClient {
  send(method: string, target: string, headers: Readonly<Record<string, string>>, body?: string): Promise<HttpAnswer>;
  close(): void;
}

export function httpClient(port: number, connections: number): HttpClient {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return {
    send: (method, target, headers, body) => {
      const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
      const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
      const options = {
        host: "127.0.0.1",
        port,
        method,
        path: target,
        agent,
        headers: { host: `localhost:${port}`, ...headers, ...length },
      };
      const outgoing = request(options, (incoming) => {
        let text = "";
        incoming.setEncoding("latin1");
        incoming.on("data", (chunk: string) => (text += chunk));
        incoming.on("error", reject);
        incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: text }));
      });
      outgoing.on("error", reject);
      outgoing.end(body);
      return promise;
    },
    close: () => agent.destroy(),
  };
}
