// What both sides of TLS share (CommonTlsContext), compiled: versions and ciphers, the slots of its secrets, and what
// OpenSSL is given of them. Made when a connection first needs it, made again once a secret has changed.
import type { X509Certificate } from "node:crypto";
import type { SecureContext } from "node:tls";
import { mergedValidation, validationProblem } from "./merged-validation.ts";
import type { Secret, TlsCertificate, ValidationContext } from "./secret.ts";
import type { SecretSlot } from "./secret-slot.ts";
import { sharedSecureContext } from "./secure-context.ts";

/** In OpenSSL's words. */
export interface TlsParameters {
  readonly minVersion: TlsVersion;
  readonly maxVersion: TlsVersion;
  /** Colon-separated, those of TLS 1.3 included. */
  readonly ciphers: string;
  readonly ecdhCurves: string;
  /** Empty: OpenSSL's own. */
  readonly signatureAlgorithms: string;
}

export type TlsVersion = "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3";

export interface CommonTlsContextOptions {
  readonly role: "client" | "server";
  readonly parameters: TlsParameters;
  readonly certificates: readonly SecretSlot[];
  /**
   * Rules that stand in the context itself; with `validationSlot` too, both hold together
   * (combined_validation_context).
   */
  readonly ownValidation: ValidationContext | undefined;
  readonly validationSlot: SecretSlot | undefined;
  readonly alpnProtocols: readonly string[];
  readonly server?: ServerSettings | undefined;
}

/** What only the serving side decides. */
export interface ServerSettings {
  /** Sessions can be taken up again (RFC 5077, RFC 8446 §2.2). */
  readonly tickets: boolean;
  readonly timeoutSeconds: number;
  readonly prefersClientCiphers: boolean;
}

/** One version of everything that a handshake needs. */
export interface TlsMaterial {
  readonly certificates: readonly TlsCertificate[];
  /** Undefined: the peer's certificate is not looked at. */
  readonly validation: ValidationContext | undefined;
  /**
   * One for each set of names, in the order of the configuration; a server chooses by SNI, the first serves otherwise.
   * A client has exactly one. It asks OpenSSL for the outcome of the chain's verification and enforces nothing:
   * `verifyPeer` does.
   */
  readonly contexts: readonly CertificateContext[];
}

export interface CertificateContext {
  /** DNS names of the certificate; wildcards as they stand in it. */
  readonly dnsNames: readonly string[];
  readonly secureContext: SecureContext;
}

/** As Envoy has them: the number is of an empty name. */
const unnamed = { leaf: "unnamed_cert_e3b0c442", authority: "unnamed_ca_cert_e3b0c442" };

export class CommonTlsContext {
  readonly role: "client" | "server";
  readonly parameters: TlsParameters;
  readonly alpnProtocols: readonly string[];
  /** All that must have come before connections can be made. */
  readonly secrets: ReadonlySet<SecretSlot>;
  readonly #certificates: readonly SecretSlot[];
  readonly #ownValidation: ValidationContext | undefined;
  readonly #validationSlot: SecretSlot | undefined;
  readonly #server: ServerSettings | undefined;
  /** Sum of the slots' versions, which only grow. */
  #madeOf = -1;
  #material: TlsMaterial | undefined = undefined;

  constructor(options: CommonTlsContextOptions) {
    this.role = options.role;
    this.parameters = options.parameters;
    this.alpnProtocols = options.alpnProtocols;
    this.#certificates = options.certificates;
    this.#ownValidation = options.ownValidation;
    this.#validationSlot = options.validationSlot;
    this.#server = options.server;
    const secrets = [...options.certificates];
    if (options.validationSlot !== undefined) secrets.push(options.validationSlot);
    this.secrets = new Set(secrets);
  }

  get hasNoCertificate(): boolean {
    return this.#certificates.length === 0;
  }

  /**
   * The material of now; the same object until a secret changes. Undefined while a secret is missing: no connection can
   * be made.
   */
  get material(): TlsMaterial | undefined {
    let version = 0;
    for (const slot of this.secrets) version += slot.version;
    if (version !== this.#madeOf) {
      this.#madeOf = version;
      this.#material = this.#make();
    }
    return this.#material;
  }

  /** Leaves, and the first authority, with the names of their secrets; none while a secret is missing. */
  namedCertificates(): readonly { readonly name: string; readonly certificate: X509Certificate }[] {
    for (const { current } of this.secrets) if (current === undefined) return [];
    const named = this.#certificates.flatMap(({ name, current }) =>
      current?.type === "tls_certificate" ? [{ name: name || unnamed.leaf, certificate: current.chain[0]! }] : [],
    );
    const trustedCa = validationOf(this.#validationSlot?.current)?.trustedCa ?? this.#ownValidation?.trustedCa;
    const authority = trustedCa?.certificates[0];
    if (authority === undefined) return named;
    return [...named, { name: this.#validationSlot?.name ?? unnamed.authority, certificate: authority }];
  }

  #make(): TlsMaterial | undefined {
    const certificates: TlsCertificate[] = [];
    for (const slot of this.#certificates) {
      const secret = slot.current;
      if (secret?.type !== "tls_certificate") return undefined;
      certificates.push(secret);
    }
    const fetched = this.#validationSlot?.current;
    if (this.#validationSlot !== undefined && fetched?.type !== "validation_context") return undefined;
    const validation = mergedValidation(this.#ownValidation, validationOf(fetched));
    // What came as a secret may lack what the rules here rest on: better no connection than one that is not verified.
    if (validation !== undefined && validationProblem(validation) !== undefined) return undefined;
    // A client shows the one certificate that it has.
    const groups = this.role === "client" ? [certificates.slice(0, 1)] : groupsByNames(certificates);
    const contexts = groups.map((group) => ({
      dnsNames: group[0]?.dnsNames ?? [],
      secureContext: sharedSecureContext({
        role: this.role,
        parameters: this.parameters,
        certificates: group,
        validation,
        server: this.#server,
      }),
    }));
    return { certificates, validation, contexts };
  }
}

function validationOf(secret: Secret | undefined): ValidationContext | undefined {
  return secret?.type === "validation_context" ? secret : undefined;
}

/**
 * Certificates of the same names and different kinds of keys stand in one context, where the client's abilities choose.
 */
function groupsByNames(certificates: readonly TlsCertificate[]): readonly (readonly TlsCertificate[])[] {
  const groups: TlsCertificate[][] = [];
  for (const certificate of certificates) {
    const names = certificate.dnsNames.join();
    const group = groups.find(
      (members) =>
        members[0]!.dnsNames.join() === names && members.every(({ keyType }) => keyType !== certificate.keyType),
    );
    if (group === undefined) groups.push([certificate]);
    else group.push(certificate);
  }
  return groups.length === 0 ? [[]] : groups;
}
