// Requests of each version, out of what proxies show, whatever restarts, comes and goes.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  countsSince,
  isTrafficLine,
  type KnownVersions,
  percentile,
  TrafficCounter,
  type Version,
} from "./traffic-counts.ts";

const host = "catalog.shop.svc.cluster.local";
interface Series {
  readonly version?: string;
  readonly reporter?: string;
  readonly code?: string;
  readonly grpc?: string;
  readonly le?: string;
}
function line({ version = "v2", reporter = "source", code = "200", grpc, le }: Series, value: number): string {
  const protocol = grpc === undefined ? "http" : "grpc";
  const labels = `reporter="${reporter}",destination_workload="catalog-${version}",destination_workload_namespace="shop",destination_service="${host}",request_protocol="${protocol}",response_code="${code}",grpc_response_status="${grpc ?? ""}"`;
  return le === undefined
    ? `istio_requests_total{${labels}} ${value}`
    : `istio_request_duration_milliseconds_bucket{${labels},le="${le}"} ${value}`;
}
const versionByName = new Map<string, Version>([
  ["shop/catalog-v1", "stable"],
  ["shop/catalog-v2", "canary"],
  ["version-v1", "stable"],
  ["version-v2", "canary"],
]);
const versions: KnownVersions = {
  ofWorkload: (workload) => versionByName.get(workload),
  ofSubset: (subset) => versionByName.get(subset),
};

type Reading = readonly [pod: string, lines: readonly string[]];

function counted(...readings: readonly Reading[]) {
  const counter = new TrafficCounter();
  for (const [pod, lines] of readings) counter.take(pod, lines, versions);
  const { source, destination } = counter.counts;
  return { canary: source.canary, stable: source.stable, destination: destination.canary };
}

const rows: readonly {
  readonly name: string;
  readonly readings: readonly Reading[];
  /** Requests and failed ones of the canary, seen by clients. */
  readonly expected: readonly [number, number];
}[] = [
  { name: "what was there before counts for nothing", readings: [["a", [line({}, 100)]]], expected: [0, 0] },
  {
    name: "what came",
    readings: [
      ["a", [line({}, 100)]],
      ["a", [line({}, 130)]],
    ],
    expected: [30, 0],
  },
  {
    name: "a series that is new",
    readings: [
      ["a", []],
      ["a", [line({}, 7)]],
    ],
    expected: [7, 0],
  },
  {
    name: "a proxy that began anew",
    readings: [
      ["a", [line({}, 100)]],
      ["a", [line({}, 130)]],
      ["a", [line({}, 4)]],
    ],
    expected: [34, 0],
  },
  {
    name: "a pod that came meanwhile, and one that does not answer for a while",
    readings: [
      ["a", [line({}, 10)]],
      ["b", [line({}, 1000)]],
      ["b", [line({}, 1001)]],
      ["a", [line({}, 15)]],
    ],
    expected: [6, 0],
  },
  {
    name: "failures: 5xx, and by gRPC any status but OK",
    readings: [
      ["a", []],
      ["a", [line({ code: "503" }, 1), line({ code: "404" }, 1), line({ grpc: "0" }, 1), line({ grpc: "13" }, 1)]],
    ],
    expected: [4, 2],
  },
  {
    name: "clients that went away",
    readings: [
      ["a", []],
      ["a", [line({ code: "0" }, 5)]],
    ],
    expected: [0, 0],
  },
  {
    name: "other workloads and reporters",
    readings: [
      ["a", []],
      ["a", [line({ version: "v3" }, 5), line({ reporter: "waypoint" }, 5)]],
    ],
    expected: [0, 0],
  },
  {
    name: "exemplars, time stamps and rubbish",
    readings: [
      ["a", []],
      [
        "a",
        [
          `${line({}, 3)} 1700000000`,
          `${line({ code: "500" }, 2)} # {trace_id="a"} 1 2`,
          "istio_requests_total{",
          line({ code: "501" }, -1),
          line({ code: "502" }, Number.NaN),
          `${line({ code: "504" }, 0).slice(0, -1)}x`,
        ],
      ],
    ],
    expected: [5, 2],
  },
];

for (const { name, readings, expected } of rows) {
  test(name, () => {
    const { canary } = counted(...readings);
    assert.deepEqual([canary.requests, canary.failed], expected);
  });
}

test("versions and reporters apart, since any moment", () => {
  const counter = new TrafficCounter();
  const take = (atClient: readonly string[], atCanary: readonly string[]): void => {
    counter.take("client", atClient, versions);
    counter.take("canary", atCanary, versions, "canary");
  };
  take([], []);
  take([line({}, 1), line({ version: "v1" }, 2)], [line({ reporter: "destination" }, 3)]);
  const begin = counter.counts;
  take([line({}, 11), line({ version: "v1" }, 22)], [line({ reporter: "destination" }, 33)]);
  const { source, destination } = countsSince(counter.counts, begin);
  assert.deepEqual(
    [source.canary.requests, source.stable.requests, destination.canary.requests, destination.stable.requests],
    [10, 20, 30, 0],
  );
});

for (const { own, expected } of [
  // Of itself alone, and never as a client of itself.
  { own: "canary", expected: { source: [0, 0], destination: [0, 30], cluster: [0, 0] } },
  { own: "stable", expected: { source: [20, 10], destination: [40, 0], cluster: [0, 50] } },
  { own: undefined, expected: { source: [20, 10], destination: [0, 0], cluster: [0, 50] } },
] as const) {
  test(`what a pod of ${own ?? "neither version"} may tell`, () => {
    const counter = new TrafficCounter();
    counter.take("a", [], versions, own);
    const lines = [
      line({}, 10),
      line({ version: "v1" }, 20),
      line({ reporter: "destination" }, 30),
      line({ reporter: "destination", version: "v1" }, 40),
      clusterLine('response_code="200"', 50),
    ];
    counter.take("a", lines, versions, own);
    const { source, destination, cluster: atCluster } = counter.counts;
    const requests = ({ stable, canary }: typeof source): readonly number[] => [stable.requests, canary.requests];
    assert.deepEqual(
      { source: requests(source), destination: requests(destination), cluster: requests(atCluster) },
      expected,
    );
  });
}

const cluster = (subset: string, direction = "outbound"): string => `${direction}|80|${subset}|${host}`;
/** As a stock Envoy has it. */
function clusterLine(
  labels: string,
  value: number,
  { metric = "upstream_rq", name = cluster("version-v2") } = {},
): string {
  return `envoy_cluster_${metric}{${labels},cluster_name="${name}"} ${value}`;
}

for (const { name, lines, expected } of [
  {
    name: "by code, not by its class once more",
    lines: [
      clusterLine('response_code="200"', 3),
      clusterLine('response_code_class="2xx"', 3),
      clusterLine('response_code="503"', 2),
      clusterLine('response_code_class="5xx"', 2),
    ],
    expected: [5, 2],
  },
  {
    name: "neither other subsets, nor the whole Service, nor what comes in",
    lines: ["version-v1", "version-v3", ""]
      .map((subset) => cluster(subset))
      .concat(cluster("version-v2", "inbound"))
      .map((each) => clusterLine('response_code="200"', 3, { name: each })),
    expected: [0, 0],
  },
] as const) {
  test(`a stock Envoy's cluster: ${name}`, () => {
    const counter = new TrafficCounter();
    counter.take("a", [], versions);
    counter.take("a", lines, versions);
    const { source, destination, cluster: seen } = counter.counts;
    assert.deepEqual([seen.canary.requests, seen.canary.failed], expected);
    assert.deepEqual([source.canary.requests, destination.canary.requests], [0, 0]);
  });
}

test("a stock Envoy's durations", () => {
  const counter = new TrafficCounter();
  const metric = "upstream_rq_time_bucket";
  counter.take("a", [], versions);
  const begin = counter.counts;
  counter.take("a", [clusterLine('le="5"', 2, { metric }), clusterLine('le="+Inf"', 3, { metric })], versions);
  const { requests, buckets: seen } = countsSince(counter.counts, begin).cluster.canary;
  assert.deepEqual([requests, ...seen], [0, [5, 2], [Number.POSITIVE_INFINITY, 3]]);
});

test("lines of this host's requests alone", () => {
  assert.ok(isTrafficLine(line({}, 1), host));
  assert.ok(isTrafficLine(line({ le: "5" }, 1), host));
  assert.ok(isTrafficLine(clusterLine('response_code="200"', 1), host));
  assert.ok(isTrafficLine(clusterLine('le="5"', 1, { metric: "upstream_rq_time_bucket" }), host));
  assert.ok(!isTrafficLine(clusterLine('response_code="200"', 1), "orders.shop.svc.cluster.local"));
  assert.ok(!isTrafficLine(clusterLine('response_code="503"', 1, { metric: "retry_upstream_rq" }), host));
  assert.ok(!isTrafficLine(line({}, 1), "orders.shop.svc.cluster.local"));
  assert.ok(!isTrafficLine(`istio_request_bytes_bucket{destination_service="${host}"} 1`, host));
});

const buckets = new Map([
  [10, 50],
  [100, 90],
  [1000, 99],
  [Number.POSITIVE_INFINITY, 100],
]);
for (const { percent, expected } of [
  { percent: 25, expected: 5 },
  { percent: 50, expected: 10 },
  { percent: 90, expected: 100 },
  { percent: 94.5, expected: 550 },
  // As Prometheus: beyond the last bound nothing is known.
  { percent: 100, expected: 1000 },
]) {
  test(`within how many milliseconds ${percent} % were answered`, () => {
    assert.equal(percentile(buckets, percent), expected);
  });
}

test("without requests there is no percentile", () => {
  assert.ok(Number.isNaN(percentile(new Map(), 99)));
  assert.ok(Number.isNaN(percentile(new Map([[10, 0]]), 99)));
});
