// Secrets in a file of the disk (ConfigSource.path_config_source), written as a DiscoveryResponse in YAML or JSON, and
// the files that a secret itself names.
import { readFileSync } from "node:fs";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { formatDocumentProblem, messageFromYaml } from "@tulle/xds/json";
import { DiscoveryResponseSchema } from "@tulle/xds/envoy/service/discovery/v3/discovery_pb";
import type { DataSource } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { type Secret, SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { directoryOf } from "./watched-files.ts";

export type SecretFile =
  | { readonly ok: true; readonly versionInfo: string; readonly secrets: ReadonlyMap<string, Secret> }
  | { readonly ok: false; readonly reason: string };

export function readSecretFile(path: string): SecretFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    return { ok: false, reason: (error as Error).message };
  }
  const result = messageFromYaml(DiscoveryResponseSchema, text, path);
  if (!result.ok) return { ok: false, reason: result.problems.map(formatDocumentProblem).join("; ") };
  const secrets = new Map<string, Secret>();
  for (const any of result.message.resources) {
    const secret = anyUnpack(any, SecretSchema);
    if (secret === undefined) return { ok: false, reason: `${path}: a resource is a ${any.typeUrl}, not a secret` };
    secrets.set(secret.name, secret);
  }
  return { ok: true, versionInfo: result.message.versionInfo, secrets };
}

/** Directories whose changes may change what the secret's files hold. */
export function directoriesOf(secret: Secret): ReadonlySet<string> {
  const { type } = secret;
  const sources: (DataSource | undefined)[] = [];
  let watched: string | undefined;
  if (type.case === "tlsCertificate") {
    sources.push(type.value.certificateChain, type.value.privateKey, type.value.password);
    watched = type.value.watchedDirectory?.path;
  } else if (type.case === "validationContext") {
    sources.push(type.value.trustedCa, type.value.crl);
    watched = type.value.watchedDirectory?.path;
  } else if (type.case === "genericSecret") {
    sources.push(type.value.secret);
  }
  const files = sources.flatMap((source) => (source?.specifier.case === "filename" ? [source.specifier.value] : []));
  return new Set(files.map((file) => directoryOf(file, watched)));
}
