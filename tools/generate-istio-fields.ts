// Regenerates packages/config/src/kinds/istio-api-fields.txt: the fields of Istio's API, one a line, which the schemas
// have to know. `npm run generate:istio-fields`; needs Go on the PATH, which fetches the published module with Istio's
// CRDs.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseAllDocuments } from "yaml";

const apiModule = "istio.io/api@v1.31.1";
const output = path.join(import.meta.dirname, "../packages/config/src/kinds/istio-api-fields.txt");

interface CrdSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly items?: CrdSchema;
  readonly properties?: Readonly<Record<string, CrdSchema>>;
  readonly additionalProperties?: CrdSchema;
}

interface Crd {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: CrdSchema } }[];
  };
}

function readCrds(): readonly Crd[] {
  const folder = mkdtempSync(path.join(tmpdir(), "istio-api-"));
  try {
    writeFileSync(path.join(folder, "go.mod"), "module fields\n");
    const { status, stdout, stderr } = spawnSync("go", ["mod", "download", "-json", apiModule], { cwd: folder });
    if (status !== 0) throw new Error(`go mod download ${apiModule} failed:\n${String(stdout)}${String(stderr)}`);
    const { Dir: module } = JSON.parse(String(stdout)) as { readonly Dir: string };
    const text = readFileSync(path.join(module, "kubernetes/customresourcedefinitions.gen.yaml"), "utf8");
    return parseAllDocuments(text).flatMap((document) => (document.toJS() as Crd | null) ?? []);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** `path type` for each field below; `[]` stands for the entries of a list, `{}` for the values of a map. */
function fieldsBelow(schema: CrdSchema, at: string): readonly string[] {
  if (schema.items !== undefined) return fieldsBelow(schema.items, `${at}[]`);
  if (schema.additionalProperties !== undefined) return fieldsBelow(schema.additionalProperties, `${at}{}`);
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const type = child.enum === undefined ? (child.type ?? "any") : `enum:${child.enum.join("|")}`;
    return [`${at}.${name} ${type}`, ...fieldsBelow(child, `${at}.${name}`)];
  });
}

const lines = readCrds().flatMap(({ spec: { names, versions } }) => {
  const all = versions.flatMap(({ schema }) => fieldsBelow(schema.openAPIV3Schema.properties!["spec"]!, "spec"));
  return [...new Set(all)].sort().map((line) => `${names.kind} ${line}`);
});
writeFileSync(
  output,
  `# Fields of ${apiModule}, made by tools/generate-istio-fields.ts: kind, path, type.\n${lines.join("\n")}\n`,
);
console.log(`${lines.length} fields of ${apiModule}`);
