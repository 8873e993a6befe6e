// One program that is to run until it is told to stop: started under guard, restarted with back-off, stopped with
// grace.
//
// States: `idle` (never started) → `held` (what it is made of is not there) → `running` → on an unwanted end `waiting`
// (back-off) → `running` again, or, with restarts off, `failed`; a start may always find it `held`, until `tryAgain`.
// `restart` leads from `running` over `restarting` (stop signal sent) to `running`. `stop` leads from any state to
// `stopping` (stop signal sent) and then `ended`; after that it never runs again.
import { performance } from "node:perf_hooks";
import { LogFile } from "./log-file.ts";
import { restartDelayMs, stableAfterMs } from "./restart-delay.ts";
import { firstInheritedDescriptor, spawnGuarded, type GuardedProcess } from "./spawn-guarded.ts";

export type RestartPolicy = "always" | "never";

/** What is run, and words before it; or, for people, what it needs and is not there. */
export type Launch =
  | {
      readonly enter?: readonly string[];
      /** It is spawned within the call. */
      readonly within?: <T>(make: () => T) => T;
      readonly argv: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    }
  | { readonly missing: string };

export interface ProcessSpec {
  readonly name: string;
  readonly cwd: string;
  /** Asked at each start: what it is made of may have changed since the last one. */
  readonly launch: () => Launch;
  readonly logFile: string;
  /** Listening sockets and the port that each stands for; the program learns of them by TULLE_LISTEN_FDS. */
  readonly listenDescriptors?: readonly (readonly [port: number, descriptor: number])[];
  readonly restart: RestartPolicy;
  /** Asks it to end; SIGTERM when missing. */
  readonly stopSignal?: NodeJS.Signals;
}

export type ProcessState = "idle" | "held" | "running" | "waiting" | "failed" | "restarting" | "stopping" | "ended";

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** For people: how it ended and the last words of its log. */
  readonly description: string;
  /** Time until it starts again; undefined when it does not. */
  readonly restartInMs: number | undefined;
}

export interface ProcessListener {
  onStart?(): void;
  /** It cannot start for what it needs, or needs something else now. */
  onHeld?(): void;
  /** An end that nobody asked for. */
  onUnexpectedEnd?(end: ProcessEnd): void;
}

const spawnProblems: Readonly<Record<string, string>> = {
  E2BIG: "it cannot be started: a variable or an argument is longer than the system takes (on Linux 128 KiB each)",
  ERR_INVALID_ARG_VALUE: "it cannot be started: a variable or an argument holds a NUL byte",
};

export class SupervisedProcess {
  readonly spec: ProcessSpec;
  restarts = 0;
  readonly #listener: ProcessListener;
  readonly #log: LogFile;
  #state: ProcessState = "idle";
  #guarded: GuardedProcess | undefined;
  #startedAtMs = 0;
  #missing: string | undefined;
  /** The last end that nobody asked for. */
  #lastEnd: ProcessEnd | undefined;
  #failuresInARow = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  readonly #ended = Promise.withResolvers<void>();

  constructor(spec: ProcessSpec, listener: ProcessListener) {
    this.spec = spec;
    this.#listener = listener;
    this.#log = new LogFile(spec.logFile);
  }

  get state(): ProcessState {
    return this.#state;
  }

  get lastEnd(): ProcessEnd | undefined {
    return this.#lastEnd;
  }

  /** What it waits for, where it is held. */
  get missing(): string | undefined {
    return this.#state === "held" ? this.#missing : undefined;
  }

  get pid(): number | undefined {
    return this.#guarded?.child.pid;
  }

  start(): void {
    if (this.#state !== "idle" && this.#state !== "waiting") return;
    const launch = this.spec.launch();
    if ("missing" in launch) this.#hold(launch.missing);
    else this.#run([...(launch.enter ?? []), ...launch.argv], launch);
  }

  /** Starts it if it is held and what it needs is there now. */
  tryAgain(): void {
    if (this.#state !== "held") return;
    this.#state = "waiting";
    this.start();
  }

  #hold(missing: string): void {
    const isNews = missing !== this.#missing;
    this.#state = "held";
    this.#missing = missing;
    if (isNews) this.#listener.onHeld?.();
  }

  #run(
    argv: readonly string[],
    { env, within = (make) => make() }: Pick<Exclude<Launch, { missing: string }>, "env" | "within">,
  ): void {
    const descriptors = this.spec.listenDescriptors ?? [];
    const listenText = descriptors.map(([port], index) => `${port}=${firstInheritedDescriptor + index}`).join(",");
    this.#state = "running";
    this.#missing = undefined;
    this.#startedAtMs = performance.now();
    try {
      const command = {
        argv,
        cwd: this.spec.cwd,
        env: listenText === "" ? env : { ...env, TULLE_LISTEN_FDS: listenText },
        logDescriptor: this.#log.descriptor,
        inherit: descriptors.map(([, descriptor]) => descriptor),
      };
      this.#guarded = within(() => spawnGuarded(command));
    } catch (error) {
      // What the kernel does not take, a variable of a megabyte for example. The words of the error may hold values.
      const { code = "unknown" } = error as NodeJS.ErrnoException;
      setImmediate(() => this.#takeEnd(undefined, null, null, spawnProblems[code] ?? `it cannot be started: ${code}`));
      return;
    }
    const guarded = this.#guarded;
    // A folder that does not exist, say: there is no exit then, only this.
    guarded.child.once("error", (error) => this.#takeEnd(guarded, null, null, error.message));
    guarded.child.once("exit", (code, signal) => this.#takeEnd(guarded, code, signal));
    this.#listener.onStart?.();
  }

  /** Ends the current run so that the next begins; for a process that does not answer any more. */
  kill(): void {
    this.#guarded?.killGroup();
  }

  /** Ends the present run as `stop` does and begins the next one. What does not run now starts by its own rules. */
  restart(graceMs: number): void {
    if (this.#state !== "running") return;
    this.#state = "restarting";
    this.#askToEnd();
    this.#restartTimer = setTimeout(() => this.kill(), graceMs);
  }

  /** The stop signal, then SIGKILL to the group after `graceMs`. Resolves when nothing of it runs any more. */
  async stop(graceMs: number): Promise<void> {
    clearTimeout(this.#restartTimer);
    if (this.#state === "running" || this.#state === "restarting") {
      this.#state = "stopping";
      this.#askToEnd();
      const timer = setTimeout(() => this.kill(), graceMs);
      await this.#ended.promise;
      clearTimeout(timer);
    } else if (this.#state !== "stopping" && this.#state !== "ended") {
      this.#finish();
    }
    return this.#ended.promise;
  }

  /** Ends it at once. */
  destroy(): void {
    clearTimeout(this.#restartTimer);
    if (this.#guarded !== undefined) {
      this.#state = "stopping";
      this.kill();
    } else if (this.#state !== "ended") {
      this.#finish();
    }
  }

  /** Keeps the log below its limit; called now and then. */
  boundLog(): void {
    if (this.#state !== "ended") this.#log.bound();
  }

  #askToEnd(): void {
    this.#guarded?.signal(this.spec.stopSignal ?? "SIGTERM");
  }

  #takeEnd(
    guarded: GuardedProcess | undefined,
    code: number | null,
    signal: NodeJS.Signals | null,
    problem?: string,
  ): void {
    if (this.#guarded !== guarded) return;
    this.#guarded = undefined;
    guarded?.releaseGuard();
    if (this.#state === "stopping") return this.#finish();
    if (this.#state === "restarting") {
      clearTimeout(this.#restartTimer);
      this.#state = "waiting";
      this.restarts += 1;
      return this.start();
    }
    const ranMs = performance.now() - this.#startedAtMs;
    this.#failuresInARow = ranMs >= stableAfterMs ? 1 : this.#failuresInARow + 1;
    const restartInMs = this.spec.restart === "always" ? restartDelayMs(this.#failuresInARow) : undefined;
    this.#state = restartInMs === undefined ? "failed" : "waiting";
    if (restartInMs !== undefined) {
      this.#restartTimer = setTimeout(() => {
        this.restarts += 1;
        this.start();
      }, restartInMs);
    }
    const how = problem ?? (signal === null ? `exit status ${code}` : `signal ${signal}`);
    const last = this.#log.lastWords();
    const description = last === "" ? how : `${how}: ${last}`;
    this.#lastEnd = { code, signal, description, restartInMs };
    this.#listener.onUnexpectedEnd?.(this.#lastEnd);
  }

  #finish(): void {
    this.#state = "ended";
    this.#log.close();
    this.#ended.resolve();
  }
}
