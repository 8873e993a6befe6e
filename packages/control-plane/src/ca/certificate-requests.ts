// The authority's desk: one certificate request comes in over gRPC, and a certificate or a reason goes out. Both are
// written down.
import { type SigningRefusal, spiffeIdText } from "@tulle/identity";
import type { TokenJudge } from "@tulle/identity/workload-token";
import type { Logger, ProcessSpan, ProcessTracer, SeldomWarnings } from "@tulle/telemetry";
import type { CertificateAnswer, CertificateCall } from "@tulle/xds";
import type { CaMetrics } from "./ca-metrics.ts";
import type { KnownPods } from "./known-pods.ts";
import type { MeshAuthority } from "./mesh-authority.ts";
import { proveCaller } from "./prove-caller.ts";

export interface CertificateDesk {
  readonly authority: Pick<MeshAuthority, "signing" | "now">;
  readonly judgeToken: TokenJudge;
  readonly pods: KnownPods;
  readonly metrics: CaMetrics;
  readonly log: Logger;
  /** Anybody can be refused as often as they like. */
  readonly warnings: Pick<SeldomWarnings, "tell">;
  readonly tracer?: Pick<ProcessTracer, "start"> | undefined;
  readonly renewals?: Renewals | undefined;
}

/** Machines are known by their certificates. */
export interface Renewals {
  /** Why who shows this certificate gets no other one. */
  readonly problem: (shown: string) => string | undefined;
  /** Told of a new one, resolves once it is kept. */
  readonly renewed: (renewed: RenewedCertificate) => Promise<void>;
}

export interface RenewedCertificate {
  readonly shown: string;
  readonly serial: string;
  readonly notAfterMs: number;
}

/** Names of a refused request that the log shows: a request may ask for thousands. */
const maxToldNames = 5;

/** What the caller is told of a request that is not signed. */
const statusOf: Readonly<
  Record<SigningRefusal["code"], "INVALID_ARGUMENT" | "PERMISSION_DENIED" | "UNAUTHENTICATED" | "UNAVAILABLE">
> = {
  "malformed-csr": "INVALID_ARGUMENT",
  "bad-csr-signature": "INVALID_ARGUMENT",
  "unsuitable-key": "INVALID_ARGUMENT",
  "ttl-not-allowed": "INVALID_ARGUMENT",
  "foreign-identity": "PERMISSION_DENIED",
  "foreign-trust-domain": "PERMISSION_DENIED",
  "asks-to-be-authority": "PERMISSION_DENIED",
  "authority-expired": "UNAVAILABLE",
};

export async function answerCertificateRequest(
  desk: CertificateDesk,
  call: CertificateCall,
): Promise<CertificateAnswer> {
  const span = desk.tracer?.start("sign certificate", { kind: "server" });
  const answer = await judge(desk, call, span);
  span?.end(answer.ok ? undefined : answer.status);
  return answer;
}

async function judge(
  desk: CertificateDesk,
  call: CertificateCall,
  span: ProcessSpan | undefined,
): Promise<CertificateAnswer> {
  const { authority, metrics, log, warnings, judgeToken, pods } = desk;
  const { signing } = authority;
  metrics.requests.increment();
  const { trustDomain } = signing;
  const caller = await proveCaller(call, { trustDomain, judgeToken, pods });
  if (!caller.ok) {
    metrics.authenticationFailures.increment();
    warnings.tell(caller.status, "a certificate was refused", { peer: call.peer, reason: caller.message });
    return { ok: false, status: caller.status, details: caller.message };
  }
  const { csrPem, ttlMs } = call;
  const { identity } = caller;
  const shown = caller.by === "certificate" ? call.peerIdentity?.serial : undefined;
  const problem = shown === undefined ? undefined : desk.renewals?.problem(shown);
  if (problem !== undefined) {
    warnings.tell("RESOURCE_EXHAUSTED", "a certificate was refused", { peer: call.peer, reason: problem });
    return { ok: false, status: "RESOURCE_EXHAUSTED", details: problem };
  }
  span?.set("tulle.identity", spiffeIdText(identity));
  const signed = signing.signWorkload({ csrPem, identity, ...(ttlMs === undefined ? {} : { ttlMs }) });
  if (!signed.ok) {
    metrics.signingFailures(signed.code).increment();
    warnings.tell(signed.code, "a certificate was refused", {
      peer: call.peer,
      caller: spiffeIdText(identity),
      requested: signed.requestedNames.slice(0, maxToldNames).join(","),
      reason: signed.message,
    });
    return { ok: false, status: statusOf[signed.code], details: signed.message };
  }
  const { serial, notAfterMs } = signed.certificate;
  if (shown !== undefined) await desk.renewals?.renewed({ shown, serial, notAfterMs });
  metrics.issued.increment();
  log.info("a certificate was issued", {
    identity: spiffeIdText(identity),
    by: caller.by,
    peer: call.peer,
    serial: signed.certificate.serial,
    until: new Date(signed.certificate.notAfterMs).toISOString(),
  });
  // Istio's clients take the last entry for the root; with several roots it holds all of them, as theirs does.
  return { ok: true, certChain: [...signed.chain.map(({ pem }) => pem), signing.trustBundlePem] };
}
