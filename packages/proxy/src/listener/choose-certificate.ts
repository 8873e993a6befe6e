// Which of several certificates a server shows: the one for the name that the client asks for, exactly before by
// wildcard (Envoy: DefaultTlsCertificateSelector). Among certificates of the same names, OpenSSL chooses by kind of
// key.
import type { CertificateContext } from "../tls/common-tls-context.ts";

export function chooseCertificate(contexts: readonly CertificateContext[], serverName: string): CertificateContext {
  const first = contexts[0]!;
  if (contexts.length === 1 || serverName === "") return first;
  const name = serverName.toLowerCase();
  const exact = contexts.find(({ dnsNames }) => dnsNames.some((each) => each.toLowerCase() === name));
  if (exact !== undefined) return exact;
  const dot = name.indexOf(".");
  const wildcard = dot < 0 ? undefined : `*${name.slice(dot)}`;
  return contexts.find(({ dnsNames }) => dnsNames.some((each) => each.toLowerCase() === wildcard)) ?? first;
}
