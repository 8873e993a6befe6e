// TlsParameters into OpenSSL's words. Envoy's names of ciphers and curves are BoringSSL's, which share them but for the
// groups of equal preference in brackets.
import { createSecureContext, getCiphers } from "node:tls";
import {
  TlsParameters_TlsProtocol as TlsProtocol,
  type TlsParameters as TlsParametersMessage,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/common_pb";
import type { TlsParameters, TlsVersion } from "../tls/common-tls-context.ts";
import type { Place, Problems } from "../fields/problems.ts";

/** BoringSSL's order on machines with AES instructions; it cannot be configured, as in Envoy. */
const tls13Ciphers = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
/** Envoy's default list for TLS 1.2. */
const defaultCiphers = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
].join(":");
const defaultCurves = "X25519:P-256";
const knownCurves: ReadonlySet<string> = new Set(["X25519", "P-256", "P-384", "P-521", "X25519MLKEM768"]);

const versions = new Map<number, TlsVersion>([
  [TlsProtocol.TLSv1_0, "TLSv1"],
  [TlsProtocol.TLSv1_1, "TLSv1.1"],
  [TlsProtocol.TLSv1_2, "TLSv1.2"],
  [TlsProtocol.TLSv1_3, "TLSv1.3"],
]);

export function compileTlsParameters(
  message: TlsParametersMessage | undefined,
  place: Place,
  problems: Problems,
): TlsParameters {
  const minVersion = versions.get(message?.tlsMinimumProtocolVersion ?? 0) ?? "TLSv1.2";
  const maxVersion = versions.get(message?.tlsMaximumProtocolVersion ?? 0) ?? "TLSv1.3";
  if (minVersion > maxVersion) {
    problems.error(
      place,
      `tls_minimum_protocol_version ${minVersion} is above tls_maximum_protocol_version ${maxVersion}`,
    );
  }
  const ciphers = cipherList(message?.cipherSuites ?? [], place.field("cipher_suites"), problems);
  for (const [index, curve] of (message?.ecdhCurves ?? []).entries()) {
    if (knownCurves.has(curve)) continue;
    problems.error(place.field("ecdh_curves", index), `Failed to initialize ECDH curves ${curve}`);
  }
  const signatureAlgorithms = message?.signatureAlgorithms.join(":") ?? "";
  if (signatureAlgorithms !== "" && !takesSignatureAlgorithms(signatureAlgorithms)) {
    const words = `Failed to initialize TLS signature algorithms ${signatureAlgorithms}`;
    problems.error(place.field("signature_algorithms"), words);
  }
  return {
    minVersion,
    maxVersion,
    // Without its own ciphers in the list OpenSSL would not offer TLS 1.3.
    ciphers: maxVersion === "TLSv1.3" ? `${tls13Ciphers}:${ciphers}` : ciphers,
    ecdhCurves: message === undefined || message.ecdhCurves.length === 0 ? defaultCurves : message.ecdhCurves.join(":"),
    signatureAlgorithms,
  };
}

/** Asked now: the first connection would find it out by an exception. */
function takesSignatureAlgorithms(sigalgs: string): boolean {
  try {
    createSecureContext({ sigalgs });
    return true;
  } catch {
    return false;
  }
}

let ciphers: ReadonlySet<string> | undefined;

/** OpenSSL's names, in capitals. */
function knownCiphers(): ReadonlySet<string> {
  return (ciphers ??= new Set(getCiphers().map((name) => name.toUpperCase())));
}

/** `[A|B]` is a group without preference between its members; OpenSSL has an order there too. */
function cipherList(suites: readonly string[], place: Place, problems: Problems): string {
  if (suites.length === 0) return defaultCiphers;
  const names = suites.flatMap((suite) => suite.replace(/^\[(.*)\]$/, "$1").split("|"));
  const rejected = names.filter((name) => !knownCiphers().has(name.toUpperCase()));
  if (rejected.length > 0) {
    const words = "The following ciphers were rejected when tried individually";
    problems.error(place, `Failed to initialize cipher suites ${suites.join(":")}. ${words}: ${rejected.join(", ")}`);
  }
  return names.join(":");
}
