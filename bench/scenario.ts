// What a bench scenario takes and gives.
import type { Tree } from "./tree.ts";

export interface ScenarioOptions {
  readonly rounds: number;
  /** Duration of the load on one proxy in one round. */
  readonly seconds: number;
  /**
   * Contestants are loaded at the same time, not one after the other: they take turns on the core within milliseconds.
   */
  readonly atOnce: boolean;
  /** The clones whose Tulle takes part, each as a contestant of the tree's name. */
  readonly trees: readonly Tree[];
  /** Names of the contestants to measure; without it, all. */
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
  /** What `--compare` compares. */
  readonly cpu?: readonly CpuRow[];
}

/** What one unit of work (a request, a handshake, a flow) cost a contestant. */
export interface CpuRow {
  readonly work: string;
  readonly contestant: string;
  /** Of each round. */
  readonly slices: readonly CpuSlice[];
}

export interface CpuSlice {
  readonly microseconds: number;
  /** Units of work that were done: what a busy machine let through little of says little. */
  readonly units: number;
}

export interface Scenario {
  readonly name: string;
  readonly summary: string;
  /** Its result has `cpu`, and it knows `atOnce`. */
  readonly isCompared: boolean;
  readonly run: (options: ScenarioOptions) => Promise<ScenarioResult>;
}
