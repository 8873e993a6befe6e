// A request from one workload to another: through the client's sidecar, by mutual TLS 1.3 to the server's, which knows the caller
// by its certificate, takes the token that it brings and asks one policy. Access log on, both sides measured.
import type { ProxyKind } from "../../tests/tools/meshed-proxies.ts";
import { allow, client, strict } from "../mesh/manifests.ts";
import { measurePairs, pairTable } from "../mesh/measure-pairs.ts";
import { signedToken } from "../mesh/token.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";

const kinds: readonly { readonly name: string; readonly proxy: ProxyKind }[] = [
  { name: "Envoy", proxy: "envoy" },
  { name: "Tulle", proxy: "tulle" },
];

export async function measureMtls(options: ScenarioOptions): Promise<ScenarioResult> {
  const token = await signedToken();
  // The token is asked for too: who brings none or a wrong one gets 403 or 401, and the load would not go through.
  const rule = { from: [{ source: { principals: [client.principal], requestPrincipals: ["*"] } }] };
  const manifests = [strict, token.authentication, allow("caller", [rule])].join("\n---\n");
  const measured = await measurePairs(
    kinds
      .filter(({ name }) => options.proxies?.includes(name) ?? true)
      .map((kind) => ({ ...kind, manifests, headers: [token.header] })),
    options,
  );
  return { markdown: pairTable(measured), data: { seconds: options.seconds, measured } };
}
