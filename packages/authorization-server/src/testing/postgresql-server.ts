// A real PostgreSQL server for one test file, under Debian's own user for it where the test runs as root, in a folder
// of its own on a free port.
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { freePorts } from "../../../../tests/tools/processes.ts";
import { spawn } from "node:child_process";
import { runCommand } from "../../../../tests/tools/run-command.ts";

export interface PostgresqlServer extends AsyncDisposable {
  /** A new, empty database in it. */
  newDatabase(): Promise<string>;
  /** Ends it at once, as a crash does. */
  crash(): Promise<void>;
  start(): Promise<void>;
}

interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

/** PostgreSQL refuses to run as root. */
async function databaseOwner(): Promise<Owner> {
  if (process.getuid?.() !== 0) return {};
  const ids = await Promise.all(["-u", "-g"].map((flag) => runCommand("id", [flag, "postgres"])));
  const [uid, gid] = ids.map(({ stdout }) => Number(stdout.trim()));
  if (uid === undefined || gid === undefined || uid === 0) throw new Error("there is no user postgres on this machine");
  return { uid, gid };
}

/** What it says is in `output` where it fails: the server that pg_ctl starts would keep a pipe open. */
async function run(owner: Owner, output: string, command: string, args: readonly string[]): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  const file = openSync(output, "a");
  const child = spawn(command, args, { ...owner, stdio: ["ignore", file, file], cwd: "/", timeout: 60_000 });
  closeSync(file);
  child.once("error", reject);
  child.once("exit", resolve);
  const code = await promise;
  if (code === 0) return;
  throw new Error(`${path.basename(command)} ended with ${code}:\n${readFileSync(output, "utf8")}`);
}

export async function postgresqlServer(): Promise<PostgresqlServer> {
  const programs = path.dirname(await debianTool("postgresql"));
  const owner = await databaseOwner();
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-postgresql-"));
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(folder, owner.uid, owner.gid);
  const data = path.join(folder, "data");
  const [port] = await freePorts(1);
  const program = (name: string): string => path.join(programs, name);
  const output = path.join(folder, "output");
  await run(owner, output, program("initdb"), ["-D", data, "-A", "trust", "-U", "tulle", "-E", "UTF8", "--no-sync"]);
  const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${folder} -c fsync=off`;
  const start = (): Promise<void> =>
    run(owner, output, program("pg_ctl"), ["-D", data, "-w", "-l", path.join(folder, "log"), "-o", options, "start"]);
  const stop = (): Promise<void> =>
    run(owner, output, program("pg_ctl"), ["-D", data, "-w", "-m", "immediate", "stop"]);
  await start();
  let count = 0;
  let running = true;
  return {
    newDatabase: async () => {
      const name = `tulle_${(count += 1)}`;
      await run(owner, output, program("createdb"), ["-h", "127.0.0.1", "-p", String(port), "-U", "tulle", name]);
      return `postgres://tulle@127.0.0.1:${port}/${name}`;
    },
    crash: async () => {
      running = false;
      await stop();
    },
    start: async () => {
      await start();
      running = true;
    },
    [Symbol.asyncDispose]: async () => {
      if (running) await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
