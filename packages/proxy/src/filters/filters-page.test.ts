// The page for users lists the filters that the three tables know, each in its row, and no other.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { httpFilters } from "./http/table.ts";
import { listenerFilters } from "./listener/table.ts";
import { networkFilters } from "./network/table.ts";

const page = readFileSync(path.join(import.meta.dirname, "../../../../docs/differences-from-envoy.md"), "utf8");
const section = /^## Filters\n([\s\S]*?)^## /m.exec(page)![1]!;
const cell = (types: readonly string[]): string => types.map((type) => `\`${type}\``).join(", ");

test("the page lists the filters that there are", () => {
  const rows = [
    ...httpFilters.map(({ types, routeTypes = [] }) => ["HTTP", cell(types), cell(routeTypes)]),
    ...networkFilters.map(({ types }) => ["network", cell(types), ""]),
    ...listenerFilters.map(({ types }) => ["listener", cell(types), ""]),
  ].map((cells) => cells.join(" | ").trimEnd());
  const listed = section
    .split("\n")
    .filter((line) => /^\| (HTTP|network|listener) /.test(line))
    .map((line) => line.slice(2, -1).trimEnd());
  assert.deepEqual(listed.toSorted(), rows.toSorted());
});
