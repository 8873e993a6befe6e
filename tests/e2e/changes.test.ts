// What `tulle changes` tells of a running shop: who has changed what, and which proxies have it.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { ApiClient } from "@tulle/config";
import { type ChangesResponse, endpoints, type RecordedChange } from "@tulle/config/api";
import { startProcess, waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { useRunningShop } from "./running-shop.ts";
import { commandEntry, type ShopInstance } from "./shop-instance.ts";

describe("changes of a shop", () => {
  let shop: ShopInstance;
  useRunningShop("Tulle's proxy", (running) => (shop = running));

  test("by a person, by a file's editor, and how far the proxies are", async () => {
    // As people and programs read it.
    const watch = (...format: readonly string[]) =>
      startProcess(process.execPath, [commandEntry, "changes", "Service", "--watch", ...format], {
        name: "tulle changes --watch",
        env: { TULLE_DIR: shop.folder },
        cwd: shop.folder,
      });
    await using people = await watch();
    await using program = await watch("-o", "json");
    const file = path.join(shop.folder, "webapp.yaml");
    const before = await readFile(file, "utf8");
    const service = (name: string): string => `apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { selector: { app: ${name} }, ports: [{ port: 80, name: http }] }
`;
    const applied = path.join(shop.folder, "..", "by-hand.yaml");
    await writeFile(applied, service("by-hand"));
    const seen = (name: string): Promise<RecordedChange> =>
      waitFor(
        () => {
          const lines = program.stdout().split("\n").slice(0, -1);
          const changes = lines.map((line) => JSON.parse(line) as RecordedChange);
          return changes.find((change) => change.name === name && change.proxies?.tookMs !== undefined);
        },
        { what: `all proxies to have ${name}`, details: () => program.output() },
      );
    try {
      await shop.mustTulle("apply", "-f", applied);
      const first = await seen("by-hand");
      await writeFile(file, `${before}---\n${service("in-file")}`);
      const second = await seen("in-file");
      for (const { proxies, type, name } of [first, second]) {
        assert.equal(type, "added");
        assert.ok(proxies!.connected > 3);
        assert.deepEqual([proxies!.inSync, proxies!.refusing], [proxies!.connected, 0]);
        const [revision] = proxies!.revisions!.filter(({ virtualHost }) => virtualHost.startsWith(`${name}.shop`));
        assert.equal(revision?.before, undefined);
        // As access logs of whoever calls it will name it.
        const routes = await shop.mustTulle("proxy-config", "route", "deploy/webapp", "-n", "shop");
        assert.match(routes, new RegExp(`${name}.*${revision!.after!}`));
      }
      assert.ok(second.batch! > first.batch!);
      const { after: made } = second.proxies!.revisions!.find(({ virtualHost }) => virtualHost.startsWith("in-file"))!;
      assert.match(await shop.mustTulle("changes", "--revision", made!), /Service shop\/in-file added/);
      assert.match(await shop.mustTulle("changes", "--revision", "000000000000"), /^No changes are remembered/);
      assert.match(first.by!, new RegExp(`uid ${process.getuid!()}\\)?$`));
      assert.deepEqual([second.by, second.file?.includes("webapp.yaml:")], ["an edit of the file", true]);
      await people.waitForOutput(/Service shop\/in-file added[^]*by an edit of the file\n/);
      await people.waitForOutput(/in-file[^]*\d+ of \d+ proxies in sync after \d+\.\d\d s\n/);
    } finally {
      await writeFile(file, before);
      await waitFor(
        () =>
          shop
            .api()
            .get("Service", "shop", "in-file")
            .then((found) => found === undefined),
        {
          what: "the file to be as it was",
        },
      );
    }
    const told = await shop.mustTulle("changes", "Service/in-file", "-n", "shop", "-o", "json");
    const { changes } = JSON.parse(told) as ChangesResponse;
    assert.deepEqual(
      changes.map(({ type, by }) => [type, by]),
      [
        ["added", "an edit of the file"],
        ["deleted", "an edit of the file"],
      ],
    );
  });
});

test("what is edited while the control plane is away, which was killed, stands in the timeline of the next", async () => {
  const folder = temporaryFolder("tulle-changes-");
  const state = path.join(folder, "state");
  const service = (name: string, port: number): string => `---
apiVersion: v1
kind: Service
metadata: { name: ${name} }
spec: { selector: { app: ${name} }, ports: [{ port: ${port}, name: http }] }
`;
  const file = path.join(folder, "services.yaml");
  const start = async () => {
    const ports = ["--no-xds", "--http", "127.0.0.1:0"];
    const line = [commandEntry, "control-plane", "--manifests", folder, "--state", state, ...ports];
    const started = await startProcess(process.execPath, line, { name: "tulle control-plane" });
    await started.waitForOutput(/ control plane serves /);
    return started;
  };
  const api = new ApiClient({ endpoint: { socketPath: path.join(state, "control-plane.sock") } });
  const changes = async (): Promise<readonly RecordedChange[]> => (await api.call(endpoints.changes, {})).changes;
  const kept = (): Promise<string> => readFile(path.join(state, "changes.json"), "utf8");

  await writeFile(file, service("one", 80) + service("two", 80));
  const first = await start();
  assert.deepEqual(await changes(), []);
  await writeFile(file, service("one", 80) + service("two", 81));
  await waitFor(async () => (await kept()).includes('"modified"'), { what: "the edit that it sees on disk" });
  await first.stop({ signal: "SIGKILL" });

  await writeFile(file, service("one", 82) + service("three", 80));
  for (let starts = 0; starts < 2; starts += 1) {
    const next = await start();
    const [seen, away, ...others] = await changes();
    assert.deepEqual([seen?.type, seen?.name, others], ["modified", "two", []]);
    const of = { kind: "Service", namespace: "default" };
    assert.deepEqual(away?.away, {
      named: [
        { type: "added", ...of, name: "three", file: `${file}:7` },
        { type: "modified", ...of, name: "one", file: `${file}:2` },
        { type: "deleted", ...of, name: "two" },
      ],
      more: 0,
    });
    await waitFor(async () => (await kept()).includes('"away"'), { what: "the entry on disk" });
    await next.stop({ signal: "SIGKILL" });
  }
});
