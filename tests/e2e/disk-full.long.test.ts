// The disk under an instance is full: traffic goes on, endpoints and files of configuration still take effect, what
// ended is started again, and each trouble is told once.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { ShopInstance } from "./shop-instance.ts";

const diskBytes = 48 * 1024 * 1024;

const everythingToV1 = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: catalog, namespace: shop }
spec:
  hosts: [catalog]
  http: [{ route: [{ destination: { host: catalog, subset: version-v1 } }] }]
`;

test("a full disk is said, and traffic goes on", async () => {
  await using shop = await ShopInstance.start({ without: ["productpage.yaml"], stateDiskBytes: diskBytes });
  const disk = shop.disk!;
  const fromV1 = async (): Promise<boolean> => {
    const { status, body } = await shop.get("/api/catalog/items/1");
    assert.equal(status, 200, `${body}\n${shop.up.output()}`);
    return !body.includes("imageUrl");
  };
  disk.fill();
  for (let count = 0; count < 100; count += 1) await fromV1();

  // A file of the user's, who has room.
  await writeFile(path.join(shop.folder, "rule.yaml"), everythingToV1);
  await waitFor(
    async () => {
      const answers = await Promise.all(Array.from({ length: 10 }, fromV1));
      return answers.every(Boolean);
    },
    { what: "the new rule" },
  );
  const { code, stderr } = await shop.tulle("apply", "-f", path.join(shop.folder, "rules", "4-retries.yaml"));
  assert.notEqual(code, 0);
  assert.match(stderr, /ENOSPC|no space/i);

  // The pod of v1 leaves the endpoints and comes back; nothing of that can be saved.
  const { name } = await shop.pod("catalog-v1");
  process.kill((await shop.processes()).get(`${name} app`)!, "SIGKILL");
  await waitFor(async () => (await shop.pod("catalog-v1")).restarts === 1, { what: "another run of the app" });
  await waitFor(async () => (await shop.pod("catalog-v1")).ready, { what: "the pod" });
  await waitFor(async () => (await shop.get("/api/catalog/items/1")).status === 200, { what: "the way to it" });
  for (let count = 0; count < 100; count += 1) assert.ok(await fromV1());
  assert.deepEqual(
    (await shop.pods()).filter((pod) => !pod.name.startsWith("catalog-v1")).map(({ restarts }) => restarts),
    [0, 0, 0],
  );

  disk.free();
  await shop.mustTulle("apply", "-f", path.join(shop.folder, "rules", "2-everything-to-v1.yaml"));
  await shop.waitForSync();
  const logOf = (pod: string): Promise<string> =>
    readFile(path.join(shop.folder, ".tulle", "logs", pod, "proxy.log"), "utf8");
  const webapp = await shop.pod("webapp");
  const notices = ["the state can be saved again", "access log can be written again"];
  const log = await waitFor(
    async () => {
      await fromV1();
      const text = await logOf(webapp.name);
      return notices.every((notice) => text.includes(notice)) && text;
    },
    { what: "log lines and state to be written again" },
  );
  for (const notice of notices) assert.equal(log.split(notice).length, 2, `${notice}: more than once`);
  assert.ok(!/ENOSPC/.test(shop.up.output()) || shop.up.output().match(/ENOSPC/g)!.length <= 2, shop.up.output());
});
