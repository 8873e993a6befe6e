// What a control plane calls itself in status listings: `tulled-` and five letters or digits, as a pod's name ends.
import { randomInt } from "node:crypto";

/** Kubernetes' alphabet for names: no vowels, so that no words come out, and nothing that looks like something else. */
const alphabet = "bcdfghjklmnpqrstvwxz2456789";

export function makeInstanceId(): string {
  return `tulled-${Array.from({ length: 5 }, () => alphabet[randomInt(alphabet.length)]).join("")}`;
}
