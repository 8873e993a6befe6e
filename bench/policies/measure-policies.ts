// What a thousand rules of AuthorizationPolicy add to a request: the same pair of sidecars with one rule and with a thousand,
// of which the last that is looked at lets the request through.
import type { ProxyKind } from "../../tests/tools/meshed-proxies.ts";
import { allow, client, strict } from "../mesh/manifests.ts";
import { cpuOf, type MeasuredPair, measurePairs } from "../mesh/measure-pairs.ts";
import { signedToken } from "../mesh/token.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import type { PairRound } from "../mesh/sidecar-pair.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";

const kinds: readonly { readonly name: string; readonly proxy: ProxyKind }[] = [
  { name: "Envoy", proxy: "envoy" },
  { name: "Tulle", proxy: "tulle" },
];
const ruleCount = 1000;
const rulesPerPolicy = 20;

/** Rules of the kinds that people write; none of them is about the request of the bench. */
function foreignRule(index: number): object {
  const namespace = `team-${index % 40}`;
  switch (index % 5) {
    case 0:
      return {
        from: [{ source: { principals: [`cluster.local/ns/${namespace}/sa/service-${index}`] } }],
        to: [{ operation: { methods: ["GET"], paths: [`/api/v1/things-${index}/*`] } }],
      };
    case 1:
      return { to: [{ operation: { methods: ["GET", "HEAD"], paths: [`/public/page-${index}`] } }] };
    case 2:
      return {
        from: [{ source: { namespaces: [namespace] } }],
        to: [{ operation: { paths: [`/internal/${index}`] } }],
      };
    case 3:
      return {
        to: [{ operation: { paths: [`*/reports-${index}`] } }],
        when: [{ key: "request.auth.claims[client_id]", values: [`client-${index}`] }],
      };
    default:
      return {
        from: [{ source: { principals: [client.principal] } }],
        to: [{ operation: { methods: ["POST"], paths: [`/api/v1/orders-${index}/*`] } }],
        when: [{ key: "request.headers[x-team]", values: [namespace] }],
      };
  }
}

export async function measurePolicies(options: ScenarioOptions): Promise<ScenarioResult> {
  const token = await signedToken();
  const own = {
    from: [{ source: { principals: [client.principal] } }],
    to: [{ operation: { methods: ["GET"], paths: ["/api/catalog*"] } }],
  };
  const foreign: string[] = [];
  for (let first = 0; first < ruleCount - 1; first += rulesPerPolicy) {
    const count = Math.min(rulesPerPolicy, ruleCount - 1 - first);
    foreign.push(
      allow(
        `policy-${first}`,
        Array.from({ length: count }, (_, index) => foreignRule(first + index)),
      ),
    );
  }
  const one = [strict, token.authentication, allow("zz-own", [own])];
  const chosen = kinds.filter(({ name }) => options.proxies?.includes(name) ?? true);
  const headers = [token.header];
  const measured = await measurePairs(
    chosen.flatMap((kind) => [
      { ...kind, name: `${kind.name}, 1 rule`, manifests: one.join("\n---\n"), headers },
      { ...kind, name: `${kind.name}, ${ruleCount} rules`, manifests: [...one, ...foreign].join("\n---\n"), headers },
    ]),
    options,
  );
  return { markdown: table(measured), data: { ruleCount, seconds: options.seconds, measured } };
}

function serverCpu({ usage }: PairRound): number {
  return usage.server.cpuMicrosecondsPerRequest;
}

/** Pairs come in twos: with one rule and with all. What is added is the median of the differences of each round. */
function table(measured: readonly MeasuredPair[]): string {
  const rows: string[][] = [];
  for (let index = 0; index < measured.length; index += 2) {
    const [few, many] = [measured[index]!, measured[index + 1]!];
    const added = median(few.rounds.map((round, number) => serverCpu(many.rounds[number]!) - serverCpu(round)));
    const texts = [cpuOf(few, "server"), cpuOf(many, "server"), added].map((value) => value.toFixed(1));
    rows.push([few.name.split(",")[0]!, ...texts]);
  }
  return markdownTable(
    ["server side", "CPU µs/request, 1 rule", `CPU µs/request, ${ruleCount} rules`, "added µs"],
    rows,
  );
}
