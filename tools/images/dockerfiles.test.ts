// A Dockerfile says of an image what an archive's configuration says of it.
import assert from "node:assert/strict";
import { lstat, mkdir, readFile, symlink } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../tests/tools/temporary-folder.ts";
import { writeBuildContext } from "./dockerfiles.ts";

test("each image has a Dockerfile over layers that all of them share", async () => {
  const folder = temporaryFolder("tulle-dockerfiles-");
  const layer = { name: "system", folder: path.join(folder, "source") };
  await mkdir(path.join(layer.folder, "usr/lib"), { recursive: true });
  await symlink("usr/lib", path.join(layer.folder, "lib"));
  const context = path.join(folder, "context");
  const entrypoint = ["/usr/local/bin/node", "main.js"];
  await writeBuildContext(context, [
    { reference: "tulle/proxy:1", layers: [layer], entrypoint, user: "1337:1337", environment: { A: "b c" } },
    { reference: "localhost:5000/tulle/cni:1", layers: [layer], entrypoint, command: ["x"], workingDirectory: "/w" },
  ]);
  const read = (name: string): Promise<string> => readFile(path.join(context, name), "utf8");
  assert.equal(
    await read("proxy.Dockerfile"),
    `FROM scratch
COPY layers/system/ /
ENV A="b c"
USER 1337:1337
ENTRYPOINT ["/usr/local/bin/node","main.js"]
`,
  );
  assert.match(await read("cni.Dockerfile"), /\nWORKDIR \/w\nENTRYPOINT .*\nCMD \["x"\]\n$/);
  assert.ok((await lstat(path.join(context, "layers/system/lib"))).isSymbolicLink());
});
