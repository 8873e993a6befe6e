// When hosts are checked, what results make of them, and when a cluster is warm; on a clock that the tests move.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { compileHealthCheck } from "../../compile/compile-health-check.ts";
import { Place, Problems } from "../../fields/problems.ts";
import { fromConfiguration } from "../../testing/from-configuration.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { DataPath } from "../../worker/data-path.ts";
import { type Cluster, Host } from "../cluster.ts";
import { makeClusterStats } from "../cluster-stats.ts";
import { ActiveHealth, healthFlags } from "../host-health.ts";
import { CheckQueue } from "./check-queue.ts";
import { HealthCheckEvents } from "./health-check-events.ts";
import { makeHealthCheckStats } from "./health-check-stats.ts";
import { HealthChecker } from "./health-checker.ts";
import { activeFailure, type CheckResult, networkFailure, type Probe, success } from "./probe.ts";

class FakeProbe implements Probe {
  begun = 0;
  isClosed = false;
  readonly #onResult: (result: CheckResult) => void;

  constructor(onResult: (result: CheckResult) => void) {
    this.#onResult = onResult;
  }

  begin(): void {
    this.begun += 1;
  }

  giveUp(): void {
    // The session says it.
  }

  close(): void {
    this.isClosed = true;
  }

  /** What the check that is under way comes to. */
  end(result: CheckResult): void {
    this.#onResult(result);
  }
}

interface StageOptions {
  readonly check?: object;
  readonly hosts?: number;
  readonly maxUnderWay?: number;
  readonly isPending?: boolean;
  readonly random?: number;
}

function stage({ check = {}, hosts: count = 1, maxUnderWay = 10, isPending = false, random = 0.5 }: StageOptions = {}) {
  const message = fromConfiguration(ClusterSchema, {
    health_checks: [
      {
        timeout: "5s",
        interval: "10s",
        unhealthy_threshold: 3,
        healthy_threshold: 2,
        tcp_health_check: {},
        ...check,
      },
    ],
  });
  const problems = new Problems();
  const build = { environment: { environment: {}, hostname: "h" }, protocol: "HTTP/1.1", problems } as const;
  const settings = compileHealthCheck(message, build, Place.root)!;
  assert.equal(problems.hasErrors, false);
  const clock = new ManualClock();
  const logging = new Logging({ sink: () => {} });
  const metrics = new MetricRegistry();
  const stats = makeHealthCheckStats(metrics, "c");
  const clusterStats = makeClusterStats(metrics, "c");
  clusterStats.upstreamConnectionsTotal.increment();
  const hosts = Array.from({ length: count }, (_, index) => {
    const host = new Host({ type: "ip", ip: "127.0.0.1", port: index + 1 }, "", 1, {}, true);
    host.activeHealth = new ActiveHealth(isPending);
    return host;
  });
  const lines: string[] = [];
  const probes = new Map<Host, FakeProbe>();
  const changes: Host[] = [];
  const checker = new HealthChecker({ name: "c", hosts, stats: clusterStats } as unknown as Cluster, {
    settings,
    stats,
    events: new HealthCheckEvents({
      clusterName: "c",
      checkerType: "TCP",
      clock,
      log: logging.logger("hc"),
      file: { write: (line) => lines.push(line) },
    }),
    clock,
    random: () => random,
    makeProbe: ({ host }, onResult) => {
      const probe = new FakeProbe(onResult);
      probes.set(host, probe);
      return probe;
    },
    onChange: (host) => changes.push(host),
    onSuccess: () => undefined,
  });
  let warm = 0;
  const queue = new CheckQueue(new DataPath({ logging, clock }), maxUnderWay);
  const start = (): void => checker.start(queue, () => (warm += 1));
  const begun = (): number[] => hosts.map((host) => probes.get(host)?.begun ?? 0);
  const end = (result: CheckResult, index = 0): void => probes.get(hosts[index]!)!.end(result);
  const flags = (index = 0): string => healthFlags(hosts[index]!).join(" ");
  return {
    checker,
    clock,
    stats,
    clusterStats,
    hosts,
    lines,
    probes,
    changes,
    start,
    begun,
    end,
    flags,
    warm: () => warm,
  };
}

/** `+` and `-` are results of checks, `~` a failure of the network; each row's last flags. */
const thresholds: readonly { readonly results: string; readonly flags: string }[] = [
  { results: "", flags: "failed_active_hc" },
  { results: "+", flags: "" },
  { results: "-", flags: "failed_active_hc" },
  { results: "-+", flags: "failed_active_hc" },
  { results: "-++", flags: "" },
  { results: "-+-+", flags: "failed_active_hc" },
  { results: "+-", flags: "failed_active_hc" },
  { results: "+~~", flags: "" },
  { results: "+~~~", flags: "failed_active_hc" },
  { results: "+~~+~~", flags: "" },
  { results: "+~-", flags: "failed_active_hc" },
];

const resultOf = { "+": success, "-": activeFailure(), "~": networkFailure } as const;

describe("thresholds", () => {
  for (const { results, flags: expected } of thresholds) {
    test(results === "" ? "unchecked" : results, () => {
      const { start, end, clock, flags } = stage();
      start();
      for (const sign of results as Iterable<keyof typeof resultOf>) {
        end(resultOf[sign]);
        clock.advance(10_000);
      }
      assert.equal(flags(), expected);
    });
  }
});

const everyInterval = {
  interval: "10s",
  healthy_edge_interval: "2s",
  unhealthy_interval: "20s",
  unhealthy_edge_interval: "3s",
  no_traffic_interval: "100s",
  no_traffic_healthy_interval: "200s",
};

/** After those results the next check comes so much later. */
const pauses: readonly {
  readonly name: string;
  readonly check: object;
  readonly results: string;
  readonly hasTraffic?: boolean;
  readonly expectedMs: number;
}[] = [
  { name: "well", check: everyInterval, results: "+", expectedMs: 10_000 },
  { name: "not yet well", check: everyInterval, results: "-+", expectedMs: 2000 },
  { name: "ill", check: everyInterval, results: "-", expectedMs: 20_000 },
  { name: "not yet ill", check: everyInterval, results: "+~", expectedMs: 3000 },
  { name: "ill at last", check: everyInterval, results: "+~~~", expectedMs: 20_000 },
  { name: "well, without traffic", check: everyInterval, results: "+", hasTraffic: false, expectedMs: 200_000 },
  {
    name: "not yet well, without traffic",
    check: everyInterval,
    results: "-+",
    hasTraffic: false,
    expectedMs: 100_000,
  },
  { name: "ill, without traffic", check: everyInterval, results: "-", hasTraffic: false, expectedMs: 100_000 },
  { name: "by default without traffic", check: {}, results: "+", hasTraffic: false, expectedMs: 60_000 },
  { name: "the interval is the default of all", check: {}, results: "+~", expectedMs: 10_000 },
  { name: "jitter", check: { interval_jitter: "4s" }, results: "+", expectedMs: 12_000 },
  { name: "jitter in percent", check: { interval_jitter_percent: 50 }, results: "+", expectedMs: 12_500 },
];

describe("intervals", () => {
  for (const { name, check, results, hasTraffic = true, expectedMs } of pauses) {
    test(name, () => {
      const { start, end, clock, begun, clusterStats } = stage({ check });
      if (!hasTraffic) clusterStats.upstreamConnectionsTotal.value = 0;
      start();
      for (const [index, sign] of (results.split("") as (keyof typeof resultOf)[]).entries()) {
        end(resultOf[sign]);
        const before = begun()[0]!;
        while (index < results.length - 1 && begun()[0] === before) clock.advance(1000);
      }
      const before = begun()[0]!;
      clock.advance(expectedMs - 1);
      assert.deepEqual(begun(), [before]);
      clock.advance(1);
      assert.deepEqual(begun(), [before + 1]);
    });
  }
});

test("the first check may be put off by a jitter of its own", () => {
  const { start, begun, clock } = stage({ check: { initial_jitter: "2s" } });
  start();
  assert.deepEqual(begun(), [0]);
  clock.advance(1000);
  assert.deepEqual(begun(), [1]);
});

test("a check that takes too long is a failure of the network, and told apart while the host has failed", () => {
  const { start, begun, clock, stats, flags, end } = stage();
  start();
  clock.advance(5000);
  assert.equal(flags(), "failed_active_hc active_hc_timeout");
  assert.equal(stats.networkFailure.value, 1);
  clock.advance(10_000);
  assert.deepEqual(begun(), [2]);
  end(activeFailure());
  assert.equal(flags(), "failed_active_hc");
});

test("a cluster is warm once each host has been checked, well or not, and says so once", () => {
  const { start, end, warm, checker, clock } = stage({ hosts: 2 });
  assert.equal(checker.isWarm, false);
  start();
  end(success, 0);
  assert.equal(checker.isWarm, false);
  end(activeFailure(), 1);
  assert.deepEqual([checker.isWarm, warm()], [true, 1]);
  clock.advance(10_000);
  end(success, 0);
  assert.equal(warm(), 1);
});

test("a cluster without hosts is warm at once", () => {
  const { start, checker } = stage({ hosts: 0 });
  start();
  assert.equal(checker.isWarm, true);
});

test("no more checks are under way than the queue allows; the others wait in turn, and one that leaves makes way", () => {
  const { start, begun, end, checker, hosts } = stage({ hosts: 4, maxUnderWay: 2 });
  start();
  assert.deepEqual(begun(), [1, 1, 0, 0]);
  end(success, 1);
  assert.deepEqual(begun(), [1, 1, 1, 0]);
  checker.setHosts(hosts.slice(1));
  assert.deepEqual(begun(), [1, 1, 1, 1]);
});

test("hosts that come are checked, those that go are not, and count no more", () => {
  const { start, end, checker, hosts, probes, begun, clock, stats } = stage({ hosts: 2 });
  start();
  end(success, 0);
  end(success, 1);
  assert.equal(stats.healthy.value, 2);
  checker.setHosts([hosts[0]!]);
  assert.deepEqual([stats.healthy.value, probes.get(hosts[1]!)!.isClosed], [1, true]);
  clock.advance(60_000);
  assert.equal(begun()[1], 1);
  const fresh = new Host({ type: "ip", ip: "127.0.0.1", port: 9 }, "", 1, {}, true);
  fresh.activeHealth = new ActiveHealth(false);
  checker.setHosts([hosts[0]!, fresh]);
  assert.equal(probes.get(fresh)!.begun, 1);
  checker.stop();
  assert.equal(stats.healthy.value, 0);
});

test("a host that says so fails at once and is excluded, until a check finds it well", () => {
  const { start, end, checker, hosts, flags, stats, clock, changes } = stage({ check: { healthy_threshold: 1 } });
  start();
  end(success);
  checker.failNow(hosts[0]!);
  assert.equal(flags(), "failed_active_hc excluded_via_immediate_hc_fail");
  assert.equal(stats.passiveFailure.value, 1);
  clock.advance(10_000);
  end(success);
  assert.equal(flags(), "");
  assert.equal(changes.length, 3);
});

test("a host that is new and pending counts once it has been checked, whatever came of it", () => {
  const { start, end, flags, changes } = stage({ isPending: true });
  start();
  assert.equal(flags(), "failed_active_hc pending_active_hc");
  end(activeFailure());
  assert.deepEqual([flags(), changes.length], ["failed_active_hc", 1]);
});

test("a host that is degraded is in use, and its change is told", () => {
  const { start, end, flags, changes, stats, clock } = stage();
  start();
  end({ ok: true, isDegraded: true });
  assert.deepEqual([flags(), stats.degraded.value], ["degraded_active_hc", 1]);
  clock.advance(10_000);
  end(success);
  assert.deepEqual([flags(), stats.degraded.value, changes.length], ["", 0, 2]);
});

test("events are lines of JSON", () => {
  const { start, end, lines, clock } = stage({ check: { always_log_health_check_failures: true } });
  start();
  end(success);
  clock.advance(10_000);
  end(networkFailure);
  clock.advance(10_000);
  end(activeFailure());
  const events = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(events[0], {
    health_checker_type: "TCP",
    host: { socket_address: { protocol: "TCP", address: "127.0.0.1", port_value: 1 } },
    cluster_name: "c",
    timestamp: "2023-11-14T22:13:21.000Z",
    add_healthy_event: { first_check: true },
  });
  assert.deepEqual(
    events.slice(1).map((event) => Object.entries(event).at(-1)),
    [
      ["health_check_failure_event", { failure_type: "NETWORK", first_check: false }],
      ["eject_unhealthy_event", { failure_type: "ACTIVE" }],
      ["health_check_failure_event", { failure_type: "ACTIVE", first_check: false }],
    ],
  );
});
