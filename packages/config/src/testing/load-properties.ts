// Properties of loading: what is written is what is read, whatever the spelling; and no text at all makes it throw.
// Tried a few times in npm test, and many in the long suite.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { stringify } from "yaml";
import { loadText } from "../load/load.ts";
import { parseResource } from "../load/parse-resource.ts";
import { placeOf } from "../findings/places.ts";
import type { MeshResource } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";

const seed = 20_250_301;

const label = fc.stringMatching(/^[a-z]([-a-z0-9]{0,10}[a-z0-9])?$/);
const labels = fc.dictionary(
  label,
  fc.oneof(label, fc.constantFrom("", "true", "1", "0x1", "null", "no", "1e3", "2020-01-01")),
);
const metadata = fc.record({ name: label, namespace: label, labels, annotations: fc.dictionary(label, fc.string()) });
const port = fc.integer({ min: 1, max: 65_535 });
const duration = fc.constantFrom("2s", "250ms", "1m30s", "1.5h");
const text = fc.string({ minLength: 1, maxLength: 20 });
const stringMatch = fc.oneof(
  fc.record({ exact: fc.string() }),
  fc.record({ prefix: text }),
  fc.record({ regex: fc.constantFrom("a+", "^/items/\\d+$") }),
);

const destination = fc.record(
  { host: label, subset: label, port: fc.record({ number: port }) },
  { requiredKeys: ["host"] },
);
const httpRoute = fc.record(
  {
    match: fc.array(
      fc.record(
        {
          uri: stringMatch,
          method: stringMatch,
          headers: fc.dictionary(fc.constantFrom("x-a", "cookie", "__proto__", "constructor"), stringMatch),
        },
        { requiredKeys: [] },
      ),
    ),
    route: fc.array(fc.record({ destination, weight: fc.integer({ min: 1, max: 100 }) }), {
      minLength: 1,
      maxLength: 3,
    }),
    timeout: duration,
    retries: fc.record({ attempts: fc.integer({ min: 1, max: 5 }), perTryTimeout: duration }),
  },
  { requiredKeys: ["route"] },
);

const resource = fc.oneof(
  fc.record({
    apiVersion: fc.constantFrom("networking.tulle.io/v1", "networking.istio.io/v1alpha3"),
    kind: fc.constant("VirtualService"),
    metadata,
    spec: fc.record({
      hosts: fc.uniqueArray(label, { minLength: 1 }),
      http: fc.array(httpRoute, { minLength: 1, maxLength: 4 }),
    }),
  }),
  fc.record({
    apiVersion: fc.constant("networking.tulle.io/v1"),
    kind: fc.constant("DestinationRule"),
    metadata,
    spec: fc.record({
      host: label,
      subsets: fc.uniqueArray(fc.record({ name: label, labels }), { selector: ({ name }) => name }),
    }),
  }),
  fc.record({
    apiVersion: fc.constant("v1"),
    kind: fc.constant("Service"),
    metadata,
    spec: fc.record({
      type: fc.constantFrom("ClusterIP", "NodePort"),
      selector: labels,
      ports: fc.uniqueArray(
        fc.record({ name: label, port, protocol: fc.constant("TCP"), targetPort: fc.oneof(port, fc.constant("http")) }),
        { selector: ({ name }) => name, maxLength: 1 },
      ),
    }),
  }),
);

/** JSON keeps what matters: fast-check's records have no prototype. */
const plain = (value: unknown): MeshResource => JSON.parse(JSON.stringify(value)) as MeshResource;

const spellings: readonly { readonly name: string; readonly write: (resource: MeshResource) => string }[] = [
  { name: "block YAML", write: (value) => stringify(value) },
  { name: "flow YAML", write: (value) => stringify(value, { collectionStyle: "flow" }) },
  { name: "quoted YAML", write: (value) => stringify(value, { defaultStringType: "QUOTE_DOUBLE", indent: 4 }) },
  { name: "JSON", write: (value) => JSON.stringify(value) },
  { name: "JSON with tabs", write: (value) => JSON.stringify(value, null, "\t") },
  { name: "a later document", write: (value) => `# one\n---\n${stringify(value)}...\n` },
  { name: "a List", write: (value) => stringify({ apiVersion: "v1", kind: "List", items: [value] }) },
];

export function loadProperties(numRuns: number): void {
  for (const { name, write } of spellings) {
    test(`a resource written as ${name} is read as it was`, () => {
      fc.assert(
        fc.property(resource, (generated) => {
          const expected = plain(generated);
          const { resources, findings } = loadText(write(expected), "m.yaml");
          assert.deepEqual(findings, []);
          assert.deepEqual(plain(resources[0]), expected);
        }),
        { seed, numRuns },
      );
    });
  }

  test("a resource is its own parse", () => {
    fc.assert(
      fc.property(resource, (generated) => {
        const once = parseResource(plain(generated)).resource;
        assert.deepEqual(parseResource(once).resource, once);
      }),
      { seed, numRuns },
    );
  });

  test("the place of each field is the line that names it", () => {
    fc.assert(
      fc.property(resource, (generated) => {
        const source = stringify(plain(generated), { lineWidth: 0 });
        const lines = source.split("\n");
        const [read] = loadText(source, "m.yaml").resources;
        for (const path of fieldPaths(read)) {
          const { line, column } = placeOf(read!, path)!;
          const key = String(path.at(-1));
          const at = lines[line - 1]!.slice(column - 1);
          assert.ok(at.startsWith(key) || at.startsWith(`"${key}"`) || at.startsWith("? "), `${path.join(".")}: ${at}`);
        }
      }),
      { seed, numRuns },
    );
  });

  test("no text makes loading throw", () => {
    const snippet = fc.constantFrom(
      "\n",
      "\t",
      "  ",
      "- ",
      ": ",
      "---\n",
      "*a",
      "&a ",
      "<<: ",
      "{",
      "}",
      "[",
      "]",
      '"',
      "'",
      "|\n",
      "? ",
      "!!x ",
      "%",
      "#",
    );
    const broken = fc
      .tuple(resource, fc.nat(), fc.nat(20), fc.array(snippet, { maxLength: 4 }))
      .map(([value, at, length, parts]) => {
        const source = stringify(plain(value));
        const begin = at % source.length;
        return source.slice(0, begin) + parts.join("") + source.slice(begin + length);
      });
    fc.assert(
      fc.property(
        fc.oneof(
          broken,
          fc.string({ unit: "binary" }),
          fc.array(snippet).map((parts) => parts.join("")),
        ),
        (source) => {
          const { resources, findings } = loadText(source, "m.yaml");
          for (const { place } of findings) {
            assert.ok(place === undefined || (place.line >= 1 && place.column >= 1));
            assert.ok(place === undefined || place.line <= source.split("\n").length);
          }
          assert.ok(Array.isArray(resources));
        },
      ),
      { seed, numRuns: numRuns * 5 },
    );
  });

  test("no bytes make loading throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        loadText(bytes, "m.yaml");
      }),
      { seed, numRuns },
    );
  });
}

function fieldPaths(value: unknown, path: Path = []): readonly Path[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => fieldPaths(item, [...path, index]));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [[...path, key], ...fieldPaths(item, [...path, key])]);
}
