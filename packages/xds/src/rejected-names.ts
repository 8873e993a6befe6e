// Reads a rejection's text for the resources that it blames. The protocol has no field for that: Envoy writes
// "Error adding/updating listener(s) a: reason, b: reason", and Tulle's own proxy keeps that form.
import type { ResourceError } from "./ads-client-api.ts";
import type { ResourceTypeName } from "./resource-types.ts";

const nouns: Readonly<Record<ResourceTypeName, string>> = {
  CDS: "cluster(s)",
  EDS: "endpoint(s)",
  LDS: "listener(s)",
  RDS: "route configuration(s)",
  ECDS: "extension configuration(s)",
  SDS: "secret(s)",
  NDS: "name table(s)",
};

// Envoy's own messages stay within this; a longer one only fills logs and the status page.
const maxMessageCharacters = 4096;

/** A rejection's message, in Envoy's form for listeners and clusters. */
export function rejectionMessage(type: ResourceTypeName, errors: readonly ResourceError[]): string {
  const reasons = errors.map((error) => `${error.name}: ${error.message}`).join(", ");
  return shortened(`Error adding/updating ${nouns[type]} ${reasons}`);
}

/** A rejection's message as long as it may be; a client may send anything. */
export function shortened(message: string): string {
  return message.length > maxMessageCharacters ? `${message.slice(0, maxMessageCharacters - 1)}…` : message;
}

// What a resource's name may contain, so that `0.0.0.0_80` is not found within `10.0.0.0_8080`.
const nameCharacter = /[\p{L}\p{N}_|.\-/]/u;

function isNamed(message: string, name: string): boolean {
  for (let at = message.indexOf(name); at >= 0; at = message.indexOf(name, at + 1)) {
    const before = at === 0 ? " " : message[at - 1]!;
    const after = message.slice(at + name.length, at + name.length + 2);
    const ends = !nameCharacter.test(after[0] ?? " ") || /^\.(\s|$)/.test(after);
    if (!nameCharacter.test(before) && ends) return true;
  }
  return false;
}

/** Whether a rejection was cut by `rejectionMessage`, so that it may not name all that it refuses. */
export function isCutShort(message: string): boolean {
  return message.endsWith("…");
}

/** Those of `names` that the message names, each as a word of its own. */
export function rejectedNames(message: string, names: readonly string[]): readonly string[] {
  return names.filter((name) => name !== "" && isNamed(message, name));
}
