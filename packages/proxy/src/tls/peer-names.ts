// The subject alternative names of a certificate, and matches on them by kind (SubjectAltNameMatcher).
import type { X509Certificate } from "node:crypto";
import { canonicalIp } from "../http/canonical-ip.ts";

export type PeerNameType = "email" | "dns" | "uri" | "ip_address";

export interface PeerName {
  readonly type: PeerNameType;
  readonly value: string;
}

export interface PeerNameMatch {
  readonly type: PeerNameType;
  matches(value: string): boolean;
}

const types: Readonly<Record<string, PeerNameType>> = {
  DNS: "dns",
  URI: "uri",
  "IP Address": "ip_address",
  email: "email",
};

/** Node writes `DNS:a, URI:b`, and as a JSON string every value that holds more than harmless characters. */
const namePattern = /([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y;

/**
 * Names of kinds that nothing matches on are left out; a text that is not understood to its end has no names at all.
 */
export function peerNames(certificate: X509Certificate): readonly PeerName[] {
  const text = certificate.subjectAltName ?? "";
  const names: PeerName[] = [];
  namePattern.lastIndex = 0;
  while (namePattern.lastIndex < text.length) {
    const match = namePattern.exec(text);
    if (match === null) return [];
    const type = types[match[1]!];
    const value = match[2]!.startsWith('"') ? unquoted(match[2]!) : match[2]!;
    if (value === undefined) return [];
    if (type !== undefined) names.push({ type, value: type === "ip_address" ? canonicalIp(value) : value });
  }
  return names;
}

function unquoted(text: string): string | undefined {
  try {
    return String(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** RFC 6125 §6.4.3 with Envoy's reading: one `*` as a part of the leftmost label, and not for A-labels. */
export function matchesDnsName(pattern: string, host: string): boolean {
  const [lowerPattern, lowerHost] = [pattern.toLowerCase(), host.toLowerCase()];
  if (lowerPattern === lowerHost) return true;
  const star = lowerPattern.indexOf("*");
  const dot = lowerPattern.indexOf(".");
  if (star < 0 || dot < 0 || star > dot || lowerPattern.includes("*", star + 1)) return false;
  const hostDot = lowerHost.indexOf(".");
  if (hostDot < 1 || lowerPattern.slice(dot) !== lowerHost.slice(hostDot)) return false;
  const label = lowerPattern.slice(0, dot);
  if (label.startsWith("xn--")) return false;
  const hostLabel = lowerHost.slice(0, hostDot);
  const [before, after] = [label.slice(0, star), label.slice(star + 1)];
  return (
    hostLabel.length >= label.length - 1 &&
    hostLabel.startsWith(before) &&
    hostLabel.endsWith(after) &&
    (before === "" && after === "" ? true : !hostLabel.startsWith("xn--"))
  );
}
