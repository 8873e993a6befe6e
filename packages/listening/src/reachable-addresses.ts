// By which addresses others reach who listens.
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";

/** `host:port` each: of who listens at every address, those of this machine that others may reach. */
export function reachableAddresses({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): readonly string[] {
  if (host !== "0.0.0.0" && host !== "::") return [withPort(host, port)];
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ internal, family, scopeid }) => !internal && !scopeid && (host === "::" || family === "IPv4"))
    .map(({ address }) => withPort(address, port));
}

function withPort(host: string, port: number): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}
