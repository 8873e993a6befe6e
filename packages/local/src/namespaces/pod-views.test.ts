// What is replaced in the views of a pod's programs, by folders as machines have them.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { appReplaced, firstClosed, firstUnreadable, proxyReplaced, viewSteps } from "./pod-views.ts";

/** A home that is its owner's alone, with a mesh and an installation in it. */
function home() {
  const base = temporaryFolder("tulle-views-");
  chmodSync(base, 0o755);
  const closed = path.join(base, "ann");
  const state = path.join(closed, "shop", ".tulle");
  const roots = path.join(state, "roots");
  const given = path.join(state, "pods", "a", "given");
  const installation = [path.join(closed, "tulle"), path.join(base, "opt")];
  for (const folder of [roots, given, ...installation]) mkdirSync(folder, { recursive: true, mode: 0o755 });
  for (const folder of [closed, state]) chmodSync(folder, 0o700);
  const folders = {
    state,
    roots,
    installation,
    appCompileCache: path.join(state, "compile-cache"),
    hidden: [path.join(closed, "tulle"), path.join(state, "sockets"), path.join(base, "nowhere")],
  };
  const own = { folder: path.join(state, "pods", "a", "proxy"), user: 1337 };
  return { base, closed, state, roots, given, installation, folders, own };
}

test("the first folder that others may not pass is found, from the root on", () => {
  const { base, closed, given } = home();
  assert.equal(firstClosed(given), closed);
  assert.equal(firstClosed(path.join(base, "opt")), undefined);
});

test("an app sees of the state its compiled code alone, and nothing of what is hidden", () => {
  const { folders, state, closed } = home();
  const replaced = appReplaced(folders).map(({ folder, shown }) => [folder, shown]);
  assert.deepEqual(replaced, [
    [state, [folders.appCompileCache]],
    [path.join(closed, "tulle"), []],
  ]);
});

test("a proxy passes closed folders to what it needs, has a folder there, and a /tmp of its own", () => {
  const { base, folders, given, own, roots, installation } = home();
  const replaced = proxyReplaced(folders, given, own);
  // The test's own folders lie in /tmp, too.
  const shown = base.startsWith("/tmp/") ? [roots, given, ...installation] : [roots, given, installation[0]!];
  assert.deepEqual(replaced.flatMap((each) => each.shown).toSorted(), shown.toSorted());
  assert.deepEqual(
    replaced.flatMap(({ made }) => made ?? []),
    [own],
  );
  assert.match(replaced.find(({ folder }) => folder === "/tmp")!.options, /mode=1777/);
});

test("steps mount the files first, and build each folder beside its place", () => {
  const replaced = [{ folder: "/s", options: "o", shown: ["/s/a"], made: { folder: "/s/c", user: 7 } }];
  const steps = [
    "processes",
    "file /own/hosts /etc/hosts",
    "empty /stage/0 o",
    "show /s/a /stage/0/a",
    "make /stage/0/c 7",
    "move /stage/0 /s",
  ];
  assert.equal(viewSteps({ files: [["/own/hosts", "/etc/hosts"]], replaced }, "/stage").join(" "), steps.join(" "));
});

test("what others may not read of an installation is named", () => {
  const { base, closed } = home();
  assert.equal(firstUnreadable([path.join(base, "opt"), closed], []), closed);
  assert.equal(firstUnreadable([path.join(base, "opt")], []), undefined);
});
