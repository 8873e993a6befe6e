// What large bodies and streams of messages cost each proxy: bytes that pass for a second of its CPU time.
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";
import { cpuRows, type Measured, runWork } from "./run-work.ts";
import { answerBytes, grpcPrefixBytes, http1Request, http2Request, type Work } from "./work.ts";

const mib = 2 ** 20;
const maxFrameBytes = 16_384;

/** So many requests at a time pass bodies; each is a matter of milliseconds. */
const http2Body = { ...http2Request, connections: 4, streams: 4 } as const;
const frames = { answerFrames: mib / maxFrameBytes, answerFrameBytes: maxFrameBytes } as const;

const works: readonly Work[] = [
  { ...http1Request, name: "HTTP/1.1, answers", connections: 16, answerFrames: 1, answerFrameBytes: mib },
  { ...http2Body, ...frames, name: "HTTP/2, answers" },
  { ...http2Body, name: "HTTP/2, requests", requestBytes: mib },
  {
    ...http2Body,
    name: "gRPC, a stream of messages of 1 KB",
    isGrpc: true,
    requestBytes: grpcPrefixBytes + 100,
    answerFrames: 1024,
    answerFrameBytes: grpcPrefixBytes + 1024,
  },
];

const enoughWarmth = { seconds: 2, requests: 1000 };

interface MeasuredWork {
  readonly work: Work;
  readonly measured: readonly Measured[];
}

export async function measureBodies(options: ScenarioOptions): Promise<ScenarioResult> {
  const all: MeasuredWork[] = [];
  // nginx and HAProxy take no part: the kernel moves their bodies.
  const proxies = options.proxies ?? ["Envoy", ...options.trees.map(({ name }) => name)];
  for (const work of works) {
    options.progress(work.name);
    all.push({ work, measured: await runWork(work, enoughWarmth, { ...options, proxies }) });
  }
  return {
    markdown: table(all),
    data: { seconds: options.seconds, works: all },
    cpu: all.flatMap(({ work, measured }) => cpuRows(`${work.name}, 1 MiB`, measured, mebibytes(work))),
  };
}

/** That pass in one request, both ways. */
function mebibytes(work: Work): number {
  return (work.requestBytes + answerBytes(work)) / mib;
}

function table(all: readonly MeasuredWork[]): string {
  const rows = all.flatMap(({ work, measured }) => {
    const perCpuSecond = ({ rounds }: Measured): number =>
      median(rounds.map(({ cpuMicrosecondsPerRequest }) => (mebibytes(work) * 1e6) / cpuMicrosecondsPerRequest));
    const envoy = measured.find(({ name }) => name === "Envoy");
    return measured.map((one) => [
      `${work.name}, ${one.name}`,
      perCpuSecond(one).toFixed(0),
      envoy === undefined ? "–" : (perCpuSecond(one) / perCpuSecond(envoy)).toFixed(2),
      median(one.rounds.map(({ requestsPerSecond }) => requestsPerSecond * mebibytes(work))).toFixed(0),
      median(one.rounds.map(({ p99Ms }) => p99Ms)).toFixed(1),
      median(one.rounds.map(({ residentBytes }) => residentBytes / mib)).toFixed(0),
    ]);
  });
  return markdownTable(["bodies", "MiB a CPU second", "÷ Envoy", "MiB/s", "p99 ms", "memory MiB"], rows);
}
