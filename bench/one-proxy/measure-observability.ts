// What a request costs more when it is told of: by nothing at first, then by an access log, Istio's metrics and a share
// of traces. A stock Envoy has no metrics of Istio's.
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import type { CpuRow, ScenarioOptions, ScenarioResult } from "../scenario.ts";
import type { Observed } from "./bootstrap.ts";
import { envoyAndTulle } from "./contestants.ts";
import { cpuRows, type Measured, type Round, runWork } from "./run-work.ts";
import { http1Request, type Work } from "./work.ts";

/** At a rate that all can keep: beside a proxy that has little to do caches are colder, and requests come singly. */
const steadyRequest: Work = { ...http1Request, requestsPerSecond: 6400 };

const enoughWarmth = { seconds: 4, requests: 60_000 };

const steps: readonly (Observed & { readonly title: string })[] = [
  { title: "nothing", hasLogAndMetrics: false, tracedPercent: 0 },
  { title: "log and metrics", hasLogAndMetrics: true, tracedPercent: 0 },
  { title: "and 1 % of traces", hasLogAndMetrics: true, tracedPercent: 1 },
  { title: "and all traces", hasLogAndMetrics: true, tracedPercent: 100 },
];

export function measureObservability(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureSteps(http1Request, options);
}

export function measureSteadyObservability(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureSteps(steadyRequest, options);
}

async function measureSteps(work: Work, options: ScenarioOptions): Promise<ScenarioResult> {
  const wanted = envoyAndTulle(options.trees).filter(({ name }) => options.proxies?.includes(name) ?? true);
  const names = wanted.map(({ name }) => name);
  if (options.atOnce) return compareSteps(work, names, options);
  // All in one run, one after the other: what is compared is a few microseconds.
  const all = steps.flatMap((step) =>
    envoyAndTulle(options.trees, step)
      .filter(({ name }) => names.includes(name))
      .map((each) => ({ ...each, name: `${each.name}, ${step.title}` })),
  );
  const measured = await runWork(work, enoughWarmth, options, all);
  return { markdown: table(names, measured), data: { seconds: options.seconds, measured } };
}

/** For `--compare`: who is loaded at the same time does the same work. */
async function compareSteps(work: Work, names: readonly string[], options: ScenarioOptions): Promise<ScenarioResult> {
  const cpu: CpuRow[] = [];
  for (const step of steps) {
    const both = envoyAndTulle(options.trees, step).filter(({ name }) => names.includes(name));
    cpu.push(...cpuRows(step.title, await runWork(work, enoughWarmth, options, both)));
  }
  return { markdown: "", data: { seconds: options.seconds }, cpu };
}

/**
 * Medians; behind the first, the median of what each round of a step adds to it, and how much of that is no work of the
 * kernel.
 */
function table(names: readonly string[], measured: readonly Measured[]): string {
  const rows = names.map((name) => {
    const [first = [], ...others] = steps.map(
      ({ title }) => measured.find((one) => one.name === `${name}, ${title}`)!.rounds,
    );
    const cost = ({ cpuMicrosecondsPerRequest: all, userMicrosecondsPerRequest: user }: Round) => ({ all, user });
    const added = others.map((rounds) => {
      const more = (which: "all" | "user"): string =>
        `+ ${median(rounds.map((each, round) => cost(each)[which] - cost(first[round]!)[which])).toFixed(1)}`;
      return `${more("all")} (${more("user")})`;
    });
    const base = (which: "all" | "user"): string => median(first.map((each) => cost(each)[which])).toFixed(1);
    return [name, `${base("all")} (${base("user")})`, ...added];
  });
  return markdownTable(["CPU µs/request (outside of the kernel)", ...steps.map(({ title }) => title)], rows);
}
