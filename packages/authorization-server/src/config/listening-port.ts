// Whether the server can listen where it was told to, found out before anything is made: keys, a store and a demo would
// be left behind by a start that ends there.
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import type { Config } from "./config.ts";

/** How many ports after one in use are tried for a free one. */
const triedPorts = 50;

/** Listens for a moment; answers the port, which for 0 is a free one. */
async function tryPort(host: string, port: number): Promise<number> {
  const server = createServer().listen({ host, port, exclusive: true });
  await once(server, "listening");
  const { port: found } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return found;
}

async function nextFreePort(host: string, port: number): Promise<number | undefined> {
  for (let next = port + 1; next <= Math.min(port + triedPorts, 65_535); next += 1) {
    const found = await tryPort(host, next).catch(() => undefined);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The port to listen on, or why that cannot be and what to do. */
export async function listeningPort({
  host,
  port,
  issuer,
}: Pick<Config, "host" | "port" | "issuer">): Promise<{ readonly port: number } | { readonly problem: string }> {
  const at = async (address: string): Promise<{ readonly port: number } | { readonly problem: string }> => {
    try {
      return { port: await tryPort(address, port) };
    } catch (error) {
      return { problem: await listenProblem(error as NodeJS.ErrnoException, address, port) };
    }
  };
  const found = await at(host);
  // Browsers look for `localhost` at [::1] first: who listens there gets what is meant for this server.
  const isNamed = new URL(issuer).host === `localhost:${port}`;
  if ("problem" in found || host !== "127.0.0.1" || !isNamed) return found;
  const beside = await at("::1");
  return "problem" in beside && beside.problem.includes("in use") ? beside : found;
}

async function listenProblem({ code, message }: NodeJS.ErrnoException, host: string, port: number): Promise<string> {
  switch (code) {
    case "EADDRINUSE": {
      const next = await nextFreePort(host, port);
      const free = next === undefined ? "" : `: --port ${next} is free`;
      return `port ${port} on ${host} is in use; choose another with --port${free}. Nothing was made.`;
    }
    case "EACCES":
      return `port ${port} may not be used by this user; choose one above 1023 with --port. Nothing was made.`;
    default:
      return `cannot listen on port ${port} of ${host} (--host, --port): ${message}. Nothing was made.`;
  }
}
