// `tulle up --mode namespaces`: unmodified programs in networks of their own, whose connections the kernel leads
// through their sidecars; who tries to get past them; and that nothing is left. Families, nodes' own addresses, and
// other ends and starts: namespaces.long.test.ts.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { freePort } from "../tools/processes.ts";
import { assertNothingLeft, machineOf, namespacesOf } from "./machine-traces.ts";
import { requireNamespaces, startWithPlain } from "./namespaces-stage.ts";
import { assertAttacksFailed, attackScript } from "./state-attacks.ts";
import type { CommandResult, ShopInstance } from "./shop-instance.ts";

describe("pods in networks of their own", { timeout: 300_000 }, () => {
  let shop: ShopInstance;
  const exec = (...words: readonly string[]): Promise<CommandResult> => shop.tulle("exec", ...words);
  async function run(pod: string, ...command: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await exec(pod, "--", ...command);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  before(async () => {
    await requireNamespaces();
    shop = await startWithPlain();
  });
  after(() => shop?.[Symbol.asyncDispose]());

  test("the published port leads through the gateway and the sidecars to all of the shop", async () => {
    const { status, body } = await shop.get("/productpage");
    assert.equal(status, 200);
    assert.match(body, /<html/);
    assert.match(await run("webapp", "curl", "-sS", "http://catalog/items/1"), /"id":1/);
    const pages = await Promise.all(
      ["catalog-v1", "catalog-v2"].map((pod) => run(pod, "curl", "-sS", "localhost:15000/stats/prometheus")),
    );
    const secured = /istio_requests_total\{[^}]*connection_security_policy="mutual_tls"[^}]*\} [1-9]/;
    assert.ok(pages.some((page) => secured.test(page)));
  });

  test("pods are dealt out over two nodes, in both families", async () => {
    const { items } = await shop.api().list("Pod");
    const nodes = new Set(items.map(({ spec }) => spec.nodeName));
    assert.deepEqual(
      [...nodes].toSorted((a = "", b = "") => a.localeCompare(b)),
      ["node-1", "node-2"],
    );
    for (const { status } of items) {
      const [ipv4, ipv6] = status?.podIPs ?? [];
      assert.match(ipv4?.ip ?? "", /^10\.244\.[12]\.\d+$/);
      assert.match(ipv6?.ip ?? "", /^fd00:10:244:[12]::/);
    }
    const table = await shop.mustTulle("get", "pods", "-A", "-o", "wide");
    assert.match(table, /^shop +webapp.* 10\.244\.([12])\.\d+ +node-\1$/m);
  });

  test("an unmodified program calls a Service by its name, through its proxy, and no variable tells it to", async () => {
    const variables = await run("webapp", "sh", "-c", "env | grep -i proxy || echo none");
    assert.equal(variables.trim(), "none");
    for (const host of ["catalog", "catalog.shop", "catalog.shop.svc.cluster.local"]) {
      const answer = await run("webapp", "curl", "-sS", "-i", `http://${host}/items/1`);
      assert.match(answer, /^HTTP\/1\.1 200/);
      assert.match(answer, /^server: envoy/m);
      assert.match(answer, /^x-envoy-upstream-service-time: \d/m);
    }
    assert.match(await run("webapp", "getent", "hosts", "catalog"), /^10\.96\.\d+\.\d+\s+catalog\.shop\.svc/);
    const unknown = await exec("webapp", "--", "getent", "hosts", "nobody");
    assert.equal(unknown.code, 2, "there is no such name");
  });

  test("a pod without a sidecar reaches Services by name, address and node port, as a user of its own", async () => {
    assert.match(await run("plain", "id"), /^uid=65534/);
    assert.match(await run("plain", "getent", "hosts", "catalog"), /^10\.96\.\d+\.\d+\s+catalog\.shop\.svc/);
    for (const host of ["catalog", "172.31.255.11:30080", "172.31.255.12:30080"])
      assert.match(await run("plain", "curl", "-sS", `http://${host}/items/1`), /"id":1/, host);
    assert.match(await run("plain", "cat", "/proc/self/status"), /^CapEff:\s0{16}$/m);
  });

  test("the proxy's pages are asked from the machine, too", async () => {
    assert.match(await shop.mustTulle("proxy-config", "routes", "webapp"), /catalog\.shop/);
    assert.match(await shop.mustTulle("proxy-config", "listeners", "webapp"), /0\.0\.0\.0/);
  });

  const kept = "--bounding-set=-all,+";
  const attempts = [
    { name: "takes out the rules", command: "nft delete table inet tulle_capture" },
    { name: "becomes the proxy's user", command: "setpriv --reuid=1337 --clear-groups -- id" },
    { name: "becomes the proxy's group", command: "setpriv --regid=1337 --clear-groups -- id" },
    {
      name: "becomes the proxy's user by a file",
      command:
        "made=$(mktemp -d)/id; cp $(command -v id) $made; chown 1337 $made; chmod 4755 $made; $made -u | grep -x 1337",
    },
    { name: "enters the machine's network", command: "nsenter --net=/proc/1/ns/net -- id" },
    { name: "enters the machine's files", command: "nsenter --mount=/proc/1/ns/mnt -- id" },
    { name: "takes its link down", command: "ip link set eth0 down && id" },
    { name: "takes its rights back", command: `setpriv ${kept}net_admin -- nft flush ruleset` },
    {
      name: "becomes the proxy's user in a user namespace of its own",
      command: "unshare --user --map-user=1337 -- nsenter --net=/proc/1/ns/net -- id",
    },
    {
      name: "reads the proxy's memory",
      command:
        'for each in /proc/[0-9]*; do [ "$(stat -c %u $each)" = 1337 ] && head -c 1 $each/environ && exit 0; done; exit 1',
    },
  ] as const;

  test("a program gets past the capture and out of its pod by none of its ways", async (t) => {
    // One after another in one process: each `tulle exec` costs a quarter of a second.
    const lines = attempts.map(
      ({ command }, index) => `out=$( (${command}) 2>&1 ); echo "attempt ${index} ended with $?: $out"`,
    );
    const said = await run("webapp", "sh", "-c", ["PATH=$PATH:/usr/sbin:/sbin", ...lines].join("\n"));
    const parts = said.split(/^attempt \d+ ended with /m).slice(1);
    assert.equal(parts.length, attempts.length, said);
    for (const [index, { name }] of attempts.entries()) {
      await t.test(`a program ${name}: it may not`, () => {
        assert.match(parts[index]!, /^[1-9]\d*: /);
        assert.doesNotMatch(parts[index]!, /uid=/);
      });
    }
  });

  test("programs of a pod see its own processes alone, and an orphan leaves nothing behind", async () => {
    const everybody = "for each in /proc/[0-9]*; do tr '\\0' ' ' < $each/cmdline 2>/dev/null; echo; done";
    const orphans =
      'sh -c "sleep 0 & exit"; while grep -qs "^State:.Z" /proc/[0-9]*/status; do sleep 0.1; done; echo reaped';
    const seen = await run("webapp", "sh", "-c", `${everybody}; ${orphans}`);
    assert.match(seen, /webapp\/main\.ts/);
    assert.match(seen, /^reaped$/m);
    assert.doesNotMatch(seen, /catalog\/main\.ts|control-plane|main\.ts up/);
  });

  for (const container of ["app", "proxy"]) {
    test(`who is in a pod as its ${container} finds nothing of the mesh that is not its own`, async (t) => {
      const script = attackScript(path.join(shop.folder, ".tulle"));
      const { stdout } = await exec("-c", container, "webapp", "--", "sh", "-c", script);
      await assertAttacksFailed(t, stdout);
    });
  }

  test("a proxy reads its own token and the mesh's roots, and no file of root's", async () => {
    const script = 'cat ../given/token "$TULLE_CA_ROOT_FILE" /etc/shadow';
    const { stdout, stderr } = await exec("-c", "proxy", "webapp", "--", "sh", "-c", script);
    assert.match(stdout, /^ey[\s\S]*BEGIN CERTIFICATE/, stderr);
    assert.match(stderr, /shadow: Permission denied/);
  });

  test("a command that is told to end does so, in the pod too", async () => {
    await using command = await shop.command("exec", "webapp", "--", "sh", "-c", "echo begun; exec sleep 3600");
    await command.waitForOutput(/begun/);
    process.kill(command.pid, "SIGTERM");
    assert.equal((await command.exited).code, 143);
    assert.doesNotMatch(await run("webapp", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"), /sleep 3600/);
  });

  test("a program reaches nothing of the machine", async () => {
    const ours = await freePort();
    const { code } = await exec("webapp", "--", "curl", "-sS", "-m", "10", `http://127.0.0.1:${shop.port}/`);
    assert.notEqual(code, 0);
    const other = await exec("webapp", "--", "curl", "-sS", "-m", "10", `http://127.0.0.1:${ours}/`);
    assert.notEqual(other.code, 0);
  });

  test("nothing is left after tulle down", async () => {
    const machine = await machineOf(shop.folder);
    const namespaces = namespacesOf(shop.folder);
    // The instance's own, and each pod's network and files.
    assert.ok(namespaces.size >= 13, String(namespaces.size));
    await shop.mustTulle("down");
    await assertNothingLeft(shop.folder, namespaces, machine);
  });
});
