// One Secret that control planes share: read as it is now, and written only over what was read.
import { gunzipSync, gzipSync } from "node:zlib";
import { collectionPath, objectPath } from "../store/collections.ts";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError, unlessMissing } from "../client/kubernetes-error.ts";
import type { KubernetesObject } from "../follow/object-follower.ts";

export interface SecretObject extends KubernetesObject {
  readonly type?: string;
  /** In base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export interface SecretName {
  readonly client: Pick<KubernetesClient, "request">;
  readonly namespace: string;
  readonly name: string;
}

/** Undefined where there is none. @throws {KubernetesError} */
export async function readSecret({ client, namespace, name }: SecretName): Promise<SecretObject | undefined> {
  return unlessMissing(client.request<SecretObject>({ path: objectPath("v1", "Secret", namespace, name) }));
}

export function textOf(secret: SecretObject | undefined, key: string): string | undefined {
  const value = secret?.data?.[key];
  if (value === undefined) return undefined;
  const bytes = Buffer.from(value, "base64");
  const isCompressed = gzipMagic.every((byte, index) => bytes[index] === byte);
  return (isCompressed ? gunzipSync(bytes, { maxOutputLength: maxTextBytes }) : bytes).toString("utf8");
}

/** A Secret holds 1 MiB; a thousand machines and their tokens are about that, and a fifth of it compressed. */
const compressedAboveBytes = 64 * 1024;
const maxTextBytes = 64 * 1024 * 1024;
/** No text in UTF-8 begins so. */
const gzipMagic = [0x1f, 0x8b] as const;

export function codedText(text: string): string {
  const bytes = Buffer.from(text);
  return (bytes.length > compressedAboveBytes ? gzipSync(bytes) : bytes).toString("base64");
}

/**
 * Puts texts over what was read; other keys, labels and the type stay as they are. Undefined where another one has
 * written since, or has made or removed the Secret: nothing has changed then. @throws {KubernetesError}
 */
export async function writeSecret(
  { client, namespace, name }: SecretName,
  read: SecretObject | undefined,
  texts: Readonly<Record<string, string>>,
  type = "Opaque",
): Promise<SecretObject | undefined> {
  const coded = Object.entries(texts).map(([key, text]) => [key, codedText(text)]);
  const data = { ...read?.data, ...(Object.fromEntries(coded) as Readonly<Record<string, string>>) };
  const labels = { "app.kubernetes.io/part-of": "tulle" };
  const body =
    read === undefined
      ? { apiVersion: "v1", kind: "Secret", metadata: { name, namespace, labels }, type, data }
      : { ...read, data };
  const isNew = read === undefined;
  const path = isNew ? collectionPath("v1", "Secret", namespace) : objectPath("v1", "Secret", namespace, name);
  try {
    return await client.request<SecretObject>({ method: isNew ? "POST" : "PUT", path, body });
  } catch (error) {
    const code = error instanceof KubernetesError ? error.code : 0;
    if (code === 409 || (code === 404 && !isNew)) return undefined;
    throw error;
  }
}
