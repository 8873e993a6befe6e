// The golden cases: folders here, each with what the user wrote (`input.yaml`), which proxies are asked about
// (`proxies.yaml`), what the control plane knows besides (`mesh.yaml`, if there is anything: the trust domain of its
// authority, the lowest version of TLS, where roll-outs stand), what the mesh looks like after the stage snapshot
// (`snapshot.yaml`), and what each proxy is sent (`<proxy>.xds.yaml`).
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import assert from "node:assert/strict";
import { parseAllDocuments, parse, stringify } from "yaml";
import { create, type DescMessage, fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { loadText, MemoryStore } from "@tulle/config";
import {
  buildEndpoints,
  buildSnapshot,
  type EndpointSnapshot,
  type MeshSnapshot,
  parseNode,
  type Proxy,
  type ProxyResources,
  scope,
  type SnapshotOptions,
  TranslationCache,
} from "@tulle/control-plane/stages";
import { encodeResource, type EncodedResource } from "@tulle/xds";
import { messageFromJson, messageToJson } from "@tulle/xds/json";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";

export const goldenFolder = import.meta.dirname;
const types = ["CDS", "EDS", "LDS", "RDS"] as const;
type GoldenType = (typeof types)[number];

export interface GoldenCase {
  readonly name: string;
  readonly proxies: readonly Proxy[];
  /** File name → expected content, made by the stages now. */
  readonly made: ReadonlyMap<string, string>;
}

export async function goldenCaseNames(): Promise<readonly string[]> {
  const entries = await readdir(goldenFolder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

/** What a case's input is to the stages behind the store. */
export interface GoldenInput {
  readonly proxies: readonly Proxy[];
  readonly snapshot: MeshSnapshot;
  readonly endpoints: EndpointSnapshot;
}

export async function readGoldenInput(name: string): Promise<GoldenInput> {
  const folder = path.join(goldenFolder, name);
  const { resources, findings } = loadText(await readFile(path.join(folder, "input.yaml")), "input.yaml");
  const errors = findings.filter((finding) => finding.severity === "error");
  assert.deepEqual(errors, [], "the input of a golden case holds only valid resources");
  const store = new MemoryStore();
  await store.applyAll(resources);
  const snapshot = buildSnapshot(store, await readMesh(path.join(folder, "mesh.yaml")));
  const endpoints = buildEndpoints(store, snapshot);
  return { snapshot, endpoints, proxies: await readProxies(path.join(folder, "proxies.yaml")) };
}

/**
 * Runs the stages on a case's input. `cache` is what production has, too, and may hold what other cases have left
 * there.
 */
export async function makeGoldenCase(name: string, cache: TranslationCache): Promise<GoldenCase> {
  const { snapshot, endpoints, proxies } = await readGoldenInput(name);
  const made = new Map<string, string>();
  made.set("snapshot.yaml", yamlText({ ...snapshot, endpoints: Object.fromEntries(endpoints.byServicePort) }));
  for (const proxy of proxies) {
    const resourcesOf = cache.resources(scope(snapshot, proxy, endpoints), endpoints);
    made.set(xdsFileName(proxy), yamlText(resourcesAsJson(resourcesOf)));
  }
  return { name, proxies, made };
}

export function xdsFileName(proxy: Proxy): string {
  return `${proxy.name}.${proxy.namespace}.xds.yaml`;
}

/** The files of a case whose content is the outcome of a stage, as they lie there. */
export async function storedFiles(name: string): Promise<ReadonlyMap<string, string>> {
  const folder = path.join(goldenFolder, name);
  const names = (await readdir(folder)).filter((file) => file === "snapshot.yaml" || file.endsWith(".xds.yaml"));
  return new Map(
    await Promise.all(
      names.map(async (file): Promise<[string, string]> => [file, await readFile(path.join(folder, file), "utf8")]),
    ),
  );
}

export async function writeGoldenFile(name: string, file: string, content: string): Promise<void> {
  await writeFile(path.join(goldenFolder, name, file), content);
}

/** A golden xDS file as resources, read by the codec that refuses what it does not know. */
export function resourcesFromGolden(text: string): Readonly<Record<GoldenType, ReadonlyMap<string, EncodedResource>>> {
  const lists = parse(text) as Partial<Record<GoldenType, readonly unknown[]>>;
  const read = (type: GoldenType): ReadonlyMap<string, EncodedResource> =>
    new Map(
      (lists[type] ?? []).map((json) => {
        const resource = resourceFromJson(resourceSchemas[type], json);
        return [resource.name, resource];
      }),
    );
  return { CDS: read("CDS"), EDS: read("EDS"), LDS: read("LDS"), RDS: read("RDS") };
}

function resourceFromJson(schema: DescMessage, json: unknown): EncodedResource {
  const result = messageFromJson(schema, json);
  assert.ok(result.ok, result.ok ? "" : JSON.stringify(result.problems));
  return encodeResource(schema, result.message);
}

function resourcesAsJson(resources: ProxyResources): Record<GoldenType, unknown[]> {
  const json = (type: GoldenType): unknown[] => {
    const schema: DescMessage = resourceSchemas[type];
    return [...resources[type].values()].map(({ any }) =>
      messageToJson(schema, fromBinary(schema, any.value), { fieldNames: "snake_case" }),
    );
  };
  return { CDS: json("CDS"), EDS: json("EDS"), LDS: json("LDS"), RDS: json("RDS") };
}

type MeshSettings = Pick<SnapshotOptions, "trustDomain" | "minimumTls" | "rollouts">;

async function readMesh(file: string): Promise<MeshSettings> {
  return existsSync(file) ? (parse(await readFile(file, "utf8")) as MeshSettings) : {};
}

async function readProxies(file: string): Promise<readonly Proxy[]> {
  const documents = parseAllDocuments(await readFile(file, "utf8")).map(
    (document) => document.toJS() as { readonly id: string; readonly metadata: JsonObject } & Pick<Proxy, "withoutCertificate">,
  );
  return documents.map(({ id, metadata, ...connection }) => {
    const parsed = parseNode(create(NodeSchema, { id, metadata }));
    assert.ok("proxy" in parsed, "problem" in parsed ? parsed.problem : "");
    return { ...parsed.proxy, ...connection };
  });
}

function yamlText(value: unknown): string {
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
}
