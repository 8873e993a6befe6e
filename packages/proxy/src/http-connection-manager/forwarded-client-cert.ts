// `x-forwarded-client-cert`: what a proxy tells about the certificate of its client (Envoy:
// forward_client_cert_details, set_current_client_cert_details).
import type { TlsInfo } from "../tls/tls-info.ts";
import type { HeaderMap } from "../http/header-map.ts";
import { fieldValue } from "../http/header-value.ts";

export const forwardedClientCertHeader = "x-forwarded-client-cert";

/** - `sanitize`: the header goes. `always_forward_only`: it stays, whoever sent it; the others need a certificate. */
export type ForwardClientCert = "sanitize" | "forward_only" | "append_forward" | "sanitize_set" | "always_forward_only";

export interface ClientCertDetails {
  readonly cert: boolean;
  readonly chain: boolean;
  readonly subject: boolean;
  readonly uri: boolean;
  readonly dns: boolean;
}

export interface ClientCertForwarding {
  readonly mode: ForwardClientCert;
  readonly details: ClientCertDetails;
}

/** What this proxy says about the client of a connection; undefined where the client has shown no certificate. */
export function currentClientCert(forwarding: ClientCertForwarding, tls: TlsInfo | undefined): string | undefined {
  if (tls === undefined || !tls.peer.isPresent) return undefined;
  const { mode, details } = forwarding;
  if (mode !== "append_forward" && mode !== "sanitize_set") return "";
  const { peer, local } = tls;
  const parts = local.uriSans.map((uri) => `By=${uri}`);
  parts.push(`Hash=${peer.fingerprint256}`);
  if (details.cert) parts.push(`Cert="${peer.encodedPem}"`);
  if (details.chain) parts.push(`Chain="${peer.encodedChain}"`);
  if (details.subject) parts.push(`Subject="${peer.subject}"`);
  if (details.uri) parts.push(...(peer.uriSans.length === 0 ? ["URI="] : peer.uriSans.map((uri) => `URI=${uri}`)));
  if (details.dns) parts.push(...peer.dnsSans.map((name) => `DNS=${name}`));
  return fieldValue(parts.join(";"));
}

/**
 * `current` is what `currentClientCert` gave for the connection; `received`: the header as the client sent it, joined.
 */
export function forwardClientCert(
  headers: HeaderMap,
  mode: ForwardClientCert,
  current: string | undefined,
  received: string | undefined,
): void {
  if (mode === "always_forward_only") return;
  if (mode === "sanitize" || current === undefined) {
    if (received !== undefined) headers.remove(forwardedClientCertHeader);
  } else if (mode === "append_forward") {
    headers.set(
      forwardedClientCertHeader,
      received === undefined || received === "" ? current : `${received},${current}`,
    );
  } else if (mode === "sanitize_set") {
    headers.set(forwardedClientCertHeader, current);
  }
}
