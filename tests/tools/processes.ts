// Real processes for tests: started with captured output, waited for by condition, ended by id. Nothing here sleeps for
// a fixed time.
import { spawn, type ChildProcess } from "node:child_process";
import { createServer, type ListenOptions, type Server } from "node:net";

/**
 * Longer than anything takes on a machine that has several times the work it can do: only what never comes is waited
 * for so long. A test gives another limit only where that is what it is about.
 */
const patienceMs = 60_000;

export interface WaitOptions {
  /** What is waited for, for the message: "the gateway to answer 200". */
  readonly what: string;
  /** Default 60,000. */
  readonly timeoutMs?: number;
  /** Time between two looks; default 20. */
  readonly intervalMs?: number;
  /** More to tell when it fails, such as a process's output. */
  readonly details?: () => string;
}

type Falsy = false | undefined | null | 0 | "";

/**
 * Looks at a condition until it gives a truthy value, which is returned. A condition that throws counts as not yet met,
 * and the last reason is part of the error when time runs out.
 */
export async function waitFor<T>(
  condition: () => T | Falsy | Promise<T | Falsy>,
  options: WaitOptions,
): Promise<Exclude<T, Falsy>> {
  const timeoutMs = options.timeoutMs ?? patienceMs;
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      // A condition that asks a broken program may never end.
      const value = await inTime(condition(), "the condition to end", Math.max(1, deadline - performance.now()));
      if (value) return value as Exclude<T, Falsy>;
      last = `last value: ${String(value)}`;
    } catch (error) {
      last = error;
    }
    if (performance.now() >= deadline) break;
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, options.intervalMs ?? 20);
    await promise;
  }
  const reason = last instanceof Error ? last.message : String(last);
  const details = options.details === undefined ? "" : `\n${options.details()}`;
  throw new Error(`waited ${timeoutMs} ms for ${options.what} (${reason})${details}`, { cause: last });
}

/** What is awaited, or an error that says what did not come. Where nothing can be looked at again and again. */
export async function inTime<T>(awaited: T | Promise<T>, what: string, timeoutMs = patienceMs): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), timeoutMs);
  try {
    return await Promise.race([awaited, promise]);
  } finally {
    clearTimeout(timer);
  }
}

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface StartOptions {
  /** How messages call the process; default the command's last path segment. */
  readonly name?: string;
  readonly cwd?: string;
  /** Added to this process's environment; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** A process group of its own, so that `stop` and `kill` reach its children too. */
  readonly group?: boolean;
  /** Written to the process's standard input, which is then closed; without it standard input is /dev/null. */
  readonly input?: string;
  /** Runs it as that user, who has no other group; only root may. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
}

export interface StartedProcess extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  readonly child: ChildProcess;
  /** Standard output and standard error, as they came, at most the last 4 MiB. */
  output(): string;
  stdout(): string;
  stderr(): string;
  readonly exited: Promise<ProcessExit>;
  /** undefined while it runs. */
  readonly exit: ProcessExit | undefined;
  /** Waits until the whole output matches; fails at once when the process ends without it. */
  waitForOutput(pattern: RegExp, options?: { readonly timeoutMs?: number }): Promise<RegExpMatchArray>;
  /** Sends a signal and returns; a process that is gone is no error. */
  kill(signal?: NodeJS.Signals): void;
  /** SIGTERM (or `signal`), then SIGKILL when the time is over; returns how it ended. */
  stop(options?: { readonly signal?: NodeJS.Signals; readonly timeoutMs?: number }): Promise<ProcessExit>;
}

const maxOutputBytes = 4 * 1024 * 1024;
const running = new Set<StartedProcess>();

// A test file that fails half-way must not leave servers behind.
process.once("exit", () => {
  for (const started of running) started.kill("SIGKILL");
});

/** Starts a program without a shell. @throws when it cannot be started */
export async function startProcess(
  command: string,
  args: readonly string[],
  options: StartOptions = {},
): Promise<StartedProcess> {
  const started = new CapturedProcess(command, args, options);
  await started.spawned;
  return started;
}

class CapturedProcess implements StartedProcess {
  readonly name: string;
  readonly child: ChildProcess;
  readonly spawned: Promise<void>;
  readonly exited: Promise<ProcessExit>;
  exit: ProcessExit | undefined;
  readonly #group: boolean;
  #stdout = "";
  #stderr = "";
  #all = "";

  constructor(command: string, args: readonly string[], options: StartOptions) {
    this.name = options.name ?? command.slice(command.lastIndexOf("/") + 1);
    this.#group = options.group ?? false;
    this.child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      detached: this.#group,
      ...options.user,
    });
    const spawned = Promise.withResolvers<void>();
    const exited = Promise.withResolvers<ProcessExit>();
    this.spawned = spawned.promise;
    this.exited = exited.promise;
    this.child.once("spawn", () => {
      running.add(this);
      spawned.resolve();
    });
    this.child.once("error", (error) => spawned.reject(new Error(`cannot start ${this.name}: ${error.message}`)));
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout = append(this.#stdout, text);
      this.#all = append(this.#all, text);
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = append(this.#stderr, text);
      this.#all = append(this.#all, text);
    });
    // 'exit', not 'close': a grandchild that keeps the pipe open must not hide that the process has ended.
    this.child.once("exit", (code, signal) => {
      running.delete(this);
      this.exit = { code, signal };
      exited.resolve(this.exit);
    });
    if (options.input !== undefined) this.child.stdin?.end(options.input);
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error(`${this.name} was not started`);
    return this.child.pid;
  }

  output(): string {
    return this.#all;
  }

  stdout(): string {
    return this.#stdout;
  }

  stderr(): string {
    return this.#stderr;
  }

  async waitForOutput(pattern: RegExp, options: { readonly timeoutMs?: number } = {}): Promise<RegExpMatchArray> {
    const outcome = await waitFor<{ match?: RegExpMatchArray }>(
      () => {
        // Read before the match: what was printed before the end has arrived once both streams are closed.
        const ended =
          this.exit !== undefined && this.child.stdout?.closed === true && this.child.stderr?.closed === true;
        const match = this.#all.match(pattern);
        if (match !== null) return { match };
        return ended ? {} : undefined;
      },
      {
        what: `${this.name} to print ${pattern}`,
        timeoutMs: options.timeoutMs ?? patienceMs,
        details: () => `its output so far:\n${this.#all}`,
      },
    );
    if (outcome.match !== undefined) return outcome.match;
    throw new Error(`${this.name} ended (${describe(this.exit)}) without printing ${pattern}:\n${this.#all}`);
  }

  kill(signal: NodeJS.Signals = "SIGTERM"): void {
    try {
      process.kill(this.#group ? -this.pid : this.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  async stop(options: { readonly signal?: NodeJS.Signals; readonly timeoutMs?: number } = {}): Promise<ProcessExit> {
    if (this.exit !== undefined) return this.exit;
    this.kill(options.signal ?? "SIGTERM");
    const timer = setTimeout(() => this.kill("SIGKILL"), options.timeoutMs ?? patienceMs);
    const exit = await this.exited;
    clearTimeout(timer);
    return exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function append(before: string, text: string): string {
  const after = before + text;
  return after.length > maxOutputBytes ? after.slice(-maxOutputBytes) : after;
}

function describe(exit: ProcessExit | undefined): string {
  return exit?.signal ? `signal ${exit.signal}` : `exit status ${exit?.code}`;
}

/**
 * Ports below those that the kernel gives to clients and to port zero (32768 and up), so that no connection of somebody
 * else takes one by chance between now and the start of the program that it is for.
 */
const firstPort = 20_000;
const portCount = 12_000;

/**
 * A free port, for programs that cannot be told "port zero" (Envoy's and nginx's configuration files); it is this
 * process's until it ends. Prefer port zero wherever it is possible.
 */
export async function freePort(address = "127.0.0.1"): Promise<number> {
  // Each process begins elsewhere, so that few tries meet a port of another one.
  const start = Math.floor(Math.random() * portCount);
  for (let tried = 0; tried < portCount; tried += 1) {
    const port = firstPort + ((start + tried) % portCount);
    if ((await isMine(port)) && (await canListen(port, address))) return port;
  }
  throw new Error(`no free port between ${firstPort} and ${firstPort + portCount}`);
}

/** Several different free ports. */
export async function freePorts(count: number, address = "127.0.0.1"): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort(address));
  return ports;
}

/** 127.0.0.0/8 from here on is of no instance of `tulle up`. */
const firstBlock = 240;
const blockCount = 15 * 256;

/**
 * `127.241.7`: the first three parts of loopback addresses that are this process's until it ends, for programs whose
 * ports are fixed.
 */
export async function freeAddressBlock(): Promise<string> {
  const start = Math.floor(Math.random() * blockCount);
  for (let tried = 0; tried < blockCount; tried += 1) {
    const number = (start + tried) % blockCount;
    const block = `127.${firstBlock + (number >> 8)}.${number & 255}`;
    if (await isMine(block)) return block;
  }
  throw new Error(`no free block of addresses from 127.${firstBlock} on`);
}

/**
 * One of the processes that ask at the same time gets it: an abstract Unix socket is one's own until one's process
 * ends, however it ends.
 */
async function isMine(thing: number | string): Promise<boolean> {
  if (process.platform !== "linux") return true;
  const holder = createServer().unref();
  return listens(holder, { path: `\0tulle-test-${thing}` });
}

async function canListen(port: number, host: string): Promise<boolean> {
  const server = createServer();
  if (!(await listens(server, { port, host, exclusive: true }))) return false;
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  await promise;
  return true;
}

function listens(server: Server, where: ListenOptions): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server.once("error", () => resolve(false));
  server.listen(where, () => resolve(true));
  return promise;
}
