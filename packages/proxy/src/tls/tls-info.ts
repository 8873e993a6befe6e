// What a finished TLS handshake has settled, and the certificates of both sides as logs, headers and policies show
// them. Texts that few ask for are made when somebody asks; a certificate that comes again is read once.
import { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { peerNames } from "./peer-names.ts";
import { sessionGroup } from "./session-group.ts";

/** The certificate that the client showed, as policies compare it. A TLS connection without one has empty lists. */
export interface PeerCertificate {
  readonly uriSans: readonly string[];
  readonly dnsSans: readonly string[];
  /** RFC 2253 text of the subject. */
  readonly subject: string;
}

export interface TlsInfo {
  /** Of a peer without a certificate, one whose texts are all empty. */
  readonly peer: ShownCertificateInfo;
  readonly local: ShownCertificateInfo;
  /** The peer's certificate was asked for and found good. */
  readonly peerIsValidated: boolean;
  /** `TLSv1.3` */
  readonly version: string;
  /** OpenSSL's name, such as `TLS_AES_128_GCM_SHA256`. */
  readonly cipher: string;
  /** Empty = none was agreed on. */
  readonly applicationProtocol: string;
  /** When the handshake was over, of the monotonic clock. */
  readonly establishedMs: number;
  /** When the handshake began: with the client's hello, or as the connection to a host was there. */
  readonly startedMs: number;
  /** Hexadecimal; empty once the socket is gone. */
  sessionId(): string;
  /** `keyExchangeGroup` */
  group(): string;
}

/** What is known of a connection to a host beside that. */
export interface UpstreamTlsInfo extends TlsInfo {
  /** When TCP's own handshake was over. */
  readonly connectedMs: number;
  /** That was asked for; empty = none was. */
  readonly serverName: string;
}

/** What Envoy calls those that OpenSSL names otherwise. */
const groupNames = new Map([
  ["prime256v1", "P-256"],
  ["secp384r1", "P-384"],
  ["secp521r1", "P-521"],
]);

/** Of a handshake's key exchange, such as `X25519MLKEM768`; empty where there was none. */
export function keyExchangeGroup(socket: TLSSocket): string {
  const info = socket.getEphemeralKeyInfo();
  // It is null for servers alone.
  if (info === null) return sessionGroup(socket);
  const name = "name" in info ? (info.name ?? "") : "";
  return groupNames.get(name) ?? name;
}

/** A certificate as it was shown in a handshake. */
export class ShownCertificateInfo implements PeerCertificate {
  readonly #certificate: X509Certificate | undefined;
  readonly uriSans: readonly string[];
  readonly dnsSans: readonly string[];
  readonly ipSans: readonly string[];
  readonly emailSans: readonly string[];
  /** RFC 2253 text, as of the issuer. */
  readonly subject: string;
  /** SHA-256, lower-case hexadecimal; empty without a certificate. */
  readonly fingerprint256: string;
  #issuer: string | undefined = undefined;
  #encodedPem: string | undefined = undefined;
  #encodedChain: string | undefined = undefined;

  constructor(certificate: X509Certificate | undefined) {
    this.#certificate = certificate;
    const names = certificate === undefined ? [] : peerNames(certificate);
    const ofType = (type: string): readonly string[] =>
      names.filter((name) => name.type === type).map(({ value }) => value);
    this.uriSans = ofType("uri");
    this.dnsSans = ofType("dns");
    this.ipSans = ofType("ip_address");
    this.emailSans = ofType("email");
    this.subject = rfc2253(certificate?.subject);
    this.fingerprint256 = hexadecimal(certificate?.fingerprint256);
  }

  get isPresent(): boolean {
    return this.#certificate !== undefined;
  }

  get issuer(): string {
    return (this.#issuer ??= rfc2253(this.#certificate?.issuer));
  }

  get fingerprint1(): string {
    return hexadecimal(this.#certificate?.fingerprint);
  }

  /** Hexadecimal in lower case. */
  get serialNumber(): string {
    return (this.#certificate?.serialNumber ?? "").toLowerCase();
  }

  /** Undefined without a certificate. */
  get validFromMs(): number | undefined {
    return this.#certificate?.validFromDate.getTime();
  }

  get validToMs(): number | undefined {
    return this.#certificate?.validToDate.getTime();
  }

  /** The chain as it was shown, leaf first. */
  get chain(): readonly ShownCertificateInfo[] {
    return chainOf(this.#certificate).map((each) => shownCertificateInfo(each));
  }

  /** PEM, percent-encoded. */
  get encodedPem(): string {
    return (this.#encodedPem ??= encodeURIComponent(this.#certificate?.toString() ?? ""));
  }

  /** The chain as it was shown, leaf first; percent-encoded PEM of each. */
  get encodedChain(): string {
    return (this.#encodedChain ??= chainOf(this.#certificate)
      .map((each) => encodeURIComponent(each.toString()))
      .join(""));
  }
}

const maxChainLength = 16;

function chainOf(leaf: X509Certificate | undefined): readonly X509Certificate[] {
  const chain: X509Certificate[] = [];
  for (let next = leaf; next !== undefined && chain.length < maxChainLength; next = next.issuerCertificate) {
    const { raw } = next;
    if (chain.some((each) => each.raw.equals(raw))) break;
    chain.push(next);
  }
  return chain;
}

function hexadecimal(fingerprint: string | undefined): string {
  return (fingerprint ?? "").replaceAll(":", "").toLowerCase();
}

/**
 * Node writes one attribute a line, first things first, already escaped; RFC 2253 has them the other way round in one
 * line, and every byte above 127 escaped.
 */
function rfc2253(name: string | undefined): string {
  if (name === undefined || name === "") return "";
  const reversed = name
    .split("\n")
    .reverse()
    .map((line) => line.split(" + ").reverse().join("+"))
    .join(",");
  return reversed.replace(/[^\0-\x7f]+/g, (text) =>
    [...Buffer.from(text, "utf8")].map((byte) => `\\${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}

const noCertificate = new ShownCertificateInfo(undefined);
/** By SHA-256 of the certificate; a mesh's workload meets the same few peers again and again. */
const known = new Map<string, ShownCertificateInfo>();
const maxKnown = 1024;

export function shownCertificateInfo(certificate: X509Certificate | undefined): ShownCertificateInfo {
  if (certificate === undefined) return noCertificate;
  const key = certificate.fingerprint256;
  let info = known.get(key);
  if (info !== undefined) return info;
  info = new ShownCertificateInfo(certificate);
  if (known.size >= maxKnown) known.delete(known.keys().next().value!);
  known.set(key, info);
  return info;
}

/**
 * The session's id out of its DER (`SSL_SESSION`: version, TLS version, cipher, id). TLS 1.3 has none that means
 * anything.
 */
export function sessionIdOf(socket: TLSSocket): string {
  if (socket.destroyed || socket.getProtocol() === "TLSv1.3") return "";
  const handle = (socket as unknown as { _handle?: { getSession(): Buffer | undefined } | null })._handle;
  const session = handle?.getSession();
  if (session === undefined) return "";
  let position = session[1]! < 0x80 ? 2 : 2 + (session[1]! & 0x7f);
  // Three short values stand before it.
  for (let skipped = 0; skipped < 3; skipped += 1) position += 2 + (session[position + 1] ?? 0);
  const length = session[position + 1] ?? 0;
  return session[position] === 4 ? session.subarray(position + 2, position + 2 + length).toString("hex") : "";
}
