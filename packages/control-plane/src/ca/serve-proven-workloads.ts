// The port with TLS (15012): ADS and SDS for workloads that have proved who they are, and certificates for those that
// are about to.
import type { TokenJudge } from "@tulle/identity/workload-token";
import { type Logger, type ProcessTracer, SeldomWarnings } from "@tulle/telemetry";
import {
  type AdsServerHandlers,
  type AdsServerOptions,
  type MachineHandlers,
  type ServerTlsCredentials,
  certificateService,
  machineService,
  type RunningAdsServer,
  serveAds,
} from "@tulle/xds";
import type { CaMetrics } from "./ca-metrics.ts";
import { answerCertificateRequest, type CertificateDesk } from "./certificate-requests.ts";
import type { KnownPods } from "./known-pods.ts";
import type { MeshAuthority } from "./mesh-authority.ts";
import { ownConfigurationOnly, workloadsOnly } from "./own-configuration.ts";
import { PodStreams } from "./pod-streams.ts";
import { trustBundleStreams } from "./trust-bundle-streams.ts";

export interface ProvenWorkloadsOptions {
  /** Where, within which limits, and in whose name. */
  readonly server: Pick<
    AdsServerOptions,
    "address" | "limits" | "clock" | "controlPlaneId" | "onTurnedAway" | "refusesConnection"
  >;
  readonly handlers: AdsServerHandlers;
  readonly authority: MeshAuthority;
  readonly judgeToken: TokenJudge;
  readonly pods: KnownPods;
  readonly metrics: CaMetrics;
  readonly log: Logger;
  readonly tracer?: ProcessTracer | undefined;
  readonly renewals?: CertificateDesk["renewals"];
  /** Where machines join: they know the authority by its root alone, which is shown to them. */
  readonly machines?: MachineHandlers | undefined;
}

/** Rejects if the address cannot be bound. */
export async function serveProvenWorkloads(options: ProvenWorkloadsOptions): Promise<RunningAdsServer> {
  const { authority, handlers, metrics, log, pods, machines } = options;
  const credentials = (): ServerTlsCredentials =>
    machines === undefined ? authority.credentials : withRoots(authority.credentials);
  const warnings = new SeldomWarnings(log);
  const streams = new PodStreams(pods, log);
  const server = await serveAds({
    ...options.server,
    handlers: streams.bounding(handlers),
    secretHandlers: streams.bounding(trustBundleStreams(authority)),
    admission: workloadsOnly(pods, metrics),
    refusal: ownConfigurationOnly(pods, metrics, warnings),
    unaryHandlers: {
      ...certificateService((call) => answerCertificateRequest({ ...options, warnings }, call)),
      ...(machines === undefined ? {} : machineService(machines)),
    },
    tls: {
      credentials: credentials(),
      verifyClient: (chain) => authority.verifyClient(chain),
      onRefused: ({ peer, reason, message }) => {
        metrics.refusedConnections(reason).increment();
        warnings.tell(reason, "a connection was refused", { peer, reason, detail: message });
      },
    },
  });
  authority.follow(() => server.setCredentials(credentials()));
  return server;
}

function withRoots({ certChainPem, clientRootsPem, ...key }: ServerTlsCredentials): ServerTlsCredentials {
  return { ...key, certChainPem: certChainPem + clientRootsPem, clientRootsPem };
}
