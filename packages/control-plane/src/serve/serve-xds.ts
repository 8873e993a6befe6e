// The two ports that a control plane serves xDS on: one for whoever may connect, and one with TLS for workloads that show their
// certificate, or ask for it.
import type { DescriptorReserve } from "@tulle/telemetry";
import { type AdsServerLimits, type AdsServerOptions, type Clock, type RunningAdsServer, serveAds } from "@tulle/xds";
import type { KnownPods } from "../ca/known-pods.ts";
import type { Security } from "../ca/open-security.ts";
import { serveProvenWorkloads } from "../ca/serve-proven-workloads.ts";
import type { Pusher } from "./pusher.ts";
import type { TurnedAway } from "./turned-away.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface XdsAddresses {
  /** Port 0 takes a free one, here and below. Without TLS, for whoever may connect; none when missing. */
  readonly xdsAddress?: Address;
  /** With TLS, for workloads that show their certificate, or ask for it. With it comes the certificate authority. */
  readonly xdsTlsAddress?: Address;
  readonly xdsLimits?: Partial<AdsServerLimits>;
}

export interface XdsServers extends AsyncDisposable {
  /** Undefined where none was asked for. */
  readonly plaintext: Address | undefined;
  readonly tls: Address | undefined;
}

export async function serveXds(
  { xdsAddress, xdsTlsAddress, xdsLimits: limits }: XdsAddresses,
  controlPlaneId: string,
  { pusher, pods, turnedAway }: { readonly pusher: Pusher; readonly pods: KnownPods; readonly turnedAway: TurnedAway },
  security: Security | undefined,
  clock: Clock,
  descriptors: DescriptorReserve,
): Promise<XdsServers> {
  const onTurnedAway: AdsServerOptions["onTurnedAway"] = (peer, refusal) => turnedAway.note(peer, refusal);
  const shared = { controlPlaneId, clock, onTurnedAway, ...(limits === undefined ? {} : { limits }) };
  const open = new AsyncDisposableStack();
  const opened = (server: RunningAdsServer): Address | undefined => {
    open.defer(() => server.close());
    return "port" in server.address ? server.address : undefined;
  };
  try {
    const plaintext = xdsAddress && opened(await serveAds({ ...shared, address: xdsAddress, handlers: pusher }));
    if (xdsTlsAddress === undefined || security === undefined) return disposable({ plaintext, tls: undefined }, open);
    const { authority, metrics, log, tokenKey } = security;
    const server = { ...shared, address: xdsTlsAddress };
    const proven = { server, handlers: pusher, authority, tokenKeys: [tokenKey], pods, metrics, log, descriptors };
    return disposable({ plaintext, tls: opened(await serveProvenWorkloads(proven)) }, open);
  } catch (error) {
    await open.disposeAsync();
    throw error;
  }
}

function disposable(servers: Pick<XdsServers, "plaintext" | "tls">, open: AsyncDisposableStack): XdsServers {
  return { ...servers, [Symbol.asyncDispose]: () => open.disposeAsync() };
}
