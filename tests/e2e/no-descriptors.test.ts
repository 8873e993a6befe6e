// A proxy that may open no more files: it refuses newcomers, says so once, goes on with those it has, and recovers by
// itself. Beside it an Envoy in the same state, for what a request is told that cannot reach its host.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import path from "node:path";
import { test, type TestContext } from "node:test";
import {
  extension,
  fileAccessLog,
  loopback,
  router,
  staticCluster,
} from "../../packages/proxy/src/testing/envoy-json.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { freePorts, startProcess, type StartedProcess, waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const maxDescriptors = 100;
const tulleMain = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");
/** Fewer than the descriptors that are kept back of so few. */
const firstAskers = 5;
const localFailure = "503 UF upstream_reset_before_response_started{local_connection_failure|socket_creation_failure}";

interface Host {
  readonly port: number;
  readonly asked: () => number;
  readonly answer: () => void;
}

interface Crowded {
  readonly proxy: StartedProcess;
  readonly port: number;
  /** Idle connections; `closed` are those that the proxy ended. */
  readonly crowd: ReadonlySet<net.Socket>;
  readonly closed: () => number;
  /** Its host holds what it is asked for until `answer` is called; `asked` counts it. */
  readonly host: Host;
  readonly admin: (page: string) => Promise<string>;
  readonly log: () => Promise<string>;
}

const get = (port: number, target: string): Promise<string> => {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const options = { host: "127.0.0.1", port, path: target, agent: false, timeout: 5000 };
  const sent = http.get(options, (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (text: string) => (body += text));
    response.on("end", () => resolve(body));
  });
  sent.on("timeout", () => sent.destroy(new Error("no answer")));
  sent.on("error", reject);
  return promise;
};

async function startHost(t: TestContext): Promise<Host> {
  const answered = Promise.withResolvers<void>();
  let asked = 0;
  const host = http.createServer((request, response) => {
    if (request.url !== "/held") return response.end("at once");
    asked += 1;
    return void answered.promise.then(() => response.end("held"));
  });
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  t.after(() => {
    answered.resolve();
    host.closeAllConnections();
    host.close();
  });
  return { port: (host.address() as AddressInfo).port, asked: () => asked, answer: answered.resolve };
}

/** Starts a proxy with so few descriptors that more clients come than it can hold. */
async function startCrowded(t: TestContext, program: readonly string[]): Promise<Crowded> {
  const folder = temporaryFolder("tulle-descriptors-");
  const host = await startHost(t);
  const [port, adminPort] = (await freePorts(2)) as [number, number];
  const logFile = path.join(folder, "access.log");
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "crowded",
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "app", timeout: "60s" } }],
        },
      ],
    },
    http_filters: [router],
    access_log: [fileAccessLog(logFile, "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n")],
  };
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  const bootstrap = {
    admin: { address: loopback(adminPort) },
    static_resources: {
      listeners: [{ name: "crowded", address: loopback(port), filter_chains: [{ filters }] }],
      clusters: [staticCluster("app", [host.port])],
    },
  };
  const file = path.join(folder, "bootstrap.json");
  await writeFile(file, JSON.stringify(bootstrap));
  const limited = `ulimit -n ${maxDescriptors}; exec "$@"`;
  const proxy = await startProcess("/bin/sh", ["-c", limited, "sh", ...program, "-c", file], { name: program[0]! });
  t.after(() => proxy.stop());
  await waitFor(async () => (await get(adminPort, "/ready")).startsWith("LIVE"), {
    what: "the proxy",
    details: () => proxy.output(),
  });
  const crowd = new Set<net.Socket>();
  let closed = 0;
  let connected = 0;
  t.after(() => crowd.forEach((socket) => socket.destroy()));
  for (let count = 0; count < maxDescriptors + 20; count += 1) {
    const socket = net.connect(port, "127.0.0.1", () => (connected += 1));
    crowd.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      crowd.delete(socket);
      closed += 1;
    });
  }
  await waitFor(() => connected + closed >= maxDescriptors + 20, { what: "the crowd to come" });
  const admin = (page: string): Promise<string> => get(adminPort, page);
  return {
    proxy,
    port,
    crowd,
    closed: () => closed,
    host,
    admin,
    log: () => readFile(logFile, "utf8").catch(() => ""),
  };
}

const ask = (client: net.Socket): unknown => client.write("GET /held HTTP/1.1\r\nhost: app\r\n\r\n");

/** Sends a request that the host holds, and waits until one is told that there is no way to the host. */
async function askUntilRefused(clients: readonly net.Socket[], { log, proxy }: Crowded): Promise<void> {
  clients.forEach(ask);
  await waitFor(async () => (await log()).includes(localFailure), {
    what: localFailure,
    details: () => proxy.output(),
  });
}

test("Tulle's proxy without descriptors refuses newcomers, says so once, and recovers", async (t) => {
  const crowded = await startCrowded(t, [process.execPath, tulleMain, "proxy"]);
  const { proxy, port, crowd, closed, host, admin } = crowded;
  const refused = async (): Promise<number> =>
    Number(/downstream_cx_overload_reject: (\d+)/.exec(await admin("/stats?filter=overload_reject"))?.[1]);
  await waitFor(() => closed() > 20, { what: "newcomers to be refused" });
  await waitFor(async () => (await refused()) === closed(), { what: "as many refusals counted as there were" });
  assert.match(await admin("/ready"), /^LIVE/, "the admin page keeps its descriptor");

  let told = "";
  for (const socket of crowd) socket.setEncoding("latin1").on("data", (text: string) => (told += text));
  // A connection that cannot be opened fails all that wait for one (as in Envoy): some ask before there is a first.
  const clients = [...crowd];
  clients.slice(0, firstAskers).forEach(ask);
  await waitFor(() => host.asked() === firstAskers, { what: "the host to be asked", details: () => proxy.output() });
  await askUntilRefused(clients.slice(firstAskers), crowded);
  host.answer();
  const answers = (body: string): number => told.split(body).length - 1;
  await waitFor(() => answers("HTTP/1.1 200") + answers("HTTP/1.1 503") === crowd.size, { what: "an answer for each" });
  await waitFor(() => answers("held") === host.asked(), { what: "all that the host was asked for" });

  for (const socket of crowd) socket.destroy();
  await waitFor(async () => (await get(port, "/")) === "at once", { what: "a newcomer to be taken again" });
  assert.equal(proxy.output().split("connections are refused: too many files are open").length, 2, proxy.output());
  assert.equal(proxy.exit, undefined);
});

test("a stock Envoy says the same of a host that cannot be reached for it", async (t) => {
  const crowded = await startCrowded(t, [
    await envoyPath(),
    "--concurrency",
    "1",
    "--disable-hot-restart",
    "--file-flush-interval-msec",
    "50",
  ]);
  await askUntilRefused([...crowded.crowd], crowded);
  assert.equal(crowded.closed(), 0, "it lets newcomers wait");
});
