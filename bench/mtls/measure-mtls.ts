// A request from one workload to another: through the client's sidecar, by mutual TLS 1.3 to the server's, which knows
// the caller by its certificate. Access log on, both sides measured.
import { allow, client, keepHttp1, strict } from "../mesh/manifests.ts";
import { measurePairs, pairsCpu, pairTable } from "../mesh/measure-pairs.ts";
import { sidecarKinds } from "../mesh/sidecar-kinds.ts";
import { signedToken } from "../mesh/token.ts";
import { grpcCall, http1Request, http2Request, type Work } from "../one-proxy/work.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";

/** The server takes the token that each request brings, and asks one policy. */
export async function measureMtls(options: ScenarioOptions): Promise<ScenarioResult> {
  const token = await signedToken();
  // The token is asked for too: who brings none or a wrong one gets 403 or 401, and the load would not go through.
  const rule = { from: [{ source: { principals: [client.principal], requestPrincipals: ["*"] } }] };
  const manifests = [strict, keepHttp1, token.authentication, allow("caller", [rule])];
  return measurePair(http1Request, manifests, [token.header], options);
}

export function measureMtlsHttp2(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureCaller(http2Request, options);
}

export function measureMtlsGrpc(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureCaller(grpcCall, options);
}

/** One policy, and no token: Envoy verifies its signature for each request, which would hide everything else. */
function measureCaller(work: Work, options: ScenarioOptions): Promise<ScenarioResult> {
  const rule = { from: [{ source: { principals: [client.principal] } }] };
  return measurePair(work, [strict, allow("caller", [rule])], [], options);
}

async function measurePair(
  work: Work,
  manifests: readonly string[],
  headers: readonly string[],
  options: ScenarioOptions,
): Promise<ScenarioResult> {
  const measured = await measurePairs(
    sidecarKinds(options).map((kind) => ({
      name: kind.name,
      kind,
      work,
      manifests: manifests.join("\n---\n"),
      headers,
    })),
    options,
  );
  return {
    markdown: pairTable(measured),
    data: { work, seconds: options.seconds, measured },
    cpu: pairsCpu(work.name, measured),
  };
}
