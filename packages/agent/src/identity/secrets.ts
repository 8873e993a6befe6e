// A workload's identity as Envoy's secrets, under the names that Istio's proxies ask for.
import type { WorkloadCertificate } from "@tulle/identity";
import { type EncodedResource, encodeResource } from "@tulle/xds";
import { SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { create } from "@bufbuild/protobuf";

/** Key and chain. */
export const certificateSecret = "default";
/** What peers are verified with. */
export const rootsSecret = "ROOTCA";

export function encodeSecrets(
  certificate: Pick<WorkloadCertificate, "keyPem" | "chainPem" | "rootsPem">,
): ReadonlyMap<string, EncodedResource> {
  const inline = (pem: string) => ({ specifier: { case: "inlineBytes" as const, value: Buffer.from(pem) } });
  const secrets = [
    create(SecretSchema, {
      name: certificateSecret,
      type: {
        case: "tlsCertificate",
        value: { certificateChain: inline(certificate.chainPem), privateKey: inline(certificate.keyPem) },
      },
    }),
    create(SecretSchema, {
      name: rootsSecret,
      type: { case: "validationContext", value: { trustedCa: inline(certificate.rootsPem) } },
    }),
  ];
  return new Map(secrets.map((secret) => [secret.name, encodeResource(SecretSchema, secret)]));
}
