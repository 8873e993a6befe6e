// The agent's own stream to the control plane: it brings the mesh's roots when they change, long before the next
// certificate would, so that no workload meets a peer under a root that it has not heard of.
import { type AdsClient, type Verdict, connectAds } from "@tulle/xds";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { Secret } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import type { Logger } from "@tulle/telemetry";
import { clientTls } from "./client-tls.ts";
import { rootsSecret } from "./secrets.ts";
import { parseRoots } from "./trusted-roots.ts";
import type { WorkloadIdentity } from "./workload-identity.ts";

/**
 * The first roots came with the certificate a moment ago, and a proxy that starts has better uses for the processor.
 */
const beginAfterMs = 3_000;

export interface RootsStreamOptions {
  /** `https://host:port` */
  readonly controlPlane: string;
  readonly node: Node;
  readonly identity: WorkloadIdentity;
  readonly log: Logger;
}

/** Connects soon after there is a certificate to show, and keeps connecting. */
export function followRoots({ controlPlane, node, identity, log }: RootsStreamOptions): Disposable {
  const connect = (): AdsClient => {
    const client = connectAds({
      target: controlPlane,
      node,
      service: "sds",
      tls: () => clientTls(identity.current!),
      handlers: {
        onResponse: (response) => (response.type === "SDS" ? takeRoots(response.resources, identity) : []),
        onState: (state) => {
          if (state.kind !== "waiting") return;
          identity.rootsMayBeOld();
          log.debug(`no stream for the trusted roots: ${state.reason}`);
        },
      },
    });
    client.subscribe("SDS", new Set([rootsSecret]));
    return client;
  };
  let client: AdsClient | undefined;
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => void (client = connect());
  const stopFollowing = identity.follow(() => void (timer ??= setTimeout(begin, beginAfterMs).unref()));
  return {
    [Symbol.dispose]: () => {
      stopFollowing();
      clearTimeout(timer);
      client?.close();
    },
  };
}

function takeRoots(secrets: ReadonlyMap<string, Secret>, identity: WorkloadIdentity): Verdict {
  const secret = secrets.get(rootsSecret);
  const text = secret === undefined ? undefined : trustedCa(secret);
  if (text === undefined) return [];
  const parsed = parseRoots(text);
  if (!parsed.ok) return [{ name: rootsSecret, message: parsed.message }];
  identity.takeRoots(parsed.pem);
  return [];
}

function trustedCa(secret: Secret): string | undefined {
  if (secret.type.case !== "validationContext") return undefined;
  const source = secret.type.value.trustedCa?.specifier;
  return source?.case === "inlineBytes" ? Buffer.from(source.value).toString("utf8") : undefined;
}
