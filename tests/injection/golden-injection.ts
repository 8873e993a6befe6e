// A case of the table → what is injected, and the file that holds it: the whole plain pod, and of each other case what
// is not as in that one.
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { defaultValues, injectPod, type InjectionResult, jsonPatch, type PatchOperation } from "@tulle/kubernetes";
import { parse, stringify } from "yaml";
import type { InjectionCase } from "./injection-cases.ts";

/** Not the real one: it changes. */
const version = "1.0.0";
const namespace = "shop";

export interface CasePod {
  readonly apiVersion: "v1";
  readonly kind: "Pod";
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: Readonly<Record<string, unknown>>;
}

export function podOf({ metadata = "{}", spec = "{}" }: InjectionCase): CasePod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "app", namespace, ...(parse(metadata) as object) },
    spec: { containers: [{ name: "main", image: "app:1" }], ...(parse(spec) as object) },
  };
}

function injectCase(input: InjectionCase, pod: CasePod): InjectionResult {
  const { mesh = {}, values, workload } = input;
  return injectPod({
    pod,
    namespace: { name: namespace, labels: { "tulle-injection": "enabled" } },
    mesh,
    values: { ...defaultValues(version), ...values },
    ...(workload === undefined ? {} : { workload }),
  });
}

const file = path.join(import.meta.dirname, "golden.yaml");

/** `plain`: the whole pod of the first case. `differences`: what is otherwise in each of the others, and warnings. */
export interface Golden {
  readonly plain: object;
  readonly differences: Readonly<Record<string, readonly (PatchOperation | { readonly warning: string })[]>>;
}

export async function readGolden(): Promise<Golden> {
  return parse(await readFile(file, "utf8")) as Golden;
}

export async function writeGolden(golden: Golden): Promise<void> {
  await writeFile(file, stringify(golden, { lineWidth: 0, aliasDuplicateObjects: false }));
}

export function makeGolden(cases: readonly InjectionCase[]): Golden {
  const made = new Map(cases.map((input) => [input.name, injectedCase(input)]));
  const [plain, ...others] = cases;
  const differences = others.map(({ name, like = plain!.name }) => {
    const { pod, warnings } = made.get(name)!;
    return [name, [...warnings.map((warning) => ({ warning })), ...jsonPatch(made.get(like)!.pod, pod)]];
  });
  return { plain: made.get(plain!.name)!.pod, differences: Object.fromEntries(differences) as Golden["differences"] };
}

type Injected = Extract<InjectionResult, { outcome: "injected" }>;

export function injectedCase(input: InjectionCase, pod = podOf(input)): Injected {
  const result = injectCase(input, pod);
  if (result.outcome !== "injected") throw new Error(`${input.name} is not injected: ${JSON.stringify(result)}`);
  return result;
}
