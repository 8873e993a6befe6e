// A request from one workload to another: through the client's sidecar, by mutual TLS 1.3 to the server's, which knows
// the caller by its certificate, takes the token that it brings and asks one policy. Access log on, both sides
// measured.
import { allow, client, strict } from "../mesh/manifests.ts";
import { measurePairs, pairsCpu, pairTable } from "../mesh/measure-pairs.ts";
import { sidecarKinds } from "../mesh/sidecar-kinds.ts";
import { signedToken } from "../mesh/token.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";

export async function measureMtls(options: ScenarioOptions): Promise<ScenarioResult> {
  const token = await signedToken();
  // The token is asked for too: who brings none or a wrong one gets 403 or 401, and the load would not go through.
  const rule = { from: [{ source: { principals: [client.principal], requestPrincipals: ["*"] } }] };
  const manifests = [strict, token.authentication, allow("caller", [rule])].join("\n---\n");
  const measured = await measurePairs(
    sidecarKinds(options).map((kind) => ({ name: kind.name, kind, manifests, headers: [token.header] })),
    options,
  );
  return {
    markdown: pairTable(measured),
    data: { seconds: options.seconds, measured },
    cpu: pairsCpu("a request", measured),
  };
}
