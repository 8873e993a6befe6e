// What a control plane needs to hand out identities, opened together: its authority, the key that workload tokens are
// signed with, and what is counted of both.
import path from "node:path";
import type { Clock } from "@tulle/timing";
import {
  authorityAudience,
  localTokenIssuer,
  openWorkloadTokenKey,
  type TokenJudge,
  verifyWorkloadToken,
  type WorkloadTokenKey,
  workloadTokenKeyFile,
} from "@tulle/identity/workload-token";
import type { Logger, MetricRegistry, ProcessTracer } from "@tulle/telemetry";
import { type CaMetrics, caMetrics } from "./ca-metrics.ts";
import { MeshAuthority } from "./mesh-authority.ts";

/** What there is of identity where the port with TLS is served. */
export interface Security {
  readonly authority: MeshAuthority;
  readonly metrics: CaMetrics;
  readonly judgeToken: TokenJudge;
  readonly log: Logger;
  readonly tracer?: ProcessTracer | undefined;
}

export interface SecurityOptions {
  readonly stateDirectory: string;
  /** `cluster.local` unless told. */
  readonly trustDomain?: string;
  /** See `MeshAuthorityOptions`, as the next two. */
  readonly cacertsDirectory?: string;
  readonly workloadTtlMs?: number;
  readonly maxWorkloadTtlMs?: number;
  /** Where the platform hands out tokens and says whose they are; without it they are signed by a key of the state. */
  readonly judgeToken?: TokenJudge;
}

/** The platform and the authority may run on two machines, whose clocks differ a little. */
const clockSkewMs = 10_000;

/** Throws when the state of the authority or the key cannot be read. */
export async function openSecurity(
  options: SecurityOptions,
  registry: MetricRegistry,
  clock: Clock,
  log: Logger,
  tracer?: ProcessTracer,
): Promise<Security> {
  const { stateDirectory, trustDomain = "cluster.local", cacertsDirectory, workloadTtlMs, maxWorkloadTtlMs } = options;
  const metrics = caMetrics(registry);
  const authority = await MeshAuthority.open({
    stateDirectory,
    trustDomain,
    clock,
    log,
    metrics,
    ...(cacertsDirectory === undefined ? {} : { cacertsDirectory }),
    ...(workloadTtlMs === undefined ? {} : { workloadTtlMs }),
    ...(maxWorkloadTtlMs === undefined ? {} : { maxWorkloadTtlMs }),
  });
  const judgeToken = options.judgeToken ?? judgeBy(await openKey(stateDirectory), authority);
  return { authority, metrics, judgeToken, log, tracer };
}

async function openKey(stateDirectory: string): Promise<WorkloadTokenKey> {
  const opened = await openWorkloadTokenKey(path.join(stateDirectory, workloadTokenKeyFile));
  if (!opened.ok) throw new Error(opened.message);
  return opened.key;
}

function judgeBy(key: WorkloadTokenKey, { now }: Pick<MeshAuthority, "now">): TokenJudge {
  const believed = { keys: [key], issuer: localTokenIssuer, audience: authorityAudience, clockSkewMs };
  return (token) => verifyWorkloadToken(token, { ...believed, nowMs: now() });
}
