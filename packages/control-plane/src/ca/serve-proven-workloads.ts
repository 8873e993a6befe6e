// The port with TLS (15012): ADS and SDS for workloads that have proved who they are, and certificates for those that are about to.
import type { WorkloadTokenKey } from "@tulle/identity/workload-token";
import { descriptorLimit, descriptorOf, type DescriptorReserve, type Logger, SeldomWarning } from "@tulle/telemetry";
import {
  type AdsServerHandlers,
  type AdsServerOptions,
  certificateService,
  defaultAdsServerLimits,
  type RunningAdsServer,
  serveAds,
} from "@tulle/xds";
import type { CaMetrics } from "./ca-metrics.ts";
import { answerCertificateRequest } from "./certificate-requests.ts";
import type { KnownPods } from "./known-pods.ts";
import type { MeshAuthority } from "./mesh-authority.ts";
import { endingWithThePod, ownConfigurationOnly, workloadsOnly } from "./own-configuration.ts";
import { trustBundleStreams } from "./trust-bundle-streams.ts";

export interface ProvenWorkloadsOptions {
  /** Where, within which limits, and in whose name. */
  readonly server: Pick<AdsServerOptions, "address" | "limits" | "clock" | "controlPlaneId" | "onTurnedAway">;
  readonly handlers: AdsServerHandlers;
  readonly authority: MeshAuthority;
  readonly tokenKeys: readonly WorkloadTokenKey[];
  readonly pods: KnownPods;
  readonly metrics: CaMetrics;
  readonly log: Logger;
  readonly descriptors: DescriptorReserve;
}

/** Whoever has not proved anything takes no more of the descriptors; of many, as many as the xDS server allows. */
const handshakesOfDescriptors = 1 / 8;

/** Rejects if the address cannot be bound. */
export async function serveProvenWorkloads(options: ProvenWorkloadsOptions): Promise<RunningAdsServer> {
  const { authority, handlers, metrics, log, pods, descriptors } = options;
  const { limits } = options.server;
  const maxHandshakes = Math.min(
    limits?.maxHandshakes ?? defaultAdsServerLimits.maxHandshakes,
    Math.ceil(descriptorLimit() * handshakesOfDescriptors),
  );
  // Anybody can be refused as often as they like; the reasons are a few.
  const warnings = new Map<string, SeldomWarning>();
  const warnOf = (reason: string): SeldomWarning => {
    let warning = warnings.get(reason);
    if (warning === undefined) warnings.set(reason, (warning = new SeldomWarning(log)));
    return warning;
  };
  const server = await serveAds({
    ...options.server,
    limits: { ...limits, maxHandshakes },
    handlers: endingWithThePod(handlers, pods, log),
    secretHandlers: endingWithThePod(trustBundleStreams(authority), pods, log),
    admission: workloadsOnly(pods, metrics),
    refusal: ownConfigurationOnly(pods, metrics, log),
    refusesConnection: (socket) => descriptors.refuses(descriptorOf(socket), performance.now()),
    unaryHandlers: certificateService((call) => answerCertificateRequest(options, call)),
    tls: {
      credentials: authority.credentials,
      verifyClient: (chain) => authority.verifyClient(chain),
      onRefused: ({ peer, reason, message }) => {
        metrics.refusedConnections(reason).increment();
        warnOf(reason).tell("a connection was refused", { peer, reason, detail: message });
      },
    },
  });
  authority.follow(() => server.setCredentials(authority.credentials));
  return server;
}
