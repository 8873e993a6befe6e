// Whether the server can do its work now, for `/readyz`: it has keys, its database answers, takes writes, and has room
// for more of them.
import { statfs } from "node:fs/promises";
import type { ServerContext } from "./server-context.ts";
import { writeFact } from "./store/facts.ts";

/** SQLite's log takes 6 MB before it goes into the file (`store/sqlite.ts`): with less, some commit soon fails. */
export const minFreeBytes = 8 * 1024 * 1024;
/** Whoever asks more often gets the last answer: each look is a commit. */
export const maxAnswerAgeMs = 1000;

export class Readiness {
  readonly #server: ServerContext;
  #problem: string | undefined;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<string | undefined> | undefined;

  constructor(server: ServerContext) {
    this.#server = server;
  }

  /** In words for who asks; undefined when the server is ready. The reasons of the machine are in the log alone. */
  problem(): Promise<string | undefined> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #look(): Promise<string | undefined> {
    const { database, keys } = this.#server;
    if (!keys.ready) return "there are no signing keys yet";
    let nowMs: number;
    try {
      nowMs = await database.read(async (reader) => {
        await reader.get("SELECT version FROM schema_versions LIMIT 1");
        return reader.nowMs;
      });
    } catch (error) {
      // Once it answers again it is asked anew.
      this.#lookedAtMs = Number.NEGATIVE_INFINITY;
      return this.#take({ answer: "the database does not answer", detail: String(error) });
    }
    // A clock that was set back looks anew.
    const ageMs = nowMs - this.#lookedAtMs;
    if (ageMs >= 0 && ageMs < maxAnswerAgeMs) return this.#problem;
    const problem = (await this.#roomProblem()) ?? (await this.#writeProblem(nowMs));
    this.#lookedAtMs = nowMs;
    return this.#take(problem);
  }

  /** Of SQLite; PostgreSQL's disk is elsewhere. */
  async #roomProblem(): Promise<Problem | undefined> {
    const { config } = this.#server;
    if (config.databaseUrl !== undefined) return undefined;
    const disk = await statfs(config.dataDir).catch(() => undefined);
    if (disk === undefined || disk.bavail * disk.bsize >= minFreeBytes) return undefined;
    const needed = `${minFreeBytes / 1024 / 1024} MiB`;
    return {
      answer: `the disk of the data directory is full: make ${needed} of room`,
      detail: `less than ${needed} are left at ${config.dataDir}`,
    };
  }

  async #writeProblem(nowMs: number): Promise<Problem | undefined> {
    try {
      await writeFact(this.#server.database, "last look at readiness", new Date(nowMs).toISOString());
      return undefined;
    } catch (error) {
      return { answer: "the database takes no writes; the log says why", detail: String(error) };
    }
  }

  /** The log tells of changes alone. */
  #take(problem: Problem | undefined): string | undefined {
    const { log } = this.#server;
    if (problem?.answer !== this.#problem) {
      if (problem === undefined) log.info("ready again");
      else log.warning("not ready", { reason: problem.answer, detail: problem.detail });
    }
    this.#problem = problem?.answer;
    return this.#problem;
  }
}

interface Problem {
  readonly answer: string;
  readonly detail: string;
}
