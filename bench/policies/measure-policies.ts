// What a thousand rules of AuthorizationPolicy add to a request: the same pair of sidecars with one rule and with a
// thousand, of which the last that is looked at lets the request through.
import { allow, client, keepHttp1, strict } from "../mesh/manifests.ts";
import { cpuOf, type MeasuredPair, measurePairs, pairsCpu } from "../mesh/measure-pairs.ts";
import { sidecarKinds } from "../mesh/sidecar-kinds.ts";
import { signedToken } from "../mesh/token.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { http1Request } from "../one-proxy/work.ts";
import type { PairRound } from "../mesh/sidecar-pair.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";

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
  const one = [strict, keepHttp1, token.authentication, allow("zz-own", [own])];
  const kinds = sidecarKinds(options);
  const all = [...one, ...foreign].join("\n---\n");
  const headers = [token.header];
  const work = http1Request;
  const measured = await measurePairs(
    [
      ...kinds.map((kind) => ({ name: `${kind.name}, 1 rule`, kind, work, manifests: one.join("\n---\n"), headers })),
      ...kinds.map((kind) => ({ name: `${kind.name}, ${ruleCount} rules`, kind, work, manifests: all, headers })),
    ],
    options,
  );
  const few = measured.slice(0, kinds.length);
  const many = measured.slice(kinds.length);
  return {
    markdown: table(few, many),
    data: { ruleCount, seconds: options.seconds, measured },
    cpu: [...pairsCpu("1 rule", few), ...pairsCpu(`${ruleCount} rules`, many)],
  };
}

function serverCpu({ usage }: PairRound): number {
  return usage.server.cpuMicrosecondsPerRequest;
}

/** The same contestants with one rule and with all. What is added is the median of the differences of each round. */
function table(few: readonly MeasuredPair[], many: readonly MeasuredPair[]): string {
  const rows = few.map((one, index) => {
    const all = many[index]!;
    const added = median(one.rounds.map((round, number) => serverCpu(all.rounds[number]!) - serverCpu(round)));
    const texts = [cpuOf(one, "server"), cpuOf(all, "server"), added].map((value) => value.toFixed(1));
    return [one.contestant, ...texts];
  });
  return markdownTable(
    ["server side", "CPU µs/request, 1 rule", `CPU µs/request, ${ruleCount} rules`, "added µs"],
    rows,
  );
}
