// Regenerates packages/xds/src/generated: Envoy's API as typed messages. `npm run generate:xds`; needs Go on the PATH,
// which reads Envoy's descriptors out of its published Go modules (tools/xds-descriptors); nothing else is fetched.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { clone, create, fromBinary, fromJsonString, toBinary } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  CodeGeneratorRequestSchema,
  CodeGeneratorResponseSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const descriptorsFolder = join(root, "tools/xds-descriptors");
const outputFolder = join(root, "packages/xds/src/generated");
const maxOutputBytes = 64 * 1024 * 1024;

function run(command: string, args: readonly string[], cwd: string, input?: Uint8Array): Buffer {
  const result = spawnSync(command, args, { cwd, input, maxBuffer: maxOutputBytes });
  if (result.error !== undefined) throw new Error(`${command}: ${result.error.message}`);
  if (result.status !== 0) throw new Error(`${command} ${args.join(" ")} failed:\n${result.stderr.toString()}`);
  return result.stdout;
}

/** The entries and all that they import, in an order where imports come first. */
function closureOf(entries: readonly string[], files: ReadonlyMap<string, FileDescriptorProto>): FileDescriptorProto[] {
  const ordered = new Map<string, FileDescriptorProto>();
  const visit = (path: string): void => {
    if (ordered.has(path)) return;
    const file = files.get(path);
    if (file === undefined)
      throw new Error(`${path}: not in Envoy's Go modules; see tools/xds-descriptors/entries.txt`);
    file.dependency.forEach(visit);
    ordered.set(path, file);
  };
  entries.forEach(visit);
  return [...ordered.values()];
}

/** Files that only define custom options, for people and for other generators. */
const annotationFiles =
  /^(validate\/|udpa\/annotations\/|envoy\/annotations\/|xds\/annotations\/|google\/api\/(annotations|http)\.)/;

/** Options that say something to a codec (`map_entry`, `packed`, `deprecated`), rather than nothing or custom ones. */
function isMeaningful(options: object): boolean {
  return Object.entries(options).some(
    ([key, value]) => !key.startsWith("$") && !(Array.isArray(value) && value.length === 0),
  );
}

/**
 * Leaves out custom options (validation rules, status and version marks) and the imports that define them: nothing
 * reads them, and every process would pay for parsing them at its start. Options of the file itself are for other
 * languages.
 */
function withoutCustomOptions(file: FileDescriptorProto): FileDescriptorProto {
  const strip = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(strip);
    if (typeof value !== "object" || value === null || value instanceof Uint8Array) return;
    for (const [key, member] of Object.entries(value)) {
      if (key !== "options" || typeof member !== "object" || member === null) strip(member);
      else if (isMeaningful(member)) Reflect.deleteProperty(member, "$unknown");
      else Reflect.deleteProperty(value, "options");
    }
  };
  const stripped = clone(FileDescriptorProtoSchema, file);
  strip(stripped);
  delete stripped.options;
  stripped.dependency = file.dependency.filter((path) => !annotationFiles.test(path));
  return stripped;
}

/** What is spoken of Istio's own; their files have other folders than their packages, and their module is large. */
const istioFiles = ["istio-ca.json", "istio-nds.json"].map((name) =>
  fromJsonString(FileDescriptorProtoSchema, readFileSync(join(descriptorsFolder, name), "utf8")),
);
const entries = readFileSync(join(descriptorsFolder, "entries.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));
const goPackages = [
  ...new Set(
    entries
      .filter((entry) => !istioFiles.some(({ name }) => name === entry))
      .map((entry) => `github.com/envoyproxy/go-control-plane/${dirname(entry)}`),
  ),
]
  .map((path) => path.replace("github.com/envoyproxy/go-control-plane/xds/", "github.com/cncf/xds/go/xds/"))
  .map((path) => path.replace("github.com/envoyproxy/go-control-plane/udpa/", "github.com/cncf/xds/go/udpa/"))
  .map((path) =>
    path.replace("github.com/envoyproxy/go-control-plane/opentelemetry/proto/", "go.opentelemetry.io/proto/otlp/"),
  );
writeFileSync(
  join(descriptorsFolder, "imports.go"),
  `// The packages whose descriptors main.go prints; written by tools/generate-xds.ts from entries.txt.
package main

import (
${goPackages.map((path) => `\t_ "${path}"`).join("\n")}
)
`,
);

const descriptorSet = fromBinary(FileDescriptorSetSchema, run("go", ["run", "."], descriptorsFolder));
const described = [...descriptorSet.file, ...istioFiles].map(
  (file) => [file.name, withoutCustomOptions(file)] as const,
);
const files = closureOf(entries, new Map(described));
const request = create(CodeGeneratorRequestSchema, {
  fileToGenerate: files.map((file) => file.name).filter((name) => !name.startsWith("google/protobuf/")),
  parameter: "target=ts,import_extension=ts,erasable_syntax=true",
  protoFile: files,
});
const generator = join(root, "node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es");
const response = fromBinary(
  CodeGeneratorResponseSchema,
  run(process.execPath, [generator], root, toBinary(CodeGeneratorRequestSchema, request)),
);
if (response.error !== "") throw new Error(response.error);
rmSync(outputFolder, { recursive: true, force: true });
for (const file of response.file) {
  const path = join(outputFolder, file.name);
  mkdirSync(dirname(path), { recursive: true });
  const hydrate = relative(dirname(path), join(outputFolder, "../hydrate.ts"));
  writeFileSync(path, file.content.replaceAll('"@bufbuild/protobuf/codegenv2"', JSON.stringify(hydrate)));
}
/** Which generated file defines which top-level messages, so that a codec can load a type when a document names it. */
const messageFiles = files
  .filter((file) => !file.name.startsWith("google/protobuf/"))
  .map((file) => {
    if (file.package !== dirname(file.name).replaceAll("/", "."))
      throw new Error(`${file.name}: package ${file.package}`);
    return [file.name.replace(/\.proto$/, "_pb"), file.messageType.map((message) => message.name)] as const;
  })
  .filter(([, names]) => names.length > 0)
  .sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(
  join(outputFolder, "message-files.ts"),
  `// Written by tools/generate-xds.ts: the top-level messages of each generated file; the folder is the package.
export const messageFiles: Readonly<Record<string, readonly string[]>> = ${JSON.stringify(Object.fromEntries(messageFiles), undefined, 2)};
`,
);
console.log(`${response.file.length} files written to packages/xds/src/generated`);
