// A proxy that may not do what TPROXY takes says so, and has no such listener; calls from a client's address fail.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { before, test } from "node:test";
import { freePorts, startProcess, type StartedProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { ToolUnavailable } from "../../../../tests/tools/tool-unavailable.ts";
import { connectionManager, extension, loopback, staticCluster } from "../testing/envoy-json.ts";

const cli = path.resolve(import.meta.dirname, "../../../cli/src/main.ts");

/** Of root, without the capabilities of which the kernel asks for one. */
function startWithout(listener: object): Promise<StartedProcess> {
  const bootstrap = path.join(temporaryFolder("tulle-transparent-"), "proxy.json");
  const static_resources = { listeners: [listener], clusters: [staticCluster("app", [1])] };
  writeFileSync(bootstrap, JSON.stringify({ static_resources }));
  const without = ["--bounding-set=-net_admin,-net_raw", "--inh-caps=-net_admin,-net_raw", "--"];
  return startProcess("setpriv", [...without, process.execPath, cli, "proxy", "-c", bootstrap]);
}

const routes = connectionManager([{ match: { prefix: "/" }, route: { cluster: "app" } }]);
const filter_chains = [{ filters: [{ name: "http", typed_config: routes }] }];

before(() => {
  if (process.getuid?.() !== 0) throw new ToolUnavailable("root", "only root may give up a capability");
});

test("a transparent listener is refused with the reason", async () => {
  await using proxy = await startWithout({ name: "in", address: loopback(0), transparent: true, filter_chains });
  await proxy.waitForOutput(/cannot bind '127\.0\.0\.1:0': a transparent socket takes CAP_NET_ADMIN/);
  assert.notEqual((await proxy.exited).code, 0);
});

test("without it, hosts are not called from an address of this machine in the client's place", async () => {
  const [port] = await freePorts(1);
  const original_src = {
    name: "original_src",
    typed_config: { "@type": extension("filters.listener.original_src.v3.OriginalSrc"), mark: 77 },
  };
  const listener = { name: "in", address: loopback(port!), listener_filters: [original_src], filter_chains };
  await using proxy = await startWithout(listener);
  const answer = await waitFor(() => ask(port!), { what: "an answer", details: () => proxy.output() });
  assert.match(answer, /^503 .*local connection failure/);
});

function ask(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: "127.0.0.1", port, agent: false }, async (response) => {
      resolve(`${response.statusCode} ${Buffer.concat(await response.toArray()).toString()}`);
    });
    request.once("error", reject);
  });
}
