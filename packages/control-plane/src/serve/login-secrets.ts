// What the sign-ins of gateways keep secret, as SDS resources: the client's secret out of a Secret, and the secret that
// seals the browsers' cookies, which is derived from one of this control plane, so that it is the same after every
// restart.
import { hkdfSync, randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { rootNamespaces, secretValue, type Store } from "@tulle/config";
import { type EncodedResource, encodeResource } from "@tulle/xds";
import { SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import type { KeptTexts } from "../state/state-folder.ts";
import { secretOfLogin } from "../translate/browser-login.ts";

/** Key of the Secret, as Envoy Gateway has it. */
export const clientSecretKey = "client-secret";

const rootSecretBytes = 32;

export class LoginSecrets {
  readonly #store: Pick<Store, "get">;
  readonly #rootSecret: Uint8Array;
  /** By name and content: the same secret is the same resource, and not sent again. */
  readonly #encoded = new Map<string, { readonly text: string; readonly resource: EncodedResource }>();

  constructor(store: Pick<Store, "get">, rootSecret: Uint8Array) {
    this.#store = store;
    this.#rootSecret = rootSecret;
  }

  /**
   * For a gateway that has proved to run in `namespace`: one of the login's own, or one of the mesh's. Labels alone
   * make a pod a gateway, so that any other namespace could have one.
   */
  find(resourceName: string, namespace: string): EncodedResource | undefined {
    const named = secretOfLogin(resourceName);
    const login = named && this.#store.get("BrowserLogin", named.namespace, named.name);
    if (login === undefined) return undefined;
    const { metadata, spec } = login;
    if (namespace !== metadata.namespace && !rootNamespaces.includes(namespace)) return undefined;
    if (!named!.isClient) {
      const info = `cookies of ${metadata.namespace}/${metadata.name} at ${namespace}`;
      return this.#encode(resourceName, Buffer.from(hkdfSync("sha256", this.#rootSecret, "", info, rootSecretBytes)));
    }
    if (spec.clientSecret === undefined) return undefined;
    const secret = this.#store.get("Secret", metadata.namespace, spec.clientSecret.name);
    const value = secret === undefined ? undefined : secretValue(secret, clientSecretKey);
    return value === undefined || value.length === 0 ? undefined : this.#encode(resourceName, value);
  }

  #encode(name: string, value: Buffer): EncodedResource {
    const text = value.toString("base64");
    const known = this.#encoded.get(name);
    if (known?.text === text) return known.resource;
    const message = create(SecretSchema, {
      name,
      type: {
        case: "genericSecret",
        value: { secret: { specifier: { case: "inlineBytes", value: Uint8Array.from(value) } } },
      },
    });
    const resource = encodeResource(SecretSchema, message);
    this.#encoded.set(name, { text, resource });
    return resource;
  }
}

/** Read from the state, or made there. @throws when it is none of ours */
export async function openLoginRootSecret(state: KeptTexts): Promise<Uint8Array> {
  const name = "cookie-secret";
  const kept = await state.read(name);
  const text = kept?.text ?? (await state.writeNew(name, `${randomBytes(rootSecretBytes).toString("base64url")}\n`));
  const secret = Buffer.from(text.trim(), "base64url");
  if (secret.length !== rootSecretBytes)
    throw new Error(`${state.placeOf(name)} is damaged: remove it, and everyone signs in anew`);
  return secret;
}
