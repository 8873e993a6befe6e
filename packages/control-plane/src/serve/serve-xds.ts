// The two ports that a control plane serves xDS on: one for whoever may connect, and one with TLS for workloads that
// show their certificate, or ask for it.
import type { Clock } from "@tulle/timing";
import { descriptorLimit, descriptorOf, type DescriptorReserve } from "@tulle/listening";
import {
  type AdsServerLimits,
  type AdsServerOptions,
  defaultAdsServerLimits,
  type MachineHandlers,
  type RunningAdsServer,
  serveAds,
} from "@tulle/xds";
import type { KnownPods } from "../ca/known-pods.ts";
import type { Security } from "../ca/open-security.ts";
import { serveProvenWorkloads } from "../ca/serve-proven-workloads.ts";
import type { Machines } from "../machines/open-machines.ts";
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
  /** The same for machines, which also join there; by a socket that was inherited, if there is a `descriptor`. */
  readonly joinAddress?: Address & { readonly descriptor?: number | undefined };
  readonly xdsLimits?: Partial<AdsServerLimits>;
}

export interface XdsServers extends AsyncDisposable {
  /** Undefined where none was asked for. */
  readonly plaintext: Address | undefined;
  readonly tls: Address | undefined;
  readonly join: Address | undefined;
}

export interface XdsStages {
  readonly pusher: Pusher;
  readonly pods: KnownPods;
  readonly turnedAway: TurnedAway;
  /** Undefined where nobody has a certificate. */
  readonly machines: Machines | undefined;
}

export async function serveXds(
  { xdsAddress, xdsTlsAddress, joinAddress, xdsLimits }: XdsAddresses,
  controlPlaneId: string,
  { pusher, pods, turnedAway, machines }: XdsStages,
  security: Security | undefined,
  clock: Clock,
  descriptors: DescriptorReserve,
): Promise<XdsServers> {
  const onTurnedAway: AdsServerOptions["onTurnedAway"] = (peer, refusal) => turnedAway.note(peer, refusal);
  const refusesConnection: AdsServerOptions["refusesConnection"] = (socket) =>
    descriptors.refuses(descriptorOf(socket), performance.now());
  const shared = { controlPlaneId, clock, onTurnedAway, refusesConnection, limits: withinDescriptors(xdsLimits) };
  const open = new AsyncDisposableStack();
  const opened = (server: RunningAdsServer): Address | undefined => {
    open.defer(() => server.close());
    return "port" in server.address ? server.address : undefined;
  };
  try {
    const plaintext = xdsAddress && opened(await serveAds({ ...shared, address: xdsAddress, handlers: pusher }));
    if (security === undefined) return disposable({ plaintext, tls: undefined, join: undefined }, open);
    const { authority, metrics, log, judgeToken, tracer } = security;
    const handlers = machines?.following(pusher) ?? pusher;
    const renewals = machines?.desk.renewals;
    const proven = { handlers, authority, judgeToken, pods, metrics, log, tracer, renewals };
    const serve = async (address: Address, desk?: MachineHandlers): Promise<Address | undefined> =>
      opened(await serveProvenWorkloads({ ...proven, server: { ...shared, address }, machines: desk }));
    const tls = xdsTlsAddress && (await serve(xdsTlsAddress));
    const join = joinAddress && (await serve(joinAddress, machines?.desk));
    return disposable({ plaintext, tls, join }, open);
  } catch (error) {
    await open.disposeAsync();
    throw error;
  }
}

/** Of the descriptors, whoever says nothing takes no more than this, and whoever has shown no certificate as many. */
const unprovenOfDescriptors = 1 / 8;

function withinDescriptors(given: Partial<AdsServerLimits> | undefined): AdsServerLimits {
  const limits = { ...defaultAdsServerLimits, ...given };
  const most = Math.ceil(descriptorLimit() * unprovenOfDescriptors);
  return {
    ...limits,
    maxHandshakes: Math.min(limits.maxHandshakes, most),
    maxUnproven: Math.min(limits.maxUnproven, most),
  };
}

function disposable(servers: Omit<XdsServers, typeof Symbol.asyncDispose>, open: AsyncDisposableStack): XdsServers {
  return { ...servers, [Symbol.asyncDispose]: () => open.disposeAsync() };
}
