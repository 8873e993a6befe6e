// Who asks for a certificate: proved by a workload token, by the certificate that is to be renewed, or not at all.
import { type SpiffeId, spiffeIdText } from "@tulle/identity";
import type { TokenJudge } from "@tulle/identity/workload-token";
import type { PeerIdentity } from "@tulle/xds";
import type { KnownPods } from "./known-pods.ts";

export type ProvenCaller =
  | { readonly ok: true; readonly identity: SpiffeId; readonly by: "token" | "certificate" }
  | {
      readonly ok: false;
      /**
       * - `UNAUTHENTICATED`: the proof is worth nothing. - `PERMISSION_DENIED`: it is good, and no pod is known that it
       *   could be of. - `UNAVAILABLE`: who could say cannot be asked now.
       */
      readonly status: "UNAUTHENTICATED" | "PERMISSION_DENIED" | "UNAVAILABLE";
      /** Holds nothing of the token: it goes to the caller and into the log. */
      readonly message: string;
    };

export interface CallerProof {
  readonly bearerToken: string | undefined;
  /** Verified in the handshake. */
  readonly peerIdentity: PeerIdentity | undefined;
}

export interface CallerRules {
  readonly trustDomain: string;
  readonly judgeToken: TokenJudge;
  readonly pods: KnownPods;
}

export async function proveCaller(
  { bearerToken, peerIdentity }: CallerProof,
  rules: CallerRules,
): Promise<ProvenCaller> {
  if (bearerToken === undefined) {
    return peerIdentity === undefined
      ? refused("UNAUTHENTICATED", "neither a workload token nor a client certificate was shown")
      : byCertificate(peerIdentity, rules);
  }
  const proven = await byToken(bearerToken, rules);
  if (!proven.ok || peerIdentity === undefined) return proven;
  // Somebody's token over somebody else's connection: one of them is stolen.
  const [token, certificate] = [spiffeIdText(proven.identity), spiffeIdText(peerIdentity)];
  return token === certificate
    ? proven
    : refused("UNAUTHENTICATED", `the token is of ${token}, the client certificate of ${certificate}`);
}

async function byToken(token: string, { trustDomain, judgeToken, pods }: CallerRules): Promise<ProvenCaller> {
  const verified = await judgeToken(token);
  if (!verified.ok) return refused(verified.isUnavailable ? "UNAVAILABLE" : "UNAUTHENTICATED", verified.message);
  const { namespace, serviceAccount, pod } = verified.identity;
  const known = pods.get(namespace, pod.name);
  // The token outlives its pod by up to an hour; Kubernetes' TokenReview refuses it from then on, too.
  if (known === undefined || (known.uid !== undefined && known.uid !== pod.uid)) {
    return refused("PERMISSION_DENIED", `the token is of the pod ${pod.name}.${namespace}, which is not known here`);
  }
  if (known.serviceAccount !== serviceAccount) {
    return refused(
      "PERMISSION_DENIED",
      `the token is of the service account ${serviceAccount}, the pod ${pod.name}.${namespace} runs under ${known.serviceAccount}`,
    );
  }
  return { ok: true, identity: { trustDomain, namespace, serviceAccount }, by: "token" };
}

/** A certificate names no pod: it may be renewed as long as there is one that it could be of. */
function byCertificate(identity: PeerIdentity, { pods }: CallerRules): ProvenCaller {
  const { namespace, serviceAccount } = identity;
  const machine = pods.machineOf(identity.serial);
  if (machine === "gone") return refused("PERMISSION_DENIED", "the machine has left, or was removed");
  return machine !== undefined || pods.count(namespace, serviceAccount) > 0
    ? { ok: true, identity, by: "certificate" }
    : refused("PERMISSION_DENIED", `no pod of the namespace ${namespace} runs under ${serviceAccount}`);
}

function refused(status: Extract<ProvenCaller, { ok: false }>["status"], message: string): ProvenCaller {
  return { ok: false, status, message };
}
