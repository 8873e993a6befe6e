// What a machine keeps of having joined: who it is, where its control plane is, and beside it, as any agent has them,
// its certificate and the mesh's roots. A folder of one user's alone.
import path from "node:path";
import { readWorkloadCertificate, type WorkloadCertificate } from "@tulle/identity";
import { readOwnFile, writeSecretFile } from "@tulle/identity/own";
import type { JoinAnswer } from "@tulle/xds";

export interface MachineIdentity extends Omit<JoinAnswer, "certChain"> {
  /** `host:port`. */
  readonly controlPlane: string;
}

export const machineFile = "machine.json";
export const rootsFile = "roots.pem";
/** The agent's own name for it. */
export const certificateFile = "workload-certificate.json";

const fields = ["name", "namespace", "group", "serviceAccount", "trustDomain", "clusterId", "controlPlane"] as const;

/** Undefined where none has joined. @throws where the file cannot be read, or may be somebody else's */
export function readMachine(stateFolder: string): MachineIdentity | undefined {
  const file = path.join(stateFolder, machineFile);
  const text = readOwnFile(file)?.text;
  if (text === undefined) return undefined;
  let value: Readonly<Record<string, unknown>> = {};
  try {
    value = JSON.parse(text) as typeof value;
  } catch {
    // Told below.
  }
  if (!fields.every((field) => typeof value[field] === "string"))
    throw new Error(`${file} is damaged: remove ${stateFolder}, and join again with a new token`);
  return value as unknown as MachineIdentity;
}

/** The last step of joining: where the file is, the certificate is, too. */
export function writeMachine(stateFolder: string, machine: MachineIdentity): Promise<void> {
  return writeSecretFile(path.join(stateFolder, machineFile), `${JSON.stringify(machine, undefined, 2)}\n`);
}

/** Undefined without one that is good now; `reason` says why. */
export async function machineCertificate(
  stateFolder: string,
): Promise<{ readonly certificate: WorkloadCertificate } | { readonly reason: string }> {
  const read = await readWorkloadCertificate(path.join(stateFolder, certificateFile), Date.now());
  if (read === undefined) return { reason: "it has no certificate" };
  return read.ok ? { certificate: read.certificate } : { reason: read.message };
}
