// What a bench scenario takes and gives.

export interface ScenarioOptions {
  readonly rounds: number;
  /** Duration of the load on one proxy in one round. */
  readonly seconds: number;
  /** Names of the built-in programs to measure; without it, all. */
  readonly proxies: readonly string[] | undefined;
  /** Programs to measure beside the built-in ones. */
  readonly also: readonly { readonly name: string; readonly command: readonly string[] }[];
  readonly progress: (text: string) => void;
}

export interface ScenarioResult {
  /** A table of medians for people. */
  readonly markdown: string;
  /** Every round, for programs. */
  readonly data: unknown;
}

/** Microseconds of CPU for one unit of work (a request, a handshake, a flow), by the row's name. */
export type CpuRows = Readonly<Record<string, number>>;

export interface Scenario {
  readonly name: string;
  readonly summary: string;
  readonly run: (options: ScenarioOptions) => Promise<ScenarioResult>;
  /** What `--compare` compares, out of the result's `data` as JSON gives it back. */
  readonly cpuRows?: (data: unknown) => CpuRows;
}
