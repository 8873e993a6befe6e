// When hosts are ejected, for how long, and how many at most.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { OutlierDetectionSchema } from "@tulle/xds/envoy/config/cluster/v3/outlier_detection_pb";
import { compileOutlierDetection } from "../compile/compile-outlier-detection.ts";
import { Place, Problems } from "../fields/problems.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Host } from "./cluster.ts";
import { makeOutlierStats, OutlierDetection } from "./outlier-detection.ts";

function detector(config: object, hostCount = 10) {
  const problems = new Problems();
  const message = fromConfiguration(OutlierDetectionSchema, { max_ejection_percent: 100, ...config });
  const settings = compileOutlierDetection(message, Place.root, problems)!;
  assert.equal(problems.hasErrors, false);
  const clock = new ManualClock();
  const stats = makeOutlierStats(new MetricRegistry(), "c");
  let changes = 0;
  const detection = new OutlierDetection({
    clusterName: "c",
    settings,
    stats,
    clock,
    random: () => 0.5,
    log: new Logging({ sink: () => {} }).logger("upstream"),
    onChange: () => (changes += 1),
  });
  const hosts = Array.from(
    { length: hostCount },
    (_, index) => new Host({ type: "ip", ip: "127.0.0.1", port: index + 1 }, "", 1, {}, true),
  );
  detection.setHosts(hosts);
  const ejected = (): number[] => hosts.flatMap((host, index) => (host.ejected ? [index] : []));
  const answer = (index: number, ...statuses: number[]): void => {
    for (const status of statuses) detection.onResponse(hosts[index]!, status);
  };
  return { detection, hosts, clock, stats, ejected, answer, changes: () => changes };
}

const repeated = (status: number, times: number): number[] => Array.from({ length: times }, () => status);

const consecutive: readonly { name: string; config: object; statuses: readonly number[]; ejected: boolean }[] = [
  { name: "four 500 are not five", config: {}, statuses: repeated(500, 4), ejected: false },
  { name: "five are", config: {}, statuses: repeated(500, 5), ejected: true },
  { name: "a good answer begins anew", config: {}, statuses: [...repeated(500, 4), 200, 500], ejected: false },
  { name: "a 404 is a good answer", config: {}, statuses: [...repeated(500, 4), 404, 500], ejected: false },
  { name: "a limit of its own", config: { consecutive_5xx: 2 }, statuses: [500, 503], ejected: true },
  {
    name: "gateway failures count only where they are enforced",
    config: { consecutive_5xx: 99, consecutive_gateway_failure: 2 },
    statuses: [502, 503],
    ejected: false,
  },
  {
    name: "gateway failures",
    config: { consecutive_5xx: 99, consecutive_gateway_failure: 2, enforcing_consecutive_gateway_failure: 100 },
    statuses: [502, 504],
    ejected: true,
  },
  {
    name: "a 500 is no gateway failure",
    config: { consecutive_5xx: 99, consecutive_gateway_failure: 2, enforcing_consecutive_gateway_failure: 100 },
    statuses: [502, 500, 504],
    ejected: false,
  },
  { name: "not enforced", config: { enforcing_consecutive_5xx: 0 }, statuses: repeated(500, 5), ejected: false },
  {
    name: "half enforced, above",
    config: { enforcing_consecutive_5xx: 51 },
    statuses: repeated(500, 5),
    ejected: true,
  },
  {
    name: "half enforced, below",
    config: { enforcing_consecutive_5xx: 50 },
    statuses: repeated(500, 5),
    ejected: false,
  },
];

for (const { name, config, statuses, ejected } of consecutive) {
  test(`in a row: ${name}`, () => {
    const tried = detector(config);
    tried.answer(3, ...statuses);
    assert.deepEqual(tried.ejected(), ejected ? [3] : []);
    assert.equal(tried.changes(), ejected ? 1 : 0);
    assert.equal(tried.stats.active.value, ejected ? 1 : 0);
    assert.equal(tried.stats.enforcedTotal.value, ejected ? 1 : 0);
  });
}

test("no answer counts as 503 or 504, or apart from answers where that is asked for", () => {
  const together = detector({ consecutive_5xx: 3 });
  together.detection.onNoResponse(together.hosts[0]!, "reset");
  together.detection.onNoResponse(together.hosts[0]!, "timeout");
  together.answer(0, 500);
  assert.deepEqual(together.ejected(), [0]);

  const apart = detector({
    consecutive_5xx: 3,
    split_external_local_origin_errors: true,
    consecutive_local_origin_failure: 2,
  });
  const [host] = apart.hosts;
  apart.answer(0, 500, 500);
  apart.detection.onNoResponse(host!, "reset");
  apart.detection.onConnected(host!);
  apart.detection.onNoResponse(host!, "timeout");
  assert.deepEqual(apart.ejected(), []);
  apart.detection.onNoResponse(host!, "reset");
  assert.deepEqual(apart.ejected(), [0]);
  assert.equal(apart.stats.enforced_consecutive_local_origin_failure.value, 1);
});

test("an ejection lasts longer each time, and forgets in good intervals", () => {
  const { answer, clock, ejected, stats } = detector({
    interval: "1s",
    base_ejection_time: "3s",
    max_ejection_time: "5s",
    consecutive_5xx: 1,
  });
  const secondsOut = (): number => {
    answer(0, 500);
    let seconds = 0;
    while (ejected().length > 0) {
      clock.advance(1000);
      seconds += 1;
    }
    return seconds;
  };
  assert.deepEqual([secondsOut(), secondsOut(), secondsOut()], [3, 5, 5]);
  assert.equal(stats.active.value, 0);
  clock.advance(3000);
  assert.equal(secondsOut(), 3);
});

test("no more than a share of the hosts, but one where that is asked for", () => {
  const share = detector({ consecutive_5xx: 1, max_ejection_percent: 30 });
  for (let index = 0; index < 5; index += 1) share.answer(index, 500);
  assert.deepEqual(share.ejected(), [0, 1, 2]);
  assert.equal(share.stats.overflow.value, 2);
  const none = detector({ consecutive_5xx: 1, max_ejection_percent: 10 }, 2);
  none.answer(0, 500);
  assert.deepEqual(none.ejected(), []);
  const one = detector({ consecutive_5xx: 1, max_ejection_percent: 10, always_eject_one_host: true }, 2);
  one.answer(0, 500);
  one.answer(1, 500);
  assert.deepEqual(one.ejected(), [0]);
});

test("a host that leaves the cluster gives its place among the ejected back", () => {
  const { answer, detection, hosts, stats, ejected } = detector({ consecutive_5xx: 1, max_ejection_percent: 50 }, 2);
  answer(0, 500);
  detection.setHosts([hosts[1]!, new Host({ type: "ip", ip: "127.0.0.1", port: 99 }, "", 1, {}, true)]);
  assert.equal(stats.active.value, 0);
  answer(1, 500);
  assert.deepEqual(ejected(), [0, 1]);
  detection.stop();
  assert.equal(stats.active.value, 0);
});

test("a host far below the others' success rate is ejected at the interval's end", () => {
  const { answer, clock, ejected, stats } = detector({ interval: "1s", consecutive_5xx: 999 });
  for (let index = 0; index < 10; index += 1)
    answer(index, ...repeated(200, index === 7 ? 50 : 99), ...repeated(500, index === 7 ? 50 : 1));
  assert.deepEqual(ejected(), []);
  clock.advance(1000);
  assert.deepEqual(ejected(), [7]);
  assert.equal(stats.enforced_success_rate.value, 1);
});

test("with too few hosts or requests nobody is compared", () => {
  const few = detector({ interval: "1s", consecutive_5xx: 999 }, 4);
  for (let index = 0; index < 4; index += 1) few.answer(index, ...repeated(index === 1 ? 500 : 200, 100));
  few.clock.advance(1000);
  assert.deepEqual(few.ejected(), []);
  const quiet = detector({ interval: "1s", consecutive_5xx: 999 });
  for (let index = 0; index < 10; index += 1) quiet.answer(index, ...repeated(index === 1 ? 500 : 200, 99));
  quiet.clock.advance(1000);
  assert.deepEqual(quiet.ejected(), []);
});

test("a share of failures above the threshold ejects where it is enforced", () => {
  const { answer, clock, ejected, stats } = detector({
    interval: "1s",
    consecutive_5xx: 999,
    enforcing_success_rate: 0,
    enforcing_failure_percentage: 100,
    failure_percentage_threshold: 40,
  });
  for (let index = 0; index < 10; index += 1)
    answer(index, ...repeated(500, index * 6), ...repeated(200, 60 - index * 6));
  clock.advance(1000);
  assert.deepEqual(ejected(), [4, 5, 6, 7, 8, 9]);
  assert.equal(stats.enforced_failure_percentage.value, 6);
});

test("percentages above 100 and times of nothing are refused", () => {
  const problems = new Problems();
  const message = fromConfiguration(OutlierDetectionSchema, {
    max_ejection_percent: 101,
    enforcing_consecutive_5xx: 200,
    interval: "0s",
  });
  compileOutlierDetection(message, Place.root, problems);
  assert.deepEqual(
    problems.list.map(({ place }) => place),
    ["max_ejection_percent", "enforcing_consecutive_5xx", "interval"],
  );
});
