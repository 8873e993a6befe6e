// Distinguished names of authorities (RFC 5280 §4.1.2.4). Workloads have none: their name is the URI (X509-SVID §2).
import { objectIdentifier, sequence, set, utf8String } from "../der/der-writer.ts";
import { oid } from "../der/object-identifiers.ts";

export interface DistinguishedName {
  readonly organization?: string;
  readonly commonName?: string;
}

/** RFC 5280's upper bound for both attributes; what is named here is ASCII (trust domains, host names). */
const maxCharacters = 64;

export function distinguishedName(name: DistinguishedName): Buffer {
  const attributes = [
    [oid.organization, name.organization],
    [oid.commonName, name.commonName],
  ] as const;
  return sequence(
    ...attributes.flatMap(([type, value]) =>
      value === undefined ? [] : [set(sequence(objectIdentifier(type), utf8String(value.slice(0, maxCharacters))))],
    ),
  );
}
