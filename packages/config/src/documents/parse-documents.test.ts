/** Texts that are no manifests: what is wrong with them, where, and what to do, as a person reads it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText } from "../load/load.ts";
import { renderFinding } from "../findings/render-finding.ts";
import { keyOf, keyText } from "../kinds/resource.ts";

interface Case {
  readonly name: string;
  readonly input: string;
  /** Keys of the resources that came out. */
  readonly resources?: readonly string[];
  readonly findings: readonly string[];
}

const cases: readonly Case[] = [
  {
    name: "tab as indentation",
    input: "apiVersion: v1\nmetadata:\n\tname: a\n",
    findings: [
      "Error [TUL0002] (m.yaml:3:1) a tab character indents this line\n  YAML allows only spaces there: replace the tab by spaces.",
    ],
  },
  {
    name: "indentation that fits nothing",
    input: "metadata:\n    name: a\n  namespace: b\n",
    findings: [
      'Error [TUL0002] (m.yaml:3:1) the indentation of this line fits no line above it: "namespace: b"\n  Begin it in the column of its neighbours, and close every "[" and "{" above.',
    ],
  },
  {
    name: "a field twice",
    input: "kind: Namespace\napiVersion: v1\nmetadata:\n  name: a\n  name: b\n",
    findings: [
      'Error [TUL0002] (m.yaml:5:3) the field "name" is there twice\n  Remove one of the two, or indent it below the object it belongs to.',
    ],
  },
  {
    name: "a quote that does not end is told where it begins, and the next document is read",
    input: 'a: 1\nb: "x\nc: 2\n---\napiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n',
    resources: ["Namespace//shop"],
    findings: ["Error [TUL0002] (m.yaml:2:4) a quoted text does not end\n  Add the closing quote."],
  },
  {
    name: "a bracket that does not end",
    input: "hosts: [a, b\nkind: X\n",
    findings: [
      'Error [TUL0002] (m.yaml:2:1) the indentation of this line fits no line above it: "kind: X"\n  Begin it in the column of its neighbours, and close every "[" and "{" above.',
    ],
  },
  {
    name: "no space after the colon",
    input: "kind:Namespace\nmetadata: 1\n",
    findings: [
      'Error [TUL0002] (m.yaml:1:1) this is no "name: value": "kind:Namespace"\n  Write a colon and a space after the name, and check the indentation of the next line.',
    ],
  },
  {
    name: "a wildcard without quotes",
    input: "hosts:\n  - *\n",
    findings: [
      'Error [TUL0002] (m.yaml:2:5) "*" begins an alias in YAML: "- *"\n  If the text is meant, put it in quotes: "*".',
    ],
  },
  {
    name: "a wildcard host without quotes",
    input: "hosts:\n  - *.example.com\n",
    findings: [
      'Error [TUL0002] (m.yaml:2:5) "*.example.com" is an alias in YAML, and there is no anchor "&.example.com"\n  If the text is meant, put it in quotes: "*.example.com".',
    ],
  },
  {
    name: "an object that is no resource",
    input: "- a\n- b\n",
    findings: [
      "Error [TUL0002] (m.yaml:1:1) expected a resource, found a list\n  A resource is a mapping with apiVersion, kind and metadata.",
    ],
  },
  {
    name: "nothing but comments and empty documents",
    input: "# nothing\n---\n---\n# more\n...\n",
    findings: [],
  },
  {
    name: "a tag that nobody knows is left out and told",
    input: "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: !own shop\n",
    resources: ["Namespace//shop"],
    findings: ["Warning [TUL0002] (m.yaml:4:9) a tag that nobody knows: unresolved tag: !own\n  Leave the tag out."],
  },
  {
    name: "line ends of Windows and a byte order mark",
    input:
      "\uFEFFapiVersion: v1\r\nkind: Namespace\r\nmetadata:\r\n  name: a\r\n---\r\napiVersion: v1\r\nkind: Namespce\r\n",
    resources: ["Namespace//a"],
    findings: [
      "Error [TUL0003] (m.yaml:7:1) Namespce is not a kind that the mesh reads; the resource is left out\n  Did you mean Namespace?",
    ],
  },
  {
    name: "too deep",
    input: `a: ${"[".repeat(100)}${"]".repeat(100)}\n`,
    findings: [
      "Error [TUL0002] (m.yaml:1:68) the document is nested deeper than 64 levels\n  Split it into several documents, or write less through aliases.",
    ],
  },
  {
    name: "an anchor within itself",
    input: "a: &a [*a]\n",
    findings: [
      "Error [TUL0002] (m.yaml:1:8) the document is nested deeper than 64 levels\n  Split it into several documents, or write less through aliases.",
    ],
  },
  {
    name: "a bomb of anchors",
    input: Array.from(
      { length: 12 },
      (_, i) =>
        `a${i}: &a${i} [${Array(10)
          .fill(i === 0 ? "x" : `*a${i - 1}`)
          .join(",")}]`,
    ).join("\n"),
    findings: [
      "Error [TUL0002] (m.yaml:5:10) the document has more than 20000 values through aliases\n  Write less through aliases.",
    ],
  },
];

for (const { name, input, resources = [], findings } of cases) {
  test(`parse: ${name}`, () => {
    const loaded = loadText(input, "m.yaml");
    assert.deepEqual(
      loaded.findings.map((finding) => renderFinding(finding)),
      findings,
    );
    assert.deepEqual(
      loaded.resources.map((resource) => keyText(keyOf(resource))),
      resources,
    );
  });
}
