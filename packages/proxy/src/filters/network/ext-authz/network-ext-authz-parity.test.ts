// Authorizers of connections on this proxy and on a stock Envoy: the same connections go on, with the same questions
// asked.
import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { waitFor } from "../../../../../../tests/tools/processes.ts";
import { GrpcAuthorizerStage } from "../../../testing/grpc-authorizer-stage.ts";
import { type Side, countersOf, startEnvoy, startOurs } from "../../../testing/parity-pair.ts";
import { extension, fileAccessLog, http2Options, loopback, staticCluster } from "../../../testing/envoy-json.ts";

const format = "%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %DYNAMIC_METADATA(envoy.filters.network.ext_authz)%\n";

const extAuthz = (authorizer: string, more: object = {}): object => ({
  name: "ext_authz",
  typed_config: {
    "@type": extension("filters.network.ext_authz.v3.ExtAuthz"),
    stat_prefix: "tcp.",
    transport_api_version: "V3",
    grpc_service: {
      envoy_grpc: { cluster_name: authorizer, authority: "authorizer.test" },
      timeout: authorizer === "late" ? "0.4s" : "30s",
    },
    ...more,
  },
});
const rbac = (matches: boolean): object => ({
  name: "rbac",
  typed_config: {
    "@type": extension("filters.network.rbac.v3.RBAC"),
    stat_prefix: "tcp.",
    shadow_rules: {
      action: "DENY",
      policies: {
        "istio-ext-authz-a": {
          permissions: [{ any: true }],
          principals: [matches ? { any: true } : { not_id: { any: true } }],
        },
      },
    },
    shadow_rules_stat_prefix: "istio_ext_authz_",
  },
});
const whereMatched = {
  filter_enabled_metadata: {
    filter: "envoy.filters.network.rbac",
    path: [{ key: "istio_ext_authz_shadow_effective_policy_id" }],
    value: { string_match: { prefix: "istio-ext-authz" } },
  },
};

const listeners: readonly { readonly name: string; readonly filters: readonly object[] }[] = [
  { name: "allowed", filters: [extAuthz("allows")] },
  { name: "denied", filters: [extAuthz("denies", { include_tls_session: true })] },
  { name: "two", filters: [extAuthz("allows"), extAuthz("denies")] },
  { name: "matched", filters: [rbac(true), extAuthz("denies", whereMatched)] },
  { name: "unmatched", filters: [rbac(false), extAuthz("denies", whereMatched)] },
  { name: "dead", filters: [extAuthz("dead")] },
  { name: "open", filters: [extAuthz("dead", { failure_mode_allow: true })] },
  { name: "late", filters: [extAuthz("late")] },
];

const allows = new GrpcAuthorizerStage(() => ({ status: { code: 0 }, dynamic_metadata: { a: "b" } }));
const denies = new GrpcAuthorizerStage(() => ({ status: { code: 7 }, denied_response: { body: "no" } }));
const late = new GrpcAuthorizerStage(() => "late");
const echo = net.createServer((socket) => {
  socket.on("error", () => undefined);
  socket.pipe(socket);
});
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-parity-"));
let sides: Readonly<Record<"ours" | "envoys", Side>>;

function bootstrap(clusters: Readonly<Record<string, number>>, log: string): string {
  const proxy = {
    name: "tcp_proxy",
    typed_config: {
      "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
      stat_prefix: "tcp",
      cluster: "echo",
      access_log: [fileAccessLog(log, format)],
    },
  };
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: listeners.map(({ name, filters }) => ({
        name,
        address: loopback(0),
        filter_chains: [{ filters: [...filters, proxy] }],
      })),
      clusters: Object.entries(clusters).map(([name, port]) =>
        staticCluster(name, [port], name === "echo" ? {} : { typed_extension_protocol_options: http2Options }),
      ),
    },
  });
}

before(async () => {
  await new Promise<void>((resolve) => {
    echo.listen(0, "127.0.0.1", resolve);
  });
  const { port } = echo.address() as net.AddressInfo;
  const clusters = {
    echo: port,
    allows: await allows.start(),
    denies: await denies.start(),
    late: await late.start(),
    dead: 1,
  };
  const of = (log: string): string => bootstrap(clusters, log);
  const ours = await startOurs(path.join(folder, "ours.log"), of);
  sides = { ours, envoys: await startEnvoy(folder, listeners.length, of) };
});

after(async () => {
  await sides?.envoys.stop();
  await sides?.ours.stop();
  for (const stage of [allows, denies, late]) stage.close();
  echo.close();
  fs.rmSync(folder, { recursive: true });
});

/** What a client gets that says something and waits for the answer or the end. */
function ask(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1", () => socket.write("hello"));
    socket.on("error", () => undefined);
    socket.once("data", (data) => {
      resolve(data.toString());
      socket.end();
    });
    socket.on("close", () => resolve("closed"));
  });
}

const lines = ({ log }: Side): readonly string[] =>
  fs.existsSync(log) ? fs.readFileSync(log, "utf8").split("\n").slice(0, -1) : [];

for (const { name } of listeners) {
  test(name, async () => {
    const on = async (side: Side): Promise<object> => {
      for (const stage of [allows, denies, late]) stage.asked.length = 0;
      const logged = lines(side).length;
      const answer = await ask(side.ports.get(name)!);
      const line = await waitFor(() => lines(side)[logged], { what: "the access log" });
      const comparable = line.replace(/"ext_authz_duration":\d+/, '"ext_authz_duration":TIME');
      return { answer, line: comparable, asked: [allows, denies, late].map(({ asked }) => [...asked]) };
    };
    assert.deepEqual(await on(sides.ours), await on(sides.envoys));
  });
}

test("the counters are the same", async () => {
  const counted = async (side: Side): Promise<object> => {
    const counters = Object.entries(await countersOf(side, /^ext_authz/)).filter(([, value]) => value > 0);
    // Envoy counts a connection that it does not ask about at its beginning and at its first bytes.
    return Object.fromEntries(counters.map(([name, value]) => [name, name.endsWith("disabled") ? "(some)" : value]));
  };
  assert.deepEqual(await counted(sides.ours), await counted(sides.envoys));
});
