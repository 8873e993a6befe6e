// What tokens say of where to join, and how long one who has vanished is waited for.
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";

/** Istio: PILOT_WORKLOAD_ENTRY_GRACE_PERIOD. */
export const defaultMachineGraceMs = 10_000;

/** Of who listens at every address, those of the machine that others may reach. */
export function joinAddresses({ host, port }: { readonly host: string; readonly port: number }): readonly string[] {
  if (host !== "0.0.0.0" && host !== "::") return [withPort(host, port)];
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ internal, family, scopeid }) => !internal && !scopeid && (host === "::" || family === "IPv4"))
    .map(({ address }) => withPort(address, port));
}

function withPort(host: string, port: number): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}
