// `/certs`: the certificates that TLS contexts show and trust, as Envoy prints them (admin.v3.Certificates).
import type { X509Certificate } from "node:crypto";
import { servedTlsContexts } from "../apply/served-tls-contexts.ts";
import type { TlsMaterial } from "../tls/common-tls-context.ts";
import { type PeerNameType, peerNames } from "../tls/peer-names.ts";
import { type AdminPage, type AdminTargets, json } from "./admin-page.ts";

const dayMs = 86_400_000;
const nameFields: Readonly<Record<PeerNameType, string>> = {
  dns: "dns",
  uri: "uri",
  ip_address: "ip_address",
  email: "email",
};
/** Envoy groups names by kind, in this order. */
const nameOrder = ["dns", "uri", "ip_address"] as const;

function details(certificate: X509Certificate, nowMs: number): object {
  const names = peerNames(certificate);
  const untilMs = certificate.validToDate.getTime() - nowMs;
  return {
    path: "<inline>",
    serial_number: certificate.serialNumber.toLowerCase(),
    subject_alt_names: nameOrder.flatMap((type) =>
      names.filter((name) => name.type === type).map(({ value }) => ({ [nameFields[type]]: value })),
    ),
    days_until_expiration: String(Math.max(0, Math.floor(untilMs / dayMs))),
    valid_from: time(certificate.validFromDate),
    expiration_time: time(certificate.validToDate),
  };
}

function time(at: Date): string {
  return at.toISOString().replace(".000Z", "Z");
}

/** Contexts of the same certificates stand there once. */
function materials(targets: AdminTargets): readonly TlsMaterial[] {
  const found = new Map<string, TlsMaterial>();
  for (const { material } of servedTlsContexts(targets.owner)) {
    if (material === undefined) continue;
    const digests = [...material.certificates.map(({ digest }) => digest), material.validation?.trustedCa?.digest];
    found.set(digests.join(" "), material);
  }
  return [...found.values()];
}

export const certificatesPage: AdminPage = {
  path: "/certs",
  help: "print certs on machine",
  handle: (_query, targets) => {
    const nowMs = Date.now();
    const all = materials(targets).filter(
      ({ certificates, validation }) => certificates.length > 0 || validation?.trustedCa !== undefined,
    );
    return json({
      certificates: all.map(({ certificates, validation }) => ({
        ca_cert: (validation?.trustedCa?.certificates ?? []).map((certificate) => details(certificate, nowMs)),
        cert_chain: certificates.map(({ chain }) => details(chain[0]!, nowMs)),
      })),
    });
  },
};
