// Every field of Telemetry, and of what the mesh's configuration says of telemetry, stands in a golden case, and some
// proxy is sent something else when it is taken out. The fields are those of the schemas: a new one demands a case.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { kindDefinitions, loadText, MemoryStore, meshConfigFields, type Node } from "@tulle/config";
import {
  buildEndpoints,
  buildSnapshot,
  type Proxy,
  scope,
  type SnapshotOptions,
  TranslationCache,
} from "@tulle/control-plane/stages";
import { parse, parseAllDocuments, stringify } from "yaml";
import { goldenFolder, readGoldenInput } from "./golden-cases.ts";

type Value = Record<string, unknown>;
type Step = string | number;

/** What a case is made of; the mesh's configuration stands parsed under the key `mesh`. */
interface Case {
  readonly documents: readonly Value[];
  readonly proxies: readonly Proxy[];
  readonly options: SnapshotOptions;
}

async function readCase(name: string): Promise<Case> {
  const folder = path.join(goldenFolder, name);
  const text = await readFile(path.join(folder, "input.yaml"), "utf8");
  const documents = parseAllDocuments(text).map((document) => {
    const value = document.toJS() as Value & { data?: { mesh: string } };
    return value.kind === "ConfigMap" ? { ...value, mesh: parse(value.data!.mesh) as unknown } : value;
  });
  const options = parse(await readFile(path.join(folder, "mesh.yaml"), "utf8")) as SnapshotOptions;
  return { documents, options, proxies: (await readGoldenInput(name)).proxies };
}

/** All that the proxies are sent, as one text. What a document without the field is refused for does not count. */
async function sent({ documents, proxies, options }: Case): Promise<string> {
  const text = documents
    .map(({ mesh, ...document }) => stringify(mesh === undefined ? document : { ...document, data: { mesh: stringify(mesh) } }))
    .join("---\n");
  const store = new MemoryStore();
  await store.applyAll(loadText(text, "input.yaml").resources);
  const snapshot = buildSnapshot(store, options);
  const endpoints = buildEndpoints(store, snapshot);
  const cache = new TranslationCache("local");
  return proxies
    .flatMap((proxy) => {
      const resources = cache.resources(scope(snapshot, proxy, endpoints), endpoints);
      return (["CDS", "LDS", "RDS"] as const).flatMap((type) => [...resources[type].values()].map(({ any }) => Buffer.from(any.value).toString("latin1")));
    })
    .join("\n");
}

/** `[]` for any entry of a list, `{}` for any of a map. */
function fieldsBelow(node: Node, at: readonly string[]): readonly (readonly string[])[] {
  if (node.type === "list") return fieldsBelow(node.items, [...at, "[]"]);
  if (node.type === "map") return fieldsBelow(node.values, [...at, "{}"]);
  if (node.type !== "object") return [];
  return Object.entries(node.fields).flatMap(([name, field]) =>
    field.status === "implemented" ? [[...at, name], ...fieldsBelow(field.node, [...at, name])] : [],
  );
}

/** Where in a value the field stands. */
function placesOf(value: unknown, [step, ...rest]: readonly string[]): readonly (readonly Step[])[] {
  if (step === undefined) return value === undefined ? [] : [[]];
  if (typeof value !== "object" || value === null) return [];
  const keys = step === "[]" ? [...(value as unknown[]).keys()] : step === "{}" ? Object.keys(value) : [step];
  return keys.flatMap((key) => placesOf((value as Value)[key], rest).map((place) => [key, ...place]));
}

function without(value: unknown, [step, ...rest]: readonly Step[]): unknown {
  if (Array.isArray(value)) return value.map((each: unknown, index) => (index === step ? without(each, rest) : each));
  const { [String(step)]: inner, ...others } = value as Value;
  return rest.length === 0 ? others : { ...(value as Value), [String(step)]: without(inner, rest) };
}

/** Of no consequence to what proxies are sent. */
const elsewhere = new Map([
  ["spec.targetRef.namespace", "Istio takes no other than the resource's own"],
  ["spec.targetRefs.[].namespace", "the same"],
  ["mesh.enablePrometheusMerge", "the agent's"],
]);

const aboutTelemetry = Object.entries(meshConfigFields).filter(([name]) =>
  /^(defaultProviders|accessLog|enableTracing|enablePrometheus|disableEnvoyListenerLog|defaultConfig|extensionProviders)/.test(name),
);
const isAuthorizer = (field: readonly string[]): boolean => field.some((step) => step.startsWith("envoyExtAuthz"));
const { spec } = (kindDefinitions.Telemetry.schema.node as Extract<Node, { type: "object" }>).fields;
const fields = [
  ...fieldsBelow(spec!.node, ["spec"]),
  ...aboutTelemetry.flatMap(([name, field]) => [["mesh", name], ...fieldsBelow(field.node, ["mesh", name])]),
].filter((field) => !isAuthorizer(field) && !elsewhere.has(field.join(".")));

describe("a golden case shows what each field of telemetry does", async () => {
  const cases = await Promise.all(["telemetry", "telemetry-defaults"].map(readCase));
  const whole = await Promise.all(cases.map(sent));

  test("there are such fields", () => assert.ok(fields.length > 100, `${fields.length} fields`));

  for (const field of fields) {
    test(field.join("."), async () => {
      let places = 0;
      for (const [number, each] of cases.entries()) {
        for (const [at, document] of each.documents.entries()) {
          if (document.kind !== (field[0] === "mesh" ? "ConfigMap" : "Telemetry")) continue;
          for (const place of placesOf(document, field)) {
            places += 1;
            const documents = each.documents.with(at, without(document, place) as Value);
            if ((await sent({ ...each, documents })) !== whole[number]) return;
          }
        }
      }
      assert.fail(places === 0 ? "no golden case has it" : "nobody is sent anything else without it");
    });
  }
});
