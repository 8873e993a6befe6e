// Port 15020's page with applications that answer well, badly, slowly, endlessly and not at all: the metrics of the
// others are always there, and what the application costs is counted.
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { Logging } from "@tulle/telemetry";
import type { RunningDataPlane } from "../data-plane/data-plane.ts";
import { freePort } from "../../../../tests/tools/processes.ts";
import { MergedMetrics, type MetricsPage } from "./merged-metrics.ts";

const textType = "text/plain; version=0.0.4";
const openType = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/** As Prometheus asks. */
const acceptOpen = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

const bytes =
  '# TYPE istio_request_bytes histogram\nistio_request_bytes_bucket{le="+Inf"} 1\nistio_request_bytes_sum 2\nistio_request_bytes_count 1\n';

const dataPlane: RunningDataPlane = {
  ended: new Promise(() => undefined),
  isReady: () => Promise.resolve(true),
  metrics: (format) =>
    Promise.resolve({
      format,
      text:
        format === "openmetrics"
          ? `# TYPE istio_requests counter\nistio_requests_total{a="b"} 1 # {trace_id="0af7"} 1\n${bytes}`
          : `# TYPE istio_requests_total counter\nistio_requests_total{a="b"} 1\n${bytes}`,
    }),
  taken: () => Promise.resolve(undefined),
  stop: () => Promise.resolve(),
};

function metricsWith(port: number | undefined, proxy: RunningDataPlane = dataPlane): MergedMetrics {
  return new MergedMetrics({
    application: port === undefined ? undefined : { address: "127.0.0.1", port, path: "/m" },
    dataPlane: () => proxy,
    ownMetrics: () => "",
    log: new Logging({ level: "off" }).logger("agent"),
  });
}

async function applicationAt(context: TestContext, listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function counted({ text }: MetricsPage, series: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return Number(line?.split(" ")[1]);
}

const ofProxies = [
  "istio_requests_total",
  "istio_request_duration_milliseconds_bucket",
  "envoy_cluster_upstream_rq",
  "envoy_cluster_upstream_rq_time_bucket",
];

interface Answer {
  readonly name: string;
  readonly accept?: string;
  readonly contentType?: string;
  readonly body: string;
  readonly holds: readonly string[];
  readonly lacks?: readonly string[];
  readonly dropped?: Readonly<Record<"ours" | "duplicate", number>>;
}

const good: readonly Answer[] = [
  {
    name: "text is passed on",
    body: '# HELP jobs_total all "jobs"\n# TYPE jobs_total counter\njobs_total{k="a \\" b"} 3 1700000000500\n# a remark\n\nplain 7\n',
    holds: [
      '# HELP jobs_total all "jobs"\n# TYPE jobs_total counter\njobs_total{k="a \\" b"} 3 1700000000500\n',
      "plain 7\n",
    ],
  },
  {
    name: "text becomes OpenMetrics for who asks for it",
    accept: acceptOpen,
    body: '# HELP jobs_total all "jobs"\n# TYPE jobs_total counter\njobs_total 3 1700000000500\n# TYPE odd counter\nodd 1\n# TYPE t histogram\nt_bucket{le="+Inf"} 1\nt_sum 2\nt_count 1\nplain 7\n',
    holds: [
      '# HELP jobs all \\"jobs\\"\n# TYPE jobs counter\njobs_total 3 1700000000.5\n',
      "# TYPE odd unknown\nodd 1\n",
      '# TYPE t histogram\nt_bucket{le="+Inf"} 1\nt_sum 2\nt_count 1\n',
      "# TYPE plain unknown\nplain 7\n",
      "# {trace_id=",
    ],
  },
  {
    name: "OpenMetrics is passed on with its exemplars, and ends once",
    accept: acceptOpen,
    contentType: openType,
    body: '# TYPE jobs counter\njobs_total 3 # {trace_id="1"} 1 1700000000.5\n# EOF\n',
    holds: ['# TYPE jobs counter\njobs_total 3 # {trace_id="1"} 1 1700000000.5\n'],
  },
  {
    name: "names of the proxy's stay the proxy's, and nothing comes twice",
    body: '# TYPE istio_requests_total counter\nistio_requests_total{a="b"} 99\nx 1\nx 2\n',
    holds: ['istio_requests_total{a="b"} 1\n', "x 1\n"],
    lacks: ['istio_requests_total{a="b"} 99', "\nx 2\n"],
    dropped: { ours: 1, duplicate: 1 },
  },
  {
    name: "samples called as parts of the proxy's families are the proxy's, too",
    body: 'istio_request_bytes_bucket{le="+Inf"} 9\nistio_request_bytes_count 9\nistio_mine_count 9\n',
    holds: ["istio_request_bytes_count 1\n", "istio_mine_count 9\n"],
    lacks: ['istio_request_bytes_bucket{le="+Inf"} 9\n', "istio_request_bytes_count 9\n"],
    dropped: { ours: 2, duplicate: 0 },
  },
  {
    name: "what roll-outs count is the proxy's, also while that has none of it",
    body: `${ofProxies.map((name) => `${name}{a="b"} 9\n`).join("")}envoy_cluster_upstream_cx_total 9\n`,
    holds: ["envoy_cluster_upstream_cx_total 9\n"],
    lacks: ofProxies.map((name) => `${name}{a="b"} 9`),
    dropped: { ours: ofProxies.length, duplicate: 0 },
  },
];

for (const { name, accept, contentType = textType, body, holds, lacks = [], dropped } of good) {
  test(`an application's metrics: ${name}`, async (context) => {
    let asked: unknown;
    const port = await applicationAt(context, (request, response) => {
      asked = [request.url, request.headers["user-agent"], request.headers["x-prometheus-scrape-timeout-seconds"]];
      response.writeHead(200, { "content-type": contentType }).end(body);
    });
    const page = await metricsWith(port).page({
      ...(accept === undefined ? {} : { accept }),
      "user-agent": "Prometheus/2.42",
      "x-prometheus-scrape-timeout-seconds": "10",
    });
    assert.deepEqual(asked, ["/m", "Prometheus/2.42", "10"]);
    for (const part of holds) assert.ok(page.text.includes(part), page.text);
    for (const part of lacks) assert.ok(!page.text.includes(part), page.text);
    const isOpen = accept !== undefined;
    assert.match(
      page.contentType,
      isOpen ? /^application\/openmetrics-text; version=1\.0\.0/ : /^text\/plain; version=0/,
    );
    assert.equal(page.text.split("# EOF").length - 1, isOpen ? 1 : 0);
    assert.equal(page.text.endsWith("# EOF\n"), isOpen);
    assert.equal(counted(page, 'istio_agent_scrape_failures_total{type="application"}'), 0);
    for (const [reason, count] of Object.entries(dropped ?? {}))
      assert.equal(counted(page, `tulle_agent_dropped_samples_total{reason="${reason}"}`), count, reason);
  });
}

const half = "# TYPE half gauge\nhalf 1\n";
const bad: readonly { readonly name: string; readonly answer: RequestListener | undefined }[] = [
  { name: "is down", answer: undefined },
  { name: "does not answer", answer: () => undefined },
  { name: "stands still in the middle", answer: (_request, response) => void response.writeHead(200).write(half) },
  {
    name: "breaks off",
    answer: (_request, response) => {
      response.writeHead(200, { "content-length": "1000" }).write(half, () => response.destroy());
    },
  },
  {
    name: "never ends",
    answer: (_request, response) => {
      const line = `# ${"x".repeat(1000)}\n`.repeat(100);
      const more = (): void => void (!response.writableEnded && response.write(line));
      response.on("drain", more);
      more();
    },
  },
  { name: "has an error", answer: (_request, response) => void response.writeHead(500).end(half) },
  { name: "answers a web page", answer: (_request, response) => void response.end(`${half}<html>hello</html>\n`) },
  { name: "has a label without an end", answer: (_request, response) => void response.end(`${half}x{a="b} 1\n`) },
  {
    name: "answers OpenMetrics without its end",
    answer: (_request, response) => void response.writeHead(200, { "content-type": openType }).end(half),
  },
];

// With two readings of a part, an expression would try all of their combinations.
const endless = {
  labels: `x{${'a="b"  '.repeat(1000)}! 1`,
  digits: `x ${"1".repeat(200_000)}!`,
  blanks: `x${" ".repeat(200_000)}!`,
};
const repeating = Object.entries(endless).map(([what, line]) => ({
  name: `repeats ${what}`,
  answer: ((_request, response) => void response.end(`${half}${line}\n`)) satisfies RequestListener,
}));

for (const { name, answer } of [...bad, ...repeating]) {
  test(`an application that ${name} costs a counter alone`, async (context) => {
    const port = answer === undefined ? await freePort() : await applicationAt(context, answer);
    const page = await metricsWith(port).page({ accept: acceptOpen, "x-prometheus-scrape-timeout-seconds": "0.3" });
    assert.ok(page.text.includes('istio_requests_total{a="b"} 1'));
    assert.ok(!page.text.includes("half"), "nothing of what is not whole");
    assert.equal(counted(page, 'istio_agent_scrape_failures_total{type="application"}'), 1);
    assert.ok(page.text.endsWith("# EOF\n"));
  });
}

test("scrapes beyond four at a time leave the application out", async (context) => {
  const waiting: (() => void)[] = [];
  const port = await applicationAt(context, (_request, response) => {
    waiting.push(() => response.end("x 1\n"));
    if (waiting.length === 4) for (const each of waiting) each();
  });
  const metrics = metricsWith(port);
  const first = [1, 2, 3, 4].map(() => metrics.page({}));
  const fifth = await metrics.page({});
  assert.equal(counted(fifth, 'istio_agent_scrape_failures_total{type="application"}'), 1);
  for (const page of await Promise.all(first)) assert.ok(page.text.includes("\nx 1\n"));
});

for (const { text, holds, failures } of [
  { text: "# TYPE a_total counter\na_total 1\n", holds: "# TYPE a counter\na_total 1\n", failures: 0 },
  { text: "<html>\n", holds: "# EOF\n", failures: 1 },
]) {
  test(`a proxy that knows text alone is shown in OpenMetrics: ${text.trim()}`, async () => {
    const metrics = (): ReturnType<RunningDataPlane["metrics"]> => Promise.resolve({ format: "prometheus", text });
    const page = await metricsWith(undefined, { ...dataPlane, metrics }).page({ accept: acceptOpen });
    assert.ok(page.text.includes(holds), page.text);
    assert.equal(counted(page, 'istio_agent_scrape_failures_total{type="envoy"}'), failures);
  });
}

test("without an application the page is the proxy's and the agent's", async () => {
  const page = await metricsWith(undefined).page({});
  assert.equal(counted(page, "istio_agent_scrapes_total"), 1);
  assert.ok(counted(page, "istio_agent_process_resident_memory_bytes") > 0);
  assert.ok(page.text.includes('istio_requests_total{a="b"} 1\n'));
});
