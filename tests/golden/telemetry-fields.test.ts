// Every field of Telemetry, and of what the mesh's configuration says of telemetry, stands in a golden case, and some
// proxy is sent something else when it is taken out. Which case that is, the table of the parity tests says, too.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { loadText, MemoryStore } from "@tulle/config";
import {
  buildEndpoints,
  buildSnapshot,
  type Proxy,
  scope,
  type SnapshotOptions,
  TranslationCache,
} from "@tulle/control-plane/stages";
import { parse, parseAllDocuments, stringify } from "yaml";
import { fieldsWithoutCase, telemetryFields } from "../parity/telemetry/telemetry-fields.ts";
import { placesOf, withoutPlace } from "../tools/field-paths.ts";
import { goldenFolder, readGoldenInput } from "./golden-cases.ts";

type Value = Record<string, unknown>;

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

const goldenOf = Object.entries({ ...telemetryFields, ...fieldsWithoutCase }).flatMap(([field, [golden]]) =>
  golden === undefined ? [] : [[field, golden] as const],
);

describe("a golden case shows what each field of telemetry does", async () => {
  const cases = new Map<string, Case & { readonly whole: string }>();
  for (const name of new Set(goldenOf.map(([, golden]) => golden))) {
    const each = await readCase(name);
    cases.set(name, { ...each, whole: await sent(each) });
  }

  for (const [field, golden] of goldenOf) {
    test(`${field} in ${golden}`, async () => {
      const { whole, ...each } = cases.get(golden)!;
      const [top] = field.split(".");
      let places = 0;
      for (const [at, document] of each.documents.entries()) {
        if (document.kind !== (top === "mesh" ? "ConfigMap" : "Telemetry")) continue;
        for (const place of placesOf(document, field.split("."))) {
          places += 1;
          const documents = each.documents.with(at, withoutPlace(document, place) as Value);
          if ((await sent({ ...each, documents })) !== whole) return;
        }
      }
      assert.fail(places === 0 ? "the case has no such field" : "nobody is sent anything else without it");
    });
  }
});
