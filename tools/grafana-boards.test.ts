// The boards in deploy/grafana/ are what the program makes now, and have what Grafana needs of a dashboard.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { boards, boardsFolder, boardText, dashboard } from "./grafana-boards.ts";

test("deploy/grafana/ is current: npm run generate:grafana", () => {
  assert.deepEqual(readdirSync(boardsFolder).sort(), boards.map(({ name }) => `${name}.json`).sort());
  for (const board of boards)
    assert.equal(readFileSync(path.join(boardsFolder, `${board.name}.json`), "utf8"), boardText(board), board.name);
});

interface Dashboard {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
  readonly panels: readonly {
    readonly id: number;
    readonly type: string;
    readonly datasource: { readonly uid: string };
    readonly targets: readonly { readonly refId: string; readonly expr: string }[];
  }[];
}

for (const board of boards) {
  test(`board ${board.name}: its source is a variable, its panels and queries are told apart, and its variables exist`, () => {
    const { uid, schemaVersion, templating, panels } = dashboard(board) as Dashboard;
    assert.match(uid, /^[\w-]{1,40}$/);
    assert.equal(schemaVersion, 39);
    assert.equal(templating.list.find(({ type }) => type === "datasource")?.name, "datasource");
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const known = new Set(["__rate_interval", ...templating.list.map(({ name }) => name)]);
    for (const panel of panels) {
      assert.equal(panel.datasource.uid, "${datasource}");
      assert.ok(panel.targets.length > 0);
      assert.equal(new Set(panel.targets.map(({ refId }) => refId)).size, panel.targets.length);
      for (const { expr } of panel.targets)
        for (const [, used = ""] of expr.matchAll(/\$(\w+)/g)) assert.ok(known.has(used), used);
    }
  });
}
