// Secrets as SDS resources: looked up when a gateway asks by name, encoded once for each version of a Secret, and kept
// apart from everything that is translated, so that a new certificate is sent alone.
import { create } from "@bufbuild/protobuf";
import { authoritiesSuffix, authorityCredential, type Secret, serverCredential, type Store } from "@tulle/config";
import { type EncodedResource, encodeResource } from "@tulle/xds";
import { type Secret as SdsSecret, SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { credentialScheme } from "../translate/gateway-tls-context.ts";

export class SecretResources {
  readonly #store: Pick<Store, "get">;
  /** By the object, of which the store has a new one for each version; then by the name asked for. */
  readonly #encoded = new WeakMap<Secret, Map<string, EncodedResource | undefined>>();

  constructor(store: Pick<Store, "get">) {
    this.#store = store;
  }

  /**
   * What `kubernetes://<name>`, `kubernetes://<name>-cacert` or the same with `<namespace>/` mean to a gateway of
   * `namespace`. Undefined for a Secret that is not there, holds no such thing, or lies in another namespace.
   */
  find(resourceName: string, namespace: string): EncodedResource | undefined {
    if (!resourceName.startsWith(credentialScheme)) return undefined;
    const parts = resourceName.slice(credentialScheme.length).split("/");
    const name = parts.pop()!;
    if (parts.length > 1 || (parts.length === 1 && parts[0] !== namespace)) return undefined;
    const secret = this.#secret(name, namespace);
    if (secret === undefined) return undefined;
    let byName = this.#encoded.get(secret);
    if (byName === undefined) this.#encoded.set(secret, (byName = new Map<string, EncodedResource | undefined>()));
    if (!byName.has(resourceName)) byName.set(resourceName, encode(resourceName, secret));
    return byName.get(resourceName);
  }

  /**
   * Authorities are a Secret of their own, or stand beside the certificate (Istio: CredentialsController.GetCaCert).
   */
  #secret(name: string, namespace: string): Secret | undefined {
    const exact = this.#store.get("Secret", namespace, name);
    if (exact !== undefined || !name.endsWith(authoritiesSuffix)) return exact;
    return this.#store.get("Secret", namespace, name.slice(0, -authoritiesSuffix.length));
  }
}

function encode(resourceName: string, secret: Secret): EncodedResource | undefined {
  const message = resourceName.endsWith(authoritiesSuffix)
    ? validationContext(resourceName, secret)
    : tlsCertificate(resourceName, secret);
  return message === undefined ? undefined : encodeResource(SecretSchema, message);
}

function tlsCertificate(name: string, secret: Secret): SdsSecret | undefined {
  const read = serverCredential(secret);
  if (!read.ok) return undefined;
  const { certificateChain, privateKey, ocspStaple } = read.credential;
  return create(SecretSchema, {
    name,
    type: {
      case: "tlsCertificate",
      value: {
        certificateChain: inline(certificateChain),
        privateKey: inline(privateKey),
        ...(ocspStaple === undefined ? {} : { ocspStaple: inline(ocspStaple) }),
      },
    },
  });
}

function validationContext(name: string, secret: Secret): SdsSecret | undefined {
  const read = authorityCredential(secret);
  if (!read.ok) return undefined;
  const { trustedCa, revocationList } = read.credential;
  return create(SecretSchema, {
    name,
    type: {
      case: "validationContext",
      value: {
        trustedCa: inline(trustedCa),
        ...(revocationList === undefined ? {} : { crl: inline(revocationList) }),
      },
    },
  });
}

function inline(value: Uint8Array): {
  readonly specifier: { readonly case: "inlineBytes"; readonly value: Uint8Array<ArrayBuffer> };
} {
  // Of its own buffer: small ones are views of a pool that other things share.
  return { specifier: { case: "inlineBytes", value: Uint8Array.from(value) } };
}
