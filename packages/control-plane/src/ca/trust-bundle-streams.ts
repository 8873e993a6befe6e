// SDS streams of agents: the roots that workloads are to trust, as the secret `ROOTCA`, at once and at each change.
// Certificates of a new root appear only after everyone has had time to hear of it here.
import { create } from "@bufbuild/protobuf";
import { type AdsConnection, type AdsServerHandlers, type EncodedResource, encodeResource } from "@tulle/xds";
import { SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import type { MeshAuthority } from "./mesh-authority.ts";

/** Istio's name for it, in the agent's own SDS too. */
const trustBundleName = "ROOTCA";

export function trustBundleStreams(authority: Pick<MeshAuthority, "signing" | "follow">): AdsServerHandlers {
  const open = new Set<AdsConnection>();
  const push = (connection: AdsConnection): void => connection.set("SDS", bundle(authority.signing.trustBundlePem));
  authority.follow(() => {
    for (const connection of open) push(connection);
  });
  return {
    onConnect: (connection) => {
      open.add(connection);
      push(connection);
    },
    onSubscribe: () => undefined,
    onDisconnect: (connection) => void open.delete(connection),
  };
}

function bundle(pem: string): ReadonlyMap<string, EncodedResource> {
  const secret = create(SecretSchema, {
    name: trustBundleName,
    type: {
      case: "validationContext",
      value: { trustedCa: { specifier: { case: "inlineBytes", value: Buffer.from(pem) } } },
    },
  });
  return new Map([[trustBundleName, encodeResource(SecretSchema, secret)]]);
}
