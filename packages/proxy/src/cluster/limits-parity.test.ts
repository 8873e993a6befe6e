// Outlier detection and circuit breakers: the same scenarios through this proxy and through a stock Envoy, with clients
// of HTTP/1.1 and of HTTP/2. Each scenario has a cluster of its own in front of hosts that answer as it says; what
// clients got, what each host saw, flags and counters are compared with one another and with what is expected.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { exchangeStream, type HttpVersion, versions } from "../../../../tests/tools/http2-client.ts";
import { freePort, waitFor } from "../../../../tests/tools/processes.ts";
import { countersOf, type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";
import { extension, fileAccessLog, loopback, router, staticCluster } from "../testing/envoy-json.ts";

/**
 * A status that a host always answers, `hang` for an answer that waits to be let go, `refuse` for nobody at the port.
 */
type Behaviour = number | "hang" | "refuse";

interface Outcome {
  /** How often each came, `200` or `503 UO` (flags of the access log). */
  readonly answers: Readonly<Record<string, number>>;
  /** Requests that each host saw. */
  readonly hosts: readonly number[];
  /** Counters of the cluster that are not 0, of those compared. */
  readonly counters: Readonly<Record<string, number>>;
}

interface Scenario {
  readonly name: string;
  readonly hosts: readonly Behaviour[];
  readonly cluster: object;
  readonly route?: object;
  /**
   * One after the other; or so many that hang at the host, then so many that wait for a connection, then the refused
   * ones.
   */
  readonly requests:
    | { readonly inTurn: number }
    | { readonly held: number; readonly waiting: number; readonly refused: number };
  /** A second run after all ejected hosts are back. */
  readonly repeatsAfterReturn?: boolean;
  readonly expected: Outcome;
}

/** By default Envoy keeps back what follows a change of health within a second. */
const atOnce = { update_merge_window: "0s" };
const outlier = (config: object, more: object = {}): object => ({
  outlier_detection: {
    consecutive_5xx: 5,
    max_ejection_percent: 100,
    enforcing_success_rate: 0,
    interval: "60s",
    ...config,
  },
  common_lb_config: { ...atOnce, healthy_panic_threshold: { value: 0 } },
  ...more,
});
const breakers = (limits: object): object => ({ circuit_breakers: { thresholds: [{ ...limits }] } });
const retries = (retry_on: string, num_retries: number, more: object = {}): object => ({
  retry_policy: { retry_on, num_retries, retry_back_off: { base_interval: "0.001s", max_interval: "0.002s" }, ...more },
});
const connectionOptions = (common_http_protocol_options: object): object => ({
  typed_extension_protocol_options: {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
      common_http_protocol_options,
      explicit_http_config: { http_protocol_options: {} },
    },
  },
});

const scenarios: readonly Scenario[] = [
  {
    name: "a host that answers 500 is left out after five",
    hosts: [200, 500, 200],
    cluster: outlier({}),
    requests: { inTurn: 60 },
    expected: {
      answers: { "200 -": 55, "500 -": 5 },
      hosts: [28, 5, 27],
      counters: { detected_consecutive_5xx: 1, enforced_consecutive_5xx: 1, enforced_total: 1 },
    },
  },
  {
    name: "gateway failures where they are enforced",
    hosts: [200, 502],
    cluster: outlier({
      consecutive_5xx: 99,
      consecutive_gateway_failure: 2,
      enforcing_consecutive_gateway_failure: 100,
    }),
    requests: { inTurn: 20 },
    expected: {
      answers: { "200 -": 18, "502 -": 2 },
      hosts: [18, 2],
      counters: { detected_consecutive_gateway_failure: 1, enforced_consecutive_gateway_failure: 1, enforced_total: 1 },
    },
  },
  {
    name: "detected and not enforced",
    hosts: [200, 500],
    cluster: outlier({ enforcing_consecutive_5xx: 0 }),
    requests: { inTurn: 20 },
    expected: { answers: { "200 -": 10, "500 -": 10 }, hosts: [10, 10], counters: { detected_consecutive_5xx: 2 } },
  },
  {
    name: "a refused connection counts as 503",
    hosts: [200, "refuse"],
    cluster: outlier({ consecutive_5xx: 3 }),
    requests: { inTurn: 20 },
    expected: {
      answers: { "200 -": 17, "503 UF": 3 },
      hosts: [17, 0],
      counters: { detected_consecutive_5xx: 1, enforced_consecutive_5xx: 1, enforced_total: 1 },
    },
  },
  {
    name: "or as a failure of our own where the two are split",
    hosts: [200, "refuse"],
    cluster: outlier({
      consecutive_5xx: 2,
      split_external_local_origin_errors: true,
      consecutive_local_origin_failure: 4,
      enforcing_local_origin_success_rate: 0,
    }),
    requests: { inTurn: 20 },
    expected: {
      answers: { "200 -": 16, "503 UF": 4 },
      hosts: [16, 0],
      counters: {
        detected_consecutive_local_origin_failure: 1,
        enforced_consecutive_local_origin_failure: 1,
        enforced_total: 1,
      },
    },
  },
  {
    name: "no more than a share of the hosts",
    hosts: [500, 500, 500],
    cluster: outlier({ consecutive_5xx: 2, max_ejection_percent: 40 }),
    requests: { inTurn: 12 },
    expected: {
      answers: { "500 -": 12 },
      hosts: [2, 5, 5],
      counters: { detected_consecutive_5xx: 5, enforced_consecutive_5xx: 1, enforced_total: 1, overflow: 4 },
    },
  },
  {
    name: "a tenth of two hosts is none",
    hosts: [200, 500],
    cluster: outlier({ consecutive_5xx: 1, max_ejection_percent: 10 }),
    requests: { inTurn: 10 },
    expected: {
      answers: { "200 -": 5, "500 -": 5 },
      hosts: [5, 5],
      counters: { detected_consecutive_5xx: 5, overflow: 5 },
    },
  },
  {
    name: "but one where one is always allowed",
    hosts: [200, 500],
    cluster: outlier({ consecutive_5xx: 1, max_ejection_percent: 10, always_eject_one_host: true }),
    requests: { inTurn: 10 },
    expected: {
      answers: { "200 -": 9, "500 -": 1 },
      hosts: [9, 1],
      counters: { detected_consecutive_5xx: 1, enforced_consecutive_5xx: 1, enforced_total: 1 },
    },
  },
  {
    name: "all are out: nobody is left",
    hosts: [500, 500],
    cluster: outlier({ consecutive_5xx: 1 }),
    requests: { inTurn: 6 },
    expected: {
      answers: { "500 -": 2, "503 UH": 4 },
      hosts: [1, 1],
      counters: { detected_consecutive_5xx: 2, enforced_consecutive_5xx: 2, enforced_total: 2 },
    },
  },
  {
    name: "all are out: in panic all are used",
    hosts: [500, 500],
    cluster: outlier(
      { consecutive_5xx: 1 },
      { common_lb_config: { ...atOnce, healthy_panic_threshold: { value: 50 } } },
    ),
    requests: { inTurn: 6 },
    expected: {
      answers: { "500 -": 6 },
      hosts: [3, 3],
      counters: { detected_consecutive_5xx: 2, enforced_consecutive_5xx: 2, enforced_total: 2 },
    },
  },
  {
    name: "a host comes back",
    hosts: [200, 500],
    // Longer than the four requests take, on a busy machine too.
    cluster: outlier({ consecutive_5xx: 1, interval: "0.1s", base_ejection_time: "4s" }),
    requests: { inTurn: 4 },
    repeatsAfterReturn: true,
    expected: {
      answers: { "200 -": 6, "500 -": 2 },
      hosts: [6, 2],
      counters: { detected_consecutive_5xx: 2, enforced_consecutive_5xx: 2, enforced_total: 2 },
    },
  },
  {
    name: "a try that takes too long counts as 504",
    hosts: [200, "hang"],
    cluster: outlier({
      consecutive_5xx: 99,
      consecutive_gateway_failure: 2,
      enforcing_consecutive_gateway_failure: 100,
    }),
    // Long enough for those who answer, on a busy machine too.
    route: { timeout: "1s" },
    requests: { inTurn: 10 },
    expected: {
      answers: { "200 -": 8, "504 UT": 2 },
      hosts: [8, 2],
      counters: { detected_consecutive_gateway_failure: 1, enforced_consecutive_gateway_failure: 1, enforced_total: 1 },
    },
  },
  {
    name: "requests beyond max_requests are refused",
    hosts: ["hang"],
    cluster: breakers({ max_requests: 2 }),
    requests: { held: 2, waiting: 0, refused: 4 },
    expected: { answers: { "200 -": 2, "503 UO": 4 }, hosts: [2], counters: { upstream_rq_active_overflow: 4 } },
  },
  {
    name: "one connection, one request that waits",
    hosts: ["hang"],
    cluster: breakers({ max_connections: 1, max_pending_requests: 1 }),
    requests: { held: 1, waiting: 1, refused: 3 },
    expected: { answers: { "200 -": 2, "503 UO": 3 }, hosts: [2], counters: { upstream_rq_pending_overflow: 3 } },
  },
  {
    name: "no retries where none are allowed",
    hosts: [503],
    cluster: breakers({ max_retries: 0 }),
    route: retries("5xx", 2),
    requests: { inTurn: 3 },
    expected: { answers: { "503 UO": 3 }, hosts: [3], counters: { upstream_rq_retry_overflow: 3 } },
  },
  {
    name: "nor after a refused connection",
    hosts: ["refuse"],
    cluster: breakers({ max_retries: 0 }),
    route: retries("5xx", 2),
    requests: { inTurn: 3 },
    expected: { answers: { "503 UO,UF": 3 }, hosts: [0], counters: { upstream_rq_retry_overflow: 3 } },
  },
  {
    name: "nor after a try that took too long",
    hosts: ["hang"],
    cluster: breakers({ max_retries: 0 }),
    route: retries("5xx", 2, { per_try_timeout: "0.05s" }),
    requests: { inTurn: 2 },
    expected: { answers: { "504 UO,UT": 2 }, hosts: [2], counters: { upstream_rq_retry_overflow: 2 } },
  },
  {
    name: "nor after the end of a stream's life",
    hosts: ["hang"],
    cluster: { ...breakers({ max_retries: 0 }), ...connectionOptions({ max_stream_duration: "0.05s" }) },
    route: retries("5xx", 2),
    requests: { inTurn: 2 },
    expected: { answers: { "504 UO,UMSDR": 2 }, hosts: [2], counters: { upstream_rq_retry_overflow: 2 } },
  },
  {
    name: "retries that are used up at the end of a stream's life",
    hosts: ["hang"],
    cluster: connectionOptions({ max_stream_duration: "0.05s" }),
    route: retries("5xx", 1),
    requests: { inTurn: 2 },
    expected: { answers: { "504 URX,UMSDR": 2 }, hosts: [4], counters: { upstream_rq_retry_limit_exceeded: 2 } },
  },
  {
    name: "a retry budget allows its least",
    hosts: [503],
    cluster: breakers({ retry_budget: { budget_percent: { value: 0 }, min_retry_concurrency: 1 } }),
    route: retries("5xx", 2),
    requests: { inTurn: 3 },
    expected: {
      answers: { "503 URX": 3 },
      hosts: [9],
      counters: { upstream_rq_retry: 6, upstream_rq_retry_limit_exceeded: 3 },
    },
  },
  {
    name: "a retry budget of nothing",
    hosts: [503],
    cluster: breakers({ retry_budget: { budget_percent: { value: 0 }, min_retry_concurrency: 0 } }),
    route: retries("5xx", 2),
    requests: { inTurn: 3 },
    expected: { answers: { "503 UO": 3 }, hosts: [3], counters: { upstream_rq_retry_overflow: 3 } },
  },
  {
    name: "a new connection for every two requests",
    hosts: [200],
    cluster: connectionOptions({ max_requests_per_connection: 2 }),
    requests: { inTurn: 6 },
    expected: { answers: { "200 -": 6 }, hosts: [6], counters: { upstream_cx_total: 3 } },
  },
];

const counterNames = new Map([
  ...["consecutive_5xx", "consecutive_gateway_failure", "consecutive_local_origin_failure"].flatMap((cause) =>
    ["detected", "enforced"].map((what): [string, string] => [
      `outlier_detection.ejections_${what}_${cause}`,
      `${what}_${cause}`,
    ]),
  ),
  ["outlier_detection.ejections_enforced_total", "enforced_total"],
  ["outlier_detection.ejections_overflow", "overflow"],
  ...[
    "upstream_rq_pending_overflow",
    "upstream_rq_active_overflow",
    "upstream_rq_retry_overflow",
    "upstream_rq_retry_limit_exceeded",
  ].map((name): [string, string] => [name, name]),
]);
/** Compared only where the scenario names them: every request counts in them. */
const furtherNames = ["upstream_rq_retry", "upstream_cx_total"];

/** The hosts of one scenario as one of the two proxies sees them. */
class Hosts {
  readonly seen: number[] = [];
  readonly ports: number[] = [];
  readonly #servers: http.Server[] = [];
  readonly #held: http.ServerResponse[] = [];
  #isLettingGo = false;

  static async start(behaviours: readonly Behaviour[]): Promise<Hosts> {
    const hosts = new Hosts();
    for (const [index, behaviour] of behaviours.entries()) await hosts.#startOne(index, behaviour);
    return hosts;
  }

  async #startOne(index: number, behaviour: Behaviour): Promise<void> {
    this.seen.push(0);
    if (behaviour === "refuse") {
      // Nobody listens there, and no test is given it for a server of its own.
      this.ports.push(await freePort());
      return;
    }
    const server = http.createServer((_request, response) => {
      this.seen[index]! += 1;
      if (typeof behaviour === "number") response.writeHead(behaviour).end();
      else if (this.#isLettingGo) response.end();
      else this.#held.push(response);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    this.ports.push((server.address() as net.AddressInfo).port);
    this.#servers.push(server);
  }

  letGo(): void {
    this.#isLettingGo = true;
    for (const response of this.#held.splice(0)) response.end();
  }

  close(): void {
    for (const server of this.#servers) server.close().closeAllConnections();
  }
}

/** Two clusters under one name in the statistics, with a place for one request each. */
const sharing: readonly Pick<Scenario, "hosts" | "cluster" | "route">[] = [
  { hosts: ["hang"], cluster: { alt_stat_name: "shared", ...breakers({ max_requests: 1 }) } },
  { hosts: [200], cluster: { alt_stat_name: "shared", ...breakers({ max_requests: 1 }) } },
];
/** Each has a listener and a cluster of its own. */
const cases = versions.flatMap((version) => scenarios.map((scenario) => ({ ...scenario, version })));
const all = [...cases, ...sharing];

function bootstrap(logPath: string, hosts: readonly Hosts[]): string {
  const logOf = (index: number): object => fileAccessLog(logPath, `${index} %RESPONSE_CODE% %RESPONSE_FLAGS%\n`);
  const manager = (index: number): object => ({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: `s${index}`,
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: `s${index}`, timeout: "0s", ...all[index]!.route } }],
        },
      ],
    },
    http_filters: [router],
    access_log: [logOf(index)],
  });
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: all.map((_each, index) => ({
        name: `s${index}`,
        address: loopback(0),
        filter_chains: [
          { filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager(index) }] },
        ],
      })),
      clusters: all.map(({ cluster }, index) =>
        staticCluster(`s${index}`, hosts[index]!.ports, { lb_policy: "ROUND_ROBIN", ...cluster }),
      ),
    },
  });
}

const clients: Readonly<Record<HttpVersion, (port: number) => Promise<number>>> = {
  "HTTP/1.1": request,
  async "HTTP/2"(port) {
    const headers = { ":method": "GET", ":scheme": "http", ":authority": "a", ":path": "/" };
    const answer = await exchangeStream(net.connect(port, "127.0.0.1"), "connect", { headers, body: [] });
    return answer?.status ?? 0;
  },
};

function request(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = http.get({ host: "127.0.0.1", port, agent: false, headers: { host: "a" } }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode!));
    });
    sent.once("error", reject);
  });
}

function logged(file: string, index: number): string[] {
  const text = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
  const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return lines.filter((line) => line.startsWith(`${index} `)).map((line) => line.slice(line.indexOf(" ") + 1));
}

async function play(index: number, side: Side, hosts: Hosts): Promise<Outcome> {
  const { requests, repeatsAfterReturn = false, expected, version } = cases[index]!;
  const port = side.ports.get(`s${index}`)!;
  const ask = clients[version];
  let count = 0;
  const inTurn = async (times: number): Promise<void> => {
    for (let turn = 0; turn < times; turn += 1) {
      await ask(port);
      // Envoy ejects on its main thread, which has done so once it has answered this.
      await gaugeOf(side, index, "outlier_detection.ejections_active");
    }
    count += times;
  };
  if ("inTurn" in requests) {
    await inTurn(requests.inTurn);
    if (repeatsAfterReturn) {
      await waitFor(async () => (await gaugeOf(side, index, "outlier_detection.ejections_active")) === 0, {
        what: "ejected hosts to be back",
      });
      await inTurn(requests.inTurn);
    }
  } else {
    const { held, waiting, refused } = requests;
    count = held + waiting + refused;
    const answers: Promise<number>[] = [];
    for (let number = 1; number <= held; number += 1) {
      answers.push(ask(port));
      await waitFor(() => hosts.seen[0] === number, { what: "a request at the host" });
    }
    for (let number = 1; number <= waiting; number += 1) {
      answers.push(ask(port));
      const gauge = "upstream_rq_pending_active";
      await waitFor(async () => (await gaugeOf(side, index, gauge)) === number, { what: "a request that waits" });
    }
    for (let number = 1; number <= refused; number += 1) answers.push(ask(port));
    const refusals = await Promise.all(answers.slice(held + waiting));
    assert.deepEqual(
      refusals,
      Array.from({ length: refused }, () => 503),
    );
    hosts.letGo();
    await Promise.all(answers);
  }
  const lines = await waitFor(
    () => {
      const read = logged(side.log, index);
      return read.length === count && read;
    },
    { what: "the access log" },
  );
  const values = await countersOf(side, new RegExp(`^cluster\\.s${index}\\.`));
  const names = [
    ...counterNames,
    ...furtherNames.filter((name) => name in expected.counters).map((n) => [n, n] as const),
  ];
  const counters = names.map(([stat, name]) => [name, values[`cluster.s${index}.${stat}`] ?? 0] as const);
  return {
    answers: countBy(lines),
    hosts: hosts.seen,
    counters: Object.fromEntries(counters.filter(([, value]) => value > 0)),
  };
}

async function gaugeOf(side: Side, index: number, name: string): Promise<number | undefined> {
  const page = await new Promise<string>((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port: side.adminPort,
      path: `/stats?type=Gauges&filter=${encodeURIComponent(`^cluster\\.s${index}\\.${name}$`)}`,
      headers: { host: "127.0.0.1" },
    };
    http
      .get(options, (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
        response.once("end", () => resolve(body));
      })
      .once("error", reject);
  });
  const line = page.split("\n").find((each) => each.startsWith(`cluster.s${index}.${name}: `));
  return line === undefined ? undefined : Number(line.split(": ")[1]);
}

function countBy(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values.toSorted()) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

/**
 * Which host has the first turn is each proxy's own choice: good hosts are told from bad ones, not from one another.
 */
function comparable(outcome: Outcome, behaviours: readonly Behaviour[]): Outcome {
  const perBehaviour = new Map<Behaviour, number[]>();
  for (const [index, behaviour] of behaviours.entries()) {
    const list = perBehaviour.get(behaviour);
    if (list === undefined) perBehaviour.set(behaviour, [outcome.hosts[index]!]);
    else list.push(outcome.hosts[index]!);
  }
  return { ...outcome, hosts: [...perBehaviour.values()].flatMap((list) => list.toSorted((a, b) => a - b)) };
}

describe("limits of a cluster, on both proxies", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-limits-"));
  const sides: { name: string; side: Side; hosts: readonly Hosts[] }[] = [];
  before(async () => {
    for (const name of ["ours", "envoy"] as const) {
      const hosts = await Promise.all(all.map((each) => Hosts.start(each.hosts)));
      const make = (log: string): string => bootstrap(log, hosts);
      const side =
        name === "ours"
          ? await startOurs(path.join(folder, "ours.log"), make)
          : await startEnvoy(folder, all.length, make);
      sides.push({ name, side, hosts });
    }
  });
  after(async () => {
    for (const { side, hosts } of sides) {
      await side.stop();
      for (const each of hosts) each.close();
    }
    fs.rmSync(folder, { recursive: true });
  });

  for (const [index, scenario] of cases.entries()) {
    test(`${scenario.name}, ${scenario.version}`, async () => {
      for (const { name, side, hosts } of sides) {
        const outcome = await play(index, side, hosts[index]!);
        assert.deepEqual(
          { name, ...comparable(outcome, scenario.hosts) },
          { name, ...comparable(scenario.expected, scenario.hosts) },
        );
      }
    });
  }

  test("clusters that share their statistics have limits of their own", async () => {
    for (const { name, side, hosts } of sides) {
      const [heldHosts] = hosts.slice(cases.length);
      const held = request(side.ports.get(`s${cases.length}`)!);
      await waitFor(() => heldHosts!.seen[0] === 1, { what: "a request at the host" });
      assert.equal(await request(side.ports.get(`s${cases.length + 1}`)!), 200, name);
      heldHosts!.letGo();
      assert.equal(await held, 200);
    }
  });
});
