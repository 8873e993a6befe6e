// OpenSSL's side of TLS material. Equal material shares one SecureContext, which costs a millisecond and tens of
// kilobytes: a mesh's thousand clusters show the same certificate and trust the same roots.
import { constants, createHash } from "node:crypto";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import type { ServerSettings, TlsParameters } from "./common-tls-context.ts";
import type { TlsCertificate, ValidationContext } from "./secret.ts";

export interface SecureContextRequest {
  readonly role: "client" | "server";
  readonly parameters: TlsParameters;
  /** At most one of each kind of key. */
  readonly certificates: readonly TlsCertificate[];
  readonly validation: ValidationContext | undefined;
  readonly server?: ServerSettings | undefined;
}

/** Node's types do not know it yet: a trusted intermediate ends the chain (X509_V_FLAG_PARTIAL_CHAIN), as in Envoy. */
interface PartialChainOptions extends SecureContextOptions {
  readonly allowPartialTrustChain: boolean;
}

const made = new Map<string, WeakRef<SecureContext>>();

/** Whoever uses it keeps it; it goes with the last user. */
export function sharedSecureContext(request: SecureContextRequest): SecureContext {
  const key = contextKey(request);
  const known = made.get(key)?.deref();
  if (known !== undefined) return known;
  for (const [oldKey, reference] of made) if (reference.deref() === undefined) made.delete(oldKey);
  const context = newSecureContext(request, key);
  made.set(key, new WeakRef(context));
  return context;
}

function contextKey({ role, parameters, certificates, validation, server }: SecureContextRequest): string {
  const { minVersion, maxVersion, ciphers, ecdhCurves, signatureAlgorithms } = parameters;
  return [
    role,
    minVersion,
    maxVersion,
    ciphers,
    ecdhCurves,
    signatureAlgorithms,
    ...certificates.map(({ digest }) => digest),
    validation?.trustedCa?.digest ?? "",
    crlOf(validation)?.digest ?? "",
    server === undefined ? "" : `${server.tickets} ${server.timeoutSeconds} ${server.prefersClientCiphers}`,
  ].join(" ");
}

/** OpenSSL looks for lists of every authority of a chain or of none; for the leaf alone, `verifyPeer` looks itself. */
function crlOf(validation: ValidationContext | undefined): ValidationContext["crl"] {
  return validation?.checksLeafRevocationOnly === true ? undefined : validation?.crl;
}

function newSecureContext(request: SecureContextRequest, key: string): SecureContext {
  const { role, parameters, certificates, validation, server } = request;
  const crl = crlOf(validation);
  const options: PartialChainOptions = {
    minVersion: parameters.minVersion,
    maxVersion: parameters.maxVersion,
    ciphers: parameters.ciphers,
    ecdhCurve: parameters.ecdhCurves,
    ...(parameters.signatureAlgorithms !== "" && { sigalgs: parameters.signatureAlgorithms }),
    honorCipherOrder: role === "server" && server?.prefersClientCiphers !== true,
    ...(server !== undefined && { sessionTimeout: server.timeoutSeconds }),
    // A peer that shakes hands again and again would be given a processor, and may come to be somebody else (BoringSSL
    // refuses it).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | (server?.tickets === false ? constants.SSL_OP_NO_TICKET : 0),
    ...(certificates.length > 0 && {
      cert: certificates.map(({ chainPem }) => chainPem),
      key: certificates.map(({ keyPem }) => keyPem),
    }),
    // Without any authority Node would take its own list of public ones.
    ca: validation?.trustedCa?.pem ?? [],
    ...(crl !== undefined && { crl: crl.pem }),
    allowPartialTrustChain: true,
    // Sessions are taken up again only where everything that decided on them is the same.
    sessionIdContext: createHash("sha256").update(key).digest("hex").slice(0, 32),
  };
  return createSecureContext(options);
}
