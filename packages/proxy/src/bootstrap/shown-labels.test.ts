// Which names of labels a bootstrap asks for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { BootstrapSchema } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { shownLabels } from "./shown-labels.ts";

const statsTags = [{ tagName: "cluster_name" }, { tagName: "of_ours" }];

const cases: readonly {
  readonly name: string;
  readonly bootstrap: MessageInitShape<typeof BootstrapSchema>;
  readonly expected: readonly (readonly [string, string])[];
}[] = [
  { name: "Envoy's own where nothing is said", bootstrap: {}, expected: [] },
  { name: "Envoy's own where its default tags are on", bootstrap: { statsConfig: { statsTags } }, expected: [] },
  {
    name: "those of stats_tags where they are off",
    bootstrap: { statsConfig: { useAllDefaultTags: false, statsTags } },
    expected: [["envoy_cluster_name", "cluster_name"]],
  },
];

for (const { name, bootstrap, expected } of cases) {
  test(`names of labels: ${name}`, () => {
    assert.deepEqual([...shownLabels(create(BootstrapSchema, bootstrap))], expected);
  });
}
