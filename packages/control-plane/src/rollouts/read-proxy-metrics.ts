// The metrics of one pod's proxy, from the agent's port 15020 (Istio's), bounded in time and size: a pod that hangs or
// answers rubbish costs its own numbers and nothing else. Whoever else has the address is asked for nothing.
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { isOwnAddress, listeningSocket, takerOf } from "@tulle/capture";
import { agentMetrics } from "../names/agent-metrics.ts";
import type { AgentSockets } from "./agent-sockets.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { request } = process.getBuiltinModule("node:http");

const timeoutMs = 3000;
/** A proxy with 10,000 series has about 6 MB of them. */
const maxBytes = 32 * 1024 * 1024;
const maxLines = 20_000;
/** Of labels that a request may fill. What of a line is there already is looked through again with each chunk. */
const maxLineCharacters = 1024 * 1024;

/** The wanted lines; who has the agent's address in its place, in words; undefined where there is no whole answer. */
export type PodMetrics = readonly string[] | { readonly stranger: string } | undefined;

/** Never rejects. */
export async function readProxyMetrics(
  address: string,
  isWanted: (line: string) => boolean,
  agents: Pick<AgentSockets, "stranger">,
): Promise<PodMetrics> {
  const host = { ip: address, port: agentMetrics.port };
  const isOurs = isOwnAddress(address);
  const before = isOurs ? listeningSocket(host) : "unknown";
  const heldBy = (stranger: string): PodMetrics => ({ stranger: `${address}:${host.port} is held by ${stranger}` });
  const stranger = agents.stranger(address, before);
  if (stranger !== undefined) return heldBy(stranger);
  const { promise, resolve } = Promise.withResolvers<PodMetrics>();
  const sent = request(
    { host: address, ...agentMetrics, agent: false, signal: AbortSignal.timeout(timeoutMs) },
    (response) => {
      if (response.statusCode === 200) wantedLines(response, isWanted).then(resolve, () => resolve(undefined));
      else response.destroy();
    },
  );
  const look = ({ localAddress: ip = "", localPort: port = 0 }: Socket): void => {
    const taker = takerOf(before, host, { ip, port });
    const newcomer = agents.stranger(address, taker);
    if (newcomer !== undefined) resolve(heldBy(newcomer));
    // Who has gone again already: whose answer that would be, nobody can say.
    if (newcomer !== undefined || taker === "nobody") sent.destroy();
  };
  if (isOurs) sent.on("socket", (socket) => socket.once("connect", () => look(socket)));
  sent.on("error", () => resolve(undefined));
  // After the end, too: what was resolved before stays.
  sent.on("close", () => resolve(undefined));
  sent.end();
  const metrics = await promise;
  sent.destroy();
  return metrics;
}

/** A line at a time: of a large page little is kept. */
async function wantedLines(
  response: IncomingMessage,
  isWanted: (line: string) => boolean,
): Promise<readonly string[] | undefined> {
  const lines: string[] = [];
  let bytes = 0;
  let rest = "";
  response.setEncoding("utf8");
  for await (const chunk of response as AsyncIterable<string>) {
    bytes += chunk.length;
    const parts = (rest + chunk).split("\n");
    rest = parts.pop()!;
    for (const line of parts) if (isWanted(line)) lines.push(line);
    if (bytes > maxBytes || lines.length > maxLines || rest.length > maxLineCharacters) return undefined;
  }
  if (isWanted(rest)) lines.push(rest);
  return response.complete ? lines : undefined;
}
