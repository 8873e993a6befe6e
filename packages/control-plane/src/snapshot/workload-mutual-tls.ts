// Which mode of mutual TLS holds at a port of a workload, be it a pod or at an address of its own: as its callers need
// it.
import { modeOfPort, type MutualTlsMode, mutualTlsModes, type MutualTlsModes } from "@tulle/config";
import type { MeshSnapshot } from "./mesh-snapshot.ts";

/** Says that a workload's proxy takes mutual TLS (Istio: label.SecurityTlsMode); whoever gives it the proxy sets it. */
export const tlsModeLabel = "security.istio.io/tlsMode";

export interface PolicedWorkload {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** It takes mutual TLS where a policy wants it. */
  readonly hasProxy: boolean;
}

/** DISABLE for a workload without a proxy, whatever a policy says. */
export type ModeOfWorkload = (workload: PolicedWorkload, port: number) => MutualTlsMode;

export function mutualTlsOfWorkloads({
  trustDomain,
  peerAuthentications = [],
}: Pick<MeshSnapshot, "trustDomain" | "peerAuthentications">): ModeOfWorkload {
  const modesOf = new Map<PolicedWorkload, MutualTlsModes>();
  return (workload, port) => {
    if (trustDomain === undefined || !workload.hasProxy) return "DISABLE";
    let modes = modesOf.get(workload);
    if (modes === undefined) modesOf.set(workload, (modes = mutualTlsModes(peerAuthentications, workload)));
    return modeOfPort(modes, port);
  };
}
