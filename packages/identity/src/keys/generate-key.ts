// Makes the private keys of workloads and authorities; they never leave the process but as files of their owner.
import { generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import type { KeyAlgorithm } from "./key-algorithm.ts";

const generate = promisify(generateKeyPair);

/** A new private key. RSA takes up to a second of another thread, the others well under a millisecond. */
export async function generateKey(algorithm: KeyAlgorithm = "P-256"): Promise<KeyObject> {
  switch (algorithm) {
    case "P-256":
    case "P-384":
      return (await generate("ec", { namedCurve: algorithm })).privateKey;
    case "Ed25519":
      return (await generate("ed25519")).privateKey;
    case "RSA-2048":
    case "RSA-3072":
    case "RSA-4096":
      return (await generate("rsa", { modulusLength: Number(algorithm.slice(4)) })).privateKey;
  }
}
