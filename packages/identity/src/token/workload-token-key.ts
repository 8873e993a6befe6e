// The key behind workload tokens on platforms without a token service of their own: made once, kept in the state
// directory.
import { createPublicKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { calculateJwkThumbprint, exportJWK } from "jose";
import { generateKey } from "../keys/generate-key.ts";
import { parsePrivateKey, privateKeyPem } from "../keys/private-key.ts";
import { writeSecretFile } from "../secret-file.ts";

export interface WorkloadTokenKey {
  /** RFC 7638 thumbprint: the `kid` of tokens. */
  readonly id: string;
  readonly publicKey: KeyObject;
}

export interface WorkloadTokenSigningKey extends WorkloadTokenKey {
  readonly privateKey: KeyObject;
}

export type OpenedWorkloadTokenKey =
  | { readonly ok: true; readonly key: WorkloadTokenSigningKey }
  | { readonly ok: false; readonly message: string };

export async function createWorkloadTokenKey(): Promise<WorkloadTokenSigningKey> {
  return describe(await generateKey("P-256"));
}

/**
 * Reads the PEM file, or makes it with mode 0600. A file that is there and unusable is an error: a new key voids all
 * tokens.
 */
export async function openWorkloadTokenKey(file: string): Promise<OpenedWorkloadTokenKey> {
  let pem: string;
  try {
    pem = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT") return { ok: false, message: `${file} cannot be read (${code ?? String(error)})` };
    const key = await createWorkloadTokenKey();
    await writeSecretFile(file, privateKeyPem(key.privateKey));
    return { ok: true, key };
  }
  const privateKey = parsePrivateKey(pem);
  return privateKey?.asymmetricKeyDetails?.namedCurve === "prime256v1"
    ? { ok: true, key: await describe(privateKey) }
    : { ok: false, message: `${file} does not hold a private P-256 key` };
}

async function describe(privateKey: KeyObject): Promise<WorkloadTokenSigningKey> {
  const publicKey = createPublicKey(privateKey);
  return { id: await calculateJwkThumbprint(await exportJWK(publicKey)), publicKey, privateKey };
}
