// A Prometheus from Debian, with its own defaults but for where it listens and keeps its data.
import path from "node:path";
import { debianFolder } from "./debian-folder.ts";
import { freePort, startProcess, waitFor } from "./processes.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  /** Unix seconds, and the number as text. */
  readonly value: readonly [number, string];
}

export interface Target {
  readonly scrapeUrl: string;
  readonly health: "up" | "down" | "unknown";
  readonly lastError: string;
  readonly labels: Readonly<Record<string, string>>;
}

export class Prometheus implements AsyncDisposable {
  readonly #port: number;
  readonly #process: Awaited<ReturnType<typeof startProcess>>;

  private constructor(port: number, process: Awaited<ReturnType<typeof startProcess>>) {
    this.#port = port;
    this.#process = process;
  }

  /** `configFile` is a path. Resolves when it answers. */
  static async start(configFile: string): Promise<Prometheus> {
    const { root, libraryPath } = await debianFolder(["prometheus"]);
    const port = await freePort();
    const data = temporaryFolder("prometheus-");
    const args = [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${data}`,
      `--web.listen-address=127.0.0.1:${port}`,
      `--web.console.templates=${data}`,
      `--web.console.libraries=${data}`,
    ];
    const process = await startProcess(path.join(root, "usr/bin/prometheus"), args, {
      name: "prometheus",
      env: { LD_LIBRARY_PATH: libraryPath, GOMAXPROCS: "1" },
    });
    const prometheus = new Prometheus(port, process);
    const isReady = async (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${port}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await waitFor(isReady, { what: "Prometheus to be ready", details: () => process.output() });
    return prometheus;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Its log. */
  output(): string {
    return this.#process.output();
  }

  async query(expression: string): Promise<readonly Sample[]> {
    const { result } = await this.#get<{ readonly result: readonly Sample[] }>("query", { query: expression });
    return result;
  }

  /** Of one series without labels; undefined where there is none. */
  async number(expression: string): Promise<number | undefined> {
    const [sample] = await this.query(expression);
    return sample === undefined ? undefined : Number(sample.value[1]);
  }

  async targets(): Promise<readonly Target[]> {
    const { activeTargets } = await this.#get<{ readonly activeTargets: readonly Target[] }>("targets", {});
    return activeTargets;
  }

  async exemplars(selector: string): Promise<readonly unknown[]> {
    const end = Date.now() / 1000;
    return this.#get("query_exemplars", { query: selector, start: String(end - 600), end: String(end) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stop();
  }

  async #get<T>(what: string, parameters: Readonly<Record<string, string>>): Promise<T> {
    const query = new URLSearchParams(parameters);
    const response = await fetch(`http://127.0.0.1:${this.#port}/api/v1/${what}?${query.toString()}`);
    const body = (await response.json()) as { readonly status: string; readonly error?: string; readonly data: T };
    if (body.status !== "success") throw new Error(`${parameters["query"] ?? what}: ${body.error}`);
    return body.data;
  }
}
