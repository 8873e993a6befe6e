// An API server that answers by a script: for what the real one does seldom or never when it is asked to, such as
// ending a watch in the middle of a line. What the real one does is tested with the real one.
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import type { ClusterAccess } from "../client/cluster-access.ts";
import { fixedCredentials } from "../client/cluster-access.ts";
import { KubernetesClient } from "../client/kubernetes-client.ts";

export interface ScriptedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text as it stands, others as a line of JSON each. */
  readonly lines?: readonly unknown[];
  /** The answer goes on; without it it ends. */
  readonly isOpen?: boolean;
  /** The connection is cut behind what was said. */
  readonly isCut?: boolean;
}

export interface AskedFor {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: http.IncomingHttpHeaders;
}

export interface ScriptedApiServer {
  readonly url: string;
  readonly asked: readonly AskedFor[];
  /** A line more in the answers of a path that go on. */
  say(path: string, line: unknown): void;
  client(access?: Partial<ClusterAccess>): KubernetesClient;
}

/** Each request takes the next answer of the script; the last one stands for all that come after. */
export async function scriptedApiServer(
  t: TestContext,
  script: readonly (ScriptedAnswer | ((asked: AskedFor) => ScriptedAnswer))[],
): Promise<ScriptedApiServer> {
  const asked: AskedFor[] = [];
  const open = new Map<string, http.ServerResponse[]>();
  const server = http.createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://api");
    const one = { method: request.method!, path: pathname, query: searchParams, headers: request.headers };
    const scripted = script[Math.min(asked.length, script.length - 1)]!;
    asked.push(one);
    const answer = typeof scripted === "function" ? scripted(one) : scripted;
    response.writeHead(answer.status ?? 200, { "content-type": "application/json", ...answer.headers });
    response.flushHeaders();
    for (const line of answer.lines ?? [])
      response.write(typeof line === "string" ? line : `${JSON.stringify(line)}\n`);
    if (answer.isCut === true) setImmediate(() => response.destroy());
    else if (answer.isOpen !== true) response.end();
    else open.set(pathname, [...(open.get(pathname) ?? []), response]);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url,
    asked,
    say(path, line) {
      for (const response of open.get(path) ?? []) response.write(`${JSON.stringify(line)}\n`);
    },
    client(access = {}) {
      const common = { server: url, anyCertificate: false, namespace: "default", origin: "a test" };
      const client = new KubernetesClient({ ...common, credentials: fixedCredentials({}), ...access }, "tulle-test");
      t.after(() => client.close());
      return client;
    },
  };
}
