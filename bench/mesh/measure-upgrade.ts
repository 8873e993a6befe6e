// What a pair of sidecars saves since the application's HTTP/1.1 crosses between them as streams of HTTP/2: the same
// pair with `h2UpgradePolicy: DO_NOT_UPGRADE` beside it.
import { markdownTable } from "../measure/markdown-table.ts";
import { http1Request } from "../one-proxy/work.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";
import { allow, client, keepHttp1, strict } from "./manifests.ts";
import { cpuOf, cpuOfBoth, type MeasuredPair, measurePairs, pairsCpu } from "./measure-pairs.ts";
import { sidecarKinds } from "./sidecar-kinds.ts";

export async function measureUpgrade(options: ScenarioOptions): Promise<ScenarioResult> {
  const kinds = sidecarKinds(options);
  const manifests = [strict, allow("caller", [{ from: [{ source: { principals: [client.principal] } }] }])];
  const pairs = (version: string, further: readonly string[]) =>
    kinds.map((kind) => ({
      name: `${kind.name}, ${version}`,
      kind,
      work: http1Request,
      manifests: [...manifests, ...further].join("\n---\n"),
      headers: [],
    }));
  const measured = await measurePairs([...pairs("HTTP/1.1", [keepHttp1]), ...pairs("HTTP/2", [])], options);
  const plain = measured.slice(0, kinds.length);
  const upgraded = measured.slice(kinds.length);
  return {
    markdown: table(plain, upgraded),
    data: { seconds: options.seconds, measured },
    cpu: [...pairsCpu("HTTP/1.1 between the two", plain), ...pairsCpu("HTTP/2 between the two", upgraded)],
  };
}

function table(plain: readonly MeasuredPair[], upgraded: readonly MeasuredPair[]): string {
  const rows = plain.flatMap((one, index) =>
    [one, upgraded[index]!].map((pair) => [
      pair.name,
      cpuOf(pair, "client").toFixed(1),
      cpuOf(pair, "server").toFixed(1),
      cpuOfBoth(pair).toFixed(1),
      (cpuOfBoth(pair) / cpuOfBoth(one)).toFixed(2),
    ]),
  );
  return markdownTable(["between the two", "client µs/request", "server", "both", "÷ HTTP/1.1"], rows);
}
