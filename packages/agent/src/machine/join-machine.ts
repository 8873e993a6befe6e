// A machine joins: its token says where and whom to believe, its new key goes nowhere, and what it gets for both is
// written down before anything runs by it.
import path from "node:path";
import {
  checkWorkloadCertificate,
  createCsr,
  generateKey,
  parseJoinToken,
  privateKeyPem,
  writeWorkloadCertificate,
} from "@tulle/identity";
import { makeOwnFolder, writeSecretFile } from "@tulle/identity/own";
import { joinMesh, leaveMesh } from "@tulle/xds";
import { clientTls, controlPlaneName } from "../identity/client-tls.ts";
import { learnRoots } from "./learn-roots.ts";
import {
  certificateFile,
  machineCertificate,
  type MachineIdentity,
  readMachine,
  rootsFile,
  writeMachine,
} from "./machine-state.ts";
import { ownAddressTowards } from "./own-address-towards.ts";

export interface Joining {
  readonly token: string;
  /** Made where it is missing. */
  readonly stateFolder: string;
  readonly hostname: string;
  /** Undefined: from where the machine calls the control plane. */
  readonly address: string | undefined;
}

export type Joined =
  | { readonly ok: true; readonly machine: MachineIdentity }
  | { readonly ok: false; readonly reason: string };

/** @throws where the folder cannot be written, or may be somebody else's */
export async function joinMachine({ token: text, stateFolder, hostname, address }: Joining): Promise<Joined> {
  const token = parseJoinToken(text);
  if (token === undefined) return refused("the token is not whole: a part of it is missing, or was changed");
  makeOwnFolder(stateFolder);
  const reasons: string[] = [];
  for (const controlPlane of token.controlPlanes) {
    const learned = await learnRoots(controlPlane, token.rootPins);
    if (!learned.ok) {
      reasons.push(learned.reason);
      continue;
    }
    const { rootsPem } = learned;
    const ownAddress = address ?? (await ownAddressTowards(controlPlane));
    const key = await generateKey("P-256");
    const answer = await joinMesh(
      { target: `https://${controlPlane}`, tls: () => ({ rootsPem, serverName: controlPlaneName }) },
      {
        tokenId: token.id,
        secret: token.secret,
        csrPem: createCsr({ key }),
        hostname,
        ...(ownAddress === undefined ? {} : { address: ownAddress }),
      },
    );
    // Whoever has answered knows the token: the next address leads to the same mesh.
    if (!answer.ok && answer.status !== "UNAVAILABLE") return refused(answer.details);
    if (!answer.ok) {
      reasons.push(`${controlPlane}: ${answer.details}`);
      continue;
    }
    const { certChain, ...machine } = answer.value;
    const allRoots = certChain.at(-1) ?? "";
    const parts = {
      keyPem: privateKeyPem(key),
      chainPem: certChain.slice(0, -1).join(""),
      rootsPem: allRoots,
      obtainedAtMs: Date.now(),
    };
    const checked = checkWorkloadCertificate(parts, Date.now());
    if (!checked.ok) return refused(`the control plane's certificate is no good here: ${checked.message}`);
    await writeSecretFile(path.join(stateFolder, rootsFile), allRoots);
    await writeWorkloadCertificate(path.join(stateFolder, certificateFile), checked.certificate);
    const joined = { ...machine, controlPlane };
    await writeMachine(stateFolder, joined);
    return { ok: true, machine: joined };
  }
  return refused(reasons.join("; "));
}

/** For good. What it knows of itself stays until the folder is removed. */
export async function leaveMachine(
  stateFolder: string,
): Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }> {
  const machine = readMachine(stateFolder);
  if (machine === undefined) return refused(`no machine has joined by ${stateFolder}`);
  const found = await machineCertificate(stateFolder);
  if ("reason" in found) return refused(`${machine.name} cannot say who it is: ${found.reason}`);
  const answer = await leaveMesh({
    target: `https://${machine.controlPlane}`,
    tls: () => clientTls(found.certificate),
  });
  return answer.ok ? { ok: true } : refused(answer.details);
}

function refused(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}
