// Whose a workload's token is, as the cluster says that has handed it out (authentication.k8s.io/v1, TokenReview). A
// kubelet puts such a token into each pod, for the authority's audience alone.
import { isSpiffeId } from "@tulle/identity";
import { authorityAudience, type TokenJudge, type TokenVerdict } from "@tulle/identity/workload-token";
import type { KubernetesClient } from "../client/kubernetes-client.ts";

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly error?: string;
    readonly audiences?: readonly string[];
    readonly user?: { readonly username?: string; readonly extra?: Readonly<Record<string, readonly string[]>> };
  };
}

/** Longer than any that a cluster hands out. */
const maxTokenCharacters = 8192;
/** Anybody may show tokens, and each costs the API server a look: so many at once, the others come again. */
const mostAtOnce = 32;

const podName = "authentication.kubernetes.io/pod-name";
const podUid = "authentication.kubernetes.io/pod-uid";

/** `nowMs` is the time of day. */
export function tokenReviewer(client: Pick<KubernetesClient, "request">, nowMs: () => number): TokenJudge {
  let asked = 0;
  return async (token) => {
    const hopeless = hopelessness(token, nowMs());
    if (hopeless !== undefined) return refused(hopeless);
    if (asked >= mostAtOnce) return unavailable("too many are being looked at");
    asked += 1;
    try {
      const review = await client.request<TokenReview>({
        method: "POST",
        path: "/apis/authentication.k8s.io/v1/tokenreviews",
        body: {
          apiVersion: "authentication.k8s.io/v1",
          kind: "TokenReview",
          spec: { token, audiences: [authorityAudience] },
        },
      });
      return verdictOf(review);
    } catch (error) {
      return unavailable((error as Error).message);
    } finally {
      asked -= 1;
    }
  };
}

/** What the API server would refuse is not asked: who has no token at all should not be able to keep it busy. */
function hopelessness(token: string, nowMs: number): string | undefined {
  if (token.length > maxTokenCharacters) return `it is longer than ${maxTokenCharacters} characters`;
  const [, payload, signature, more] = token.split(".");
  if (payload === undefined || signature === undefined || more !== undefined) return "it is no signed JWT";
  let claims: { readonly aud?: unknown; readonly exp?: unknown };
  try {
    claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as typeof claims;
  } catch {
    return "it is no signed JWT";
  }
  const audiences: readonly unknown[] = Array.isArray(claims?.aud) ? claims.aud : [claims?.aud];
  if (!audiences.includes(authorityAudience)) return `it is not for the audience ${authorityAudience}`;
  if (typeof claims.exp !== "number" || claims.exp * 1000 < nowMs) return "it has expired";
  return undefined;
}

function verdictOf({ status = {} }: TokenReview): TokenVerdict {
  if (status.authenticated !== true) return refused("the cluster does not know it");
  // A cluster that knows no audiences says nothing of them, and vouches for its own alone.
  if (status.audiences?.includes(authorityAudience) !== true) {
    return refused(`the cluster does not vouch for the audience ${authorityAudience}`);
  }
  const { username = "", extra = {} } = status.user ?? {};
  const [system, kind, namespace = "", serviceAccount = "", more] = username.split(":");
  if (system !== "system" || kind !== "serviceaccount" || more !== undefined)
    return refused("it is of no service account");
  const [name] = extra[podName] ?? [];
  const [uid] = extra[podUid] ?? [];
  const isWhole = isSpiffeId({ trustDomain: "any", namespace, serviceAccount });
  if (name === undefined || uid === undefined || !isWhole) return refused("it names no service account and pod");
  return { ok: true, identity: { namespace, serviceAccount, pod: { name, uid } } };
}

const refused = (why: string): TokenVerdict => ({ ok: false, message: `the workload token is refused: ${why}` });
const unavailable = (why: string): TokenVerdict => ({
  ok: false,
  isUnavailable: true,
  message: `the workload token cannot be looked at now: ${why}`,
});
