// Active health checks, by this proxy and by a stock Envoy with the same cluster: hosts that turn bad and good again,
// the flags of `/clusters`, the statistics, who gets requests, and what a host is asked.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../../../../../tests/tools/processes.ts";
import { extension, http2Options, loopback, router } from "../../testing/envoy-json.ts";
import { type Side, startEnvoy, startOurs } from "../../testing/parity-pair.ts";

/** What a host does with its checks; with requests all do well, but for `says-no`. */
type Mode =
  | "good"
  | "bad"
  | "retriable"
  | "silent"
  | "resets"
  | "degraded"
  | "excludes"
  | "says-no"
  | "other"
  | "garbled";

interface Step {
  /** Of each host. */
  readonly modes: readonly Mode[];
  /** In `/clusters`, of each host. */
  readonly flags: readonly string[];
  /** Hosts that are asked, by their index. */
  readonly asked: string;
  /** `membership_total` and its like, as they are named. */
  readonly members?: string;
}

interface Row {
  readonly name: string;
  readonly check: object;
  readonly cluster?: object;
  /** Of the cluster's common_lb_config. */
  readonly balancing?: object;
  /** By host. */
  readonly endpoints?: readonly object[];
  readonly hosts: "http" | "http2" | "grpc" | "tcp";
  readonly steps: readonly Step[];
}

const http1 = { http_health_check: { path: "/check" } };
const failed = "/failed_active_hc";
const noPanic = { healthy_panic_threshold: { value: 0 } };
const h2 = { typed_extension_protocol_options: http2Options };
const hex = (text: string): object => ({ text: Buffer.from(text).toString("hex") });

const rows: readonly Row[] = [
  {
    name: "a host turns bad, and good again",
    check: http1,
    hosts: "http",
    steps: [
      {
        modes: ["good", "good"],
        flags: ["healthy", "healthy"],
        asked: "0 1",
        members: "2 healthy 2 degraded 0 excluded 0",
      },
      { modes: ["good", "bad"], flags: ["healthy", failed], asked: "0", members: "2 healthy 1 degraded 0 excluded 0" },
      { modes: ["good", "good"], flags: ["healthy", "healthy"], asked: "0 1" },
    ],
  },
  {
    name: "bad from the first check",
    check: http1,
    hosts: "http",
    steps: [{ modes: ["bad", "good"], flags: [failed, "healthy"], asked: "1" }],
  },
  {
    name: "all bad, and panic asks all",
    check: http1,
    hosts: "http",
    steps: [{ modes: ["bad", "bad"], flags: [failed, failed], asked: "0 1" }],
  },
  {
    name: "all bad without panic",
    check: http1,
    balancing: noPanic,
    hosts: "http",
    steps: [{ modes: ["bad", "bad"], flags: [failed, failed], asked: "503" }],
  },
  {
    name: "a host that does not answer",
    check: { ...http1, timeout: "0.3s" },
    hosts: "http",
    steps: [{ modes: ["good", "silent"], flags: ["healthy", `${failed}/active_hc_timeout`], asked: "0" }],
  },
  {
    name: "connections that break count up to the threshold",
    check: { ...http1, unhealthy_threshold: 3 },
    hosts: "http",
    steps: [
      { modes: ["good", "good"], flags: ["healthy", "healthy"], asked: "0 1" },
      { modes: ["good", "resets"], flags: ["healthy", failed], asked: "0" },
    ],
  },
  {
    name: "statuses that are expected, and that may be tried again",
    check: {
      http_health_check: {
        path: "/check",
        expected_statuses: [{ start: 404, end: 405 }],
        retriable_statuses: [{ start: 429, end: 430 }],
      },
      unhealthy_threshold: 2,
    },
    hosts: "http",
    steps: [
      { modes: ["other", "good"], flags: ["healthy", failed], asked: "0" },
      { modes: ["retriable", "other"], flags: [failed, "healthy"], asked: "1" },
    ],
  },
  {
    name: "a degraded host takes what healthy ones lack",
    check: http1,
    balancing: noPanic,
    hosts: "http",
    steps: [
      {
        modes: ["good", "degraded"],
        flags: ["healthy", "/degraded_active_hc"],
        asked: "0 1",
        members: "2 healthy 1 degraded 1 excluded 0",
      },
      { modes: ["bad", "degraded"], flags: [failed, "/degraded_active_hc"], asked: "1" },
      { modes: ["good", "good"], flags: ["healthy", "healthy"], asked: "0 1" },
    ],
  },
  {
    name: "a check's answer that excludes its host",
    check: http1,
    balancing: noPanic,
    hosts: "http",
    steps: [
      { modes: ["good", "good"], flags: ["healthy", "healthy"], asked: "0 1" },
      {
        modes: ["good", "excludes"],
        flags: ["healthy", `${failed}/excluded_via_immediate_hc_fail`],
        asked: "0",
        members: "2 healthy 1 degraded 0 excluded 1",
      },
      {
        modes: ["good", "good"],
        flags: ["healthy", "healthy"],
        asked: "0 1",
        members: "2 healthy 2 degraded 0 excluded 0",
      },
    ],
  },
  {
    name: "what the body must hold, in order",
    check: { http_health_check: { path: "/check", receive: [hex("al"), hex("well")] } },
    hosts: "http",
    steps: [{ modes: ["good", "garbled"], flags: ["healthy", failed], asked: "0" }],
  },
  {
    name: "a body, a method, and the service's name",
    check: {
      http_health_check: {
        path: "/check",
        method: "POST",
        send: hex("are you well?"),
        service_name_matcher: { prefix: "shop" },
      },
    },
    hosts: "http",
    steps: [{ modes: ["good", "garbled"], flags: ["healthy", failed], asked: "0" }],
  },
  {
    name: "hosts and headers",
    check: {
      http_health_check: {
        path: "/check?deep",
        host: "check.test",
        request_headers_to_add: [{ header: { key: "x-who", value: "%UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%" } }],
        request_headers_to_remove: ["user-agent"],
      },
    },
    endpoints: [{}, { hostname: "own.test" }],
    hosts: "http",
    steps: [{ modes: ["good", "good"], flags: ["healthy", "healthy"], asked: "0 1" }],
  },
  {
    name: "a host that is not to be checked",
    check: http1,
    endpoints: [{}, { disable_active_health_check: true }],
    hosts: "http",
    steps: [{ modes: ["good", "bad"], flags: ["healthy", "healthy"], asked: "0 1" }],
  },
  {
    name: "a new connection for each check",
    check: { ...http1, reuse_connection: false },
    hosts: "http",
    steps: [
      { modes: ["good", "bad"], flags: ["healthy", failed], asked: "0" },
      { modes: ["good", "good"], flags: ["healthy", "healthy"], asked: "0 1" },
    ],
  },
  {
    name: "a host that says no to a request fails at once, until a check finds it well",
    check: { ...http1, no_traffic_interval: "3600s", interval: "3600s" },
    balancing: noPanic,
    hosts: "http",
    steps: [
      { modes: ["good", "says-no"], flags: ["healthy", "healthy"], asked: "0 1" },
      {
        modes: ["good", "good"],
        flags: ["healthy", `${failed}/excluded_via_immediate_hc_fail`],
        asked: "0",
        members: "2 healthy 1 degraded 0 excluded 1",
      },
    ],
  },
  {
    name: "HTTP/2",
    check: { http_health_check: { path: "/check", codec_client_type: "HTTP2" } },
    cluster: h2,
    hosts: "http2",
    steps: [
      { modes: ["good", "bad"], flags: ["healthy", failed], asked: "0" },
      { modes: ["resets", "good"], flags: [failed, "healthy"], asked: "1" },
      { modes: ["good", "good"], flags: ["healthy", "healthy"], asked: "0 1" },
    ],
  },
  {
    name: "gRPC",
    check: {
      grpc_health_check: {
        service_name: "shop.Catalog",
        authority: "grpc.test",
        initial_metadata: [{ header: { key: "x-who", value: "checker" } }],
      },
    },
    cluster: h2,
    hosts: "grpc",
    steps: [
      { modes: ["good", "bad"], flags: ["healthy", failed], asked: "0" },
      { modes: ["other", "good"], flags: [failed, "healthy"], asked: "1" },
      { modes: ["good", "resets"], flags: ["healthy", failed], asked: "0" },
    ],
  },
  {
    name: "TCP: that it can be connected to",
    check: { tcp_health_check: {} },
    hosts: "tcp",
    steps: [{ modes: ["good", "silent"], flags: ["healthy", "healthy"], asked: "" }],
  },
  {
    name: "TCP: what it answers",
    check: { tcp_health_check: { send: hex("ping"), receive: [hex("po"), hex("g")] }, timeout: "0.5s" },
    hosts: "tcp",
    steps: [
      { modes: ["good", "silent"], flags: ["healthy", `${failed}/active_hc_timeout`], asked: "" },
      { modes: ["resets", "good"], flags: [failed, "healthy"], asked: "" },
    ],
  },
];

/** A host of a row, as one of the two proxies sees it. */
interface CheckedHost {
  readonly port: number;
  mode: Mode;
  /** The first check's head, sorted. */
  asked: string | undefined;
  close(): void;
}

interface Seen {
  readonly side: Side;
  /** By row. */
  readonly hosts: readonly (readonly CheckedHost[])[];
}

describe("health checks", { concurrency: 4 }, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-health-"));
  const sides = new Map<"ours" | "envoy", Seen>();

  before(async () => {
    for (const name of ["ours", "envoy"] as const) {
      const hosts = await Promise.all(
        rows.map(({ hosts: kind, steps }) =>
          Promise.all(steps[0]!.modes.map((mode, index) => startHost(kind, mode, index))),
        ),
      );
      const bootstrap = (): string => JSON.stringify(bootstrapFor(hosts));
      const side = name === "ours" ? await startOurs("", bootstrap) : await startEnvoy(folder, rows.length, bootstrap);
      sides.set(name, { side, hosts });
    }
  });

  after(async () => {
    for (const { side, hosts } of sides.values()) {
      await side.stop();
      for (const host of hosts.flat()) host.close();
    }
    fs.rmSync(folder, { recursive: true });
  });

  for (const [index, { name, steps, hosts: kind }] of rows.entries()) {
    test(name, async () => {
      for (const { modes, flags, asked, members } of steps) {
        for (const { side, hosts } of sides.values()) {
          for (const [place, host] of hosts[index]!.entries()) host.mode = modes[place]!;
          // A worker of Envoy hears of it later than the page.
          const isAsExpected = async (): Promise<true> => {
            assert.deepEqual(await flagsOf(side, index), flags);
            if (kind !== "tcp") assert.equal(await askedHosts(side, index, asked), asked);
            return true;
          };
          await waitFor(isAsExpected, { what: `flags ${flags.join(" ")}, and requests to ${asked}` });
          if (members !== undefined) assert.equal(await membersOf(side, index), members);
        }
      }
      const [ours, envoys] = [...sides.values()].map(({ hosts }) => hosts[index]!.map((host) => host.asked));
      assert.deepEqual(ours, envoys);
    });
  }
});

function bootstrapFor(hosts: readonly (readonly CheckedHost[])[]): object {
  const clusters = rows.map(({ check, cluster, balancing, endpoints }, index) => ({
    name: `c${index}`,
    type: "STATIC",
    load_assignment: {
      cluster_name: `c${index}`,
      endpoints: [
        {
          lb_endpoints: hosts[index]!.map(({ port }, place) => ({
            endpoint: { address: loopback(port), health_check_config: endpoints?.[place] ?? {} },
          })),
        },
      ],
    },
    health_checks: [
      {
        timeout: "10s",
        interval: "0.25s",
        no_traffic_interval: "0.25s",
        unhealthy_threshold: 1,
        healthy_threshold: 1,
        ...check,
      },
    ],
    // Envoy would gather changes for a second.
    common_lb_config: { update_merge_window: "0s", ...balancing },
    ...cluster,
  }));
  return {
    admin: { address: loopback(0) },
    static_resources: { clusters, listeners: rows.map((_, i) => listener(i)) },
  };
}

function listener(index: number): object {
  return {
    name: `l${index}`,
    address: loopback(0),
    filter_chains: [
      {
        filters: [
          {
            name: "hcm",
            typed_config: {
              "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
              stat_prefix: `l${index}`,
              route_config: {
                virtual_hosts: [
                  {
                    name: "all",
                    domains: ["*"],
                    routes: [{ match: { prefix: "/" }, route: { cluster: `c${index}` } }],
                  },
                ],
              },
              http_filters: [router],
            },
          },
        ],
      },
    ],
  };
}

async function startHost(kind: Row["hosts"], mode: Mode, index: number): Promise<CheckedHost> {
  const host = { port: 0, mode, asked: undefined as string | undefined, close: () => undefined as void };
  const sockets = new Set<net.Socket>();
  const server =
    kind === "tcp" ? net.createServer((socket) => answerBytes(socket, host)) : requestServer(kind, host, index);
  server.on("connection", (socket: net.Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  host.port = (server.address() as net.AddressInfo).port;
  host.close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return host;
}

function answerBytes(socket: net.Socket, host: CheckedHost): void {
  socket.on("data", (bytes) => {
    host.asked ??= bytes.toString();
    if (host.mode === "good") socket.write("pong");
    else if (host.mode === "resets") socket.destroy();
  });
}

type Request = http.IncomingMessage | http2.Http2ServerRequest;
type Response = http.ServerResponse | http2.Http2ServerResponse;

function requestServer(kind: Row["hosts"], host: CheckedHost, index: number): net.Server {
  const answer = async (request: Request, response: Response): Promise<void> => {
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const isCheck = request.url!.startsWith("/check") || request.url!.startsWith("/grpc.health");
    if (!isCheck) {
      if (host.mode === "says-no") response.setHeader("x-envoy-immediate-health-check-fail", "true");
      response.end(String(index));
      return;
    }
    const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${String(value)}`);
    host.asked ??= [request.method, request.url, ...headers.sort(), Buffer.concat(chunks).toString("hex")].join("\n");
    if (host.mode === "resets") request.socket.destroy();
    else if (kind === "grpc") answerCall(response as http2.Http2ServerResponse, host.mode);
    else answerCheck(response as http.ServerResponse, host.mode);
  };
  return kind === "http" ? http.createServer(answer) : http2.createServer(answer as never);
}

const statuses: Partial<Record<Mode, number>> = { bad: 503, excludes: 503, other: 404, retriable: 429 };

function answerCheck(response: http.ServerResponse, mode: Mode): void {
  if (mode === "silent") return;
  response.statusCode = statuses[mode] ?? 200;
  response.setHeader("x-envoy-upstream-healthchecked-cluster", mode === "garbled" ? "other" : "shop-1");
  if (mode === "degraded") response.setHeader("x-envoy-degraded", "1");
  if (mode === "excludes") response.setHeader("x-envoy-immediate-health-check-fail", "true");
  response.end(mode === "garbled" ? "well, all" : "all is well");
}

function answerCall(response: http2.Http2ServerResponse, mode: Mode): void {
  response.setHeader("content-type", "application/grpc");
  if (mode === "other") {
    response.setHeader("grpc-status", "12");
    response.end();
    return;
  }
  response.write(Buffer.from([0, 0, 0, 0, 2, 8, mode === "good" ? 1 : 2]));
  response.addTrailers({ "grpc-status": "0" });
  response.end();
}

function get(port: number, target: string, host: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: "127.0.0.1", port, path: target, headers: { host } }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.on("error", reject).end();
  });
}

async function flagsOf({ adminPort }: Side, index: number): Promise<string[]> {
  const { body } = await get(adminPort, `/clusters?filter=^c${index}$`, "127.0.0.1");
  return [...body.matchAll(/::health_flags::(.*)/g)].map((match) => match[1]!);
}

/** Enough requests that nobody is left out by chance, and a dozen more than needed. */
async function askedHosts(side: Side, index: number, expected: string): Promise<string> {
  const seen = new Set<string>();
  for (let requests = 0; requests < 60; requests += 1) {
    if (requests >= 12 && [...seen].sort().join(" ") === expected) break;
    const { status, body } = await get(side.ports.get(`l${index}`)!, "/", "main.test");
    seen.add(status === 200 ? body : String(status));
  }
  return [...seen].sort().join(" ");
}

async function membersOf({ adminPort }: Side, index: number): Promise<string> {
  const { body } = await get(adminPort, `/stats?filter=^cluster.c${index}.membership_`, "127.0.0.1");
  const values = new Map([...body.matchAll(/membership_(\w+): (\d+)/g)].map((match) => [match[1]!, match[2]!]));
  return `${values.get("total")} healthy ${values.get("healthy")} degraded ${values.get("degraded")} excluded ${values.get("excluded")}`;
}
