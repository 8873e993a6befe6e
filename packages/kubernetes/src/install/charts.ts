// The charts as files: each part's templates, values with what they mean, and their schema; and one chart that holds
// them all. `tools/make-charts.ts` writes them.
import { stringify } from "yaml";
import { type Component, components } from "./components.ts";
import { printManifests } from "./print-template.ts";
import { type Manifest, When } from "./template.ts";
import { type Group, installedVersion, isLeaf, type Leaf, valueTable } from "./values.ts";

/** The chart of all charts. */
export const wholeChart = "tulle";

const head =
  "# Written by tools/make-charts.ts from packages/kubernetes/src/install: edit that, and npm run generate:charts.\n";
/** Sidecars that are init containers end with their pod from here on. */
const kubeVersion = ">=1.29.0-0";

export interface ChartFiles {
  /** Texts by path from the charts' folder. */
  readonly texts: ReadonlyMap<string, string>;
  /** Links by path, and where they lead. */
  readonly links: ReadonlyMap<string, string>;
}

export function chartFiles(): ChartFiles {
  const texts = new Map<string, string>();
  const links = new Map<string, string>();
  for (const component of components) {
    const { name } = component;
    texts.set(`${name}/Chart.yaml`, chartText(name, component.description));
    for (const [file, manifests] of templatesOf(component)) {
      texts.set(
        `${name}/templates/${file}`,
        `{{- /* Written by tools/make-charts.ts */ -}}\n${printManifests(manifests, name)}`,
      );
    }
    const { enabled, ...own } = valueTable[name];
    const values = { global: valueTable.global, ...own };
    texts.set(`${name}/values.yaml`, `${head}${valuesText(values, "")}`);
    const schema = schemaOf(values) as { readonly properties: object };
    texts.set(
      `${name}/values.schema.json`,
      jsonText({ $schema, ...schema, properties: { ...schema.properties, enabled: leafSchema(enabled) } }),
    );
    links.set(`${wholeChart}/charts/${name}`, `../../${name}`);
  }
  const dependencies = components.map(({ name }) => ({
    name,
    version: installedVersion,
    repository: `file://../${name}`,
    condition: `${name}.enabled`,
  }));
  texts.set(`${wholeChart}/Chart.yaml`, chartText(wholeChart, "All of Tulle's charts", { dependencies }));
  const switches = Object.fromEntries(components.map(({ name }) => [name, { enabled: valueTable[name].enabled }]));
  texts.set(
    `${wholeChart}/values.yaml`,
    `${head}# Each chart's own values stand under its name.\n${valuesText(switches, "")}`,
  );
  const parts = components.map(({ name }) => [name, { type: "object" }]);
  texts.set(
    `${wholeChart}/values.schema.json`,
    jsonText({
      $schema,
      type: "object",
      properties: { global: { type: "object" }, ...(Object.fromEntries(parts) as object) },
      additionalProperties: false,
    }),
  );
  return { texts, links };
}

/** A file for each kind of object, and one for each kind of the mesh. */
function templatesOf({ manifests }: Component): ReadonlyMap<string, readonly Manifest[]> {
  const files = new Map<string, Manifest[]>();
  for (const manifest of manifests()) {
    const { kind, metadata } = innermost(manifest);
    const isDefinition = kind === "CustomResourceDefinition";
    const file = isDefinition ? `crd-${(metadata as { readonly name: string }).name}` : kebabCase(kind as string);
    files.set(`${file}.yaml`, [...(files.get(`${file}.yaml`) ?? []), manifest]);
  }
  return files;
}

function innermost(manifest: Manifest): Exclude<Manifest, When> {
  return manifest instanceof When ? innermost(manifest.template as Manifest) : manifest;
}

const kebabCase = (name: string): string => name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase();

function chartText(name: string, description: string, more: object = {}): string {
  const chart = {
    apiVersion: "v2",
    name,
    description,
    type: "application",
    version: installedVersion,
    appVersion: installedVersion,
    kubeVersion,
    ...more,
  };
  return `${head}${stringify(chart)}`;
}

function valuesText(group: Group, indent: string): string {
  return Object.entries(group)
    .map(([name, entry]) => {
      if (!isLeaf(entry)) return `${indent}${name}:\n${valuesText(entry, `${indent}  `)}`;
      const { choices } = entry;
      const among = choices === undefined ? "" : ` One of ${choices.join(", ")}.`;
      const lines = stringify({ [name]: entry.default })
        .trimEnd()
        .split("\n");
      return `${indent}# ${entry.description}${among}\n${lines.map((line) => `${indent}${line}\n`).join("")}`;
    })
    .join("");
}

const $schema = "http://json-schema.org/draft-07/schema#";

/** Others may have values of theirs under `global`. */
function schemaOf(group: Group, isOpen = false): object {
  const properties = Object.entries(group).map(([name, entry]) => [
    name,
    isLeaf(entry) ? leafSchema(entry) : schemaOf(entry, isOpen || name === "global"),
  ]);
  return {
    type: "object",
    properties: Object.fromEntries(properties) as object,
    required: Object.keys(group),
    additionalProperties: isOpen,
  };
}

const jsonTypes: Readonly<Record<Leaf["type"], object>> = {
  text: { type: "string" },
  whole: { type: "integer", minimum: 0 },
  switch: { type: "boolean" },
  mapping: { type: "object" },
  list: { type: "array" },
};

function leafSchema({ type, description, choices }: Leaf): object {
  return { ...jsonTypes[type], description, ...(choices === undefined ? {} : { enum: choices }) };
}

const jsonText = (of: object): string => `${JSON.stringify(of, null, 2)}\n`;
