// What a control plane needs to hand out identities, opened together: its authority, the key that workload tokens are
// signed with, and what is counted of both.
import { existsSync } from "node:fs";
import path from "node:path";
import type { Clock } from "@tulle/timing";
import { AuthorityFolder, type AuthorityStorage } from "@tulle/identity";
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
import type { Leadership } from "../state/leadership.ts";
import { type ControlPlaneIdentity, MeshAuthority } from "./mesh-authority.ts";

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
  /** With Istio's file names. `cacerts/` of the state directory, where there is one, unless told. */
  readonly cacertsDirectory?: string;
  /** Where the authority's state lies, in the place of the state directory and of `cacertsDirectory`. */
  readonly authorityStorage?: AuthorityStorage;
  /** See `MeshAuthorityOptions`, as the next three. */
  readonly identity?: ControlPlaneIdentity;
  readonly leadership?: Leadership;
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
  const { authorityStorage = authorityFolder(stateDirectory, cacertsDirectory), identity, leadership } = options;
  const metrics = caMetrics(registry);
  const authority = await MeshAuthority.open({
    storage: authorityStorage,
    trustDomain,
    clock,
    log,
    metrics,
    ...(identity === undefined ? {} : { identity }),
    ...(leadership === undefined ? {} : { leadership }),
    ...(workloadTtlMs === undefined ? {} : { workloadTtlMs }),
    ...(maxWorkloadTtlMs === undefined ? {} : { maxWorkloadTtlMs }),
  });
  const judgeToken = options.judgeToken ?? judgeBy(await openKey(stateDirectory), authority);
  return { authority, metrics, judgeToken, log, tracer };
}

/** Of a state directory. */
export function authorityFolder(stateDirectory: string, cacertsDirectory?: string): AuthorityFolder {
  const usual = path.join(stateDirectory, "cacerts");
  const given = cacertsDirectory ?? (existsSync(usual) ? usual : undefined);
  return new AuthorityFolder(path.join(stateDirectory, "ca"), given);
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
