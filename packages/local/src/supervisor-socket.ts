// How `tulle down` finds the supervisor that it may signal: not by what a file says, but by who listens on the socket
// in the state directory. The kernel tells, and a process that holds a connection open is no other one that got its
// number.
import { chmodSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { descriptorOf } from "@tulle/listening";
import { findSocketPath, makeSocketPath, NotOwn, ownUid, userName } from "@tulle/identity/own";
import { unixSocketPeer } from "@tulle/capture";
import { processStartTime } from "./process-start-time.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const socketName = "supervisor.sock";
const maxConnections = 16;

/** Says nothing; that it is there is what it is for. */
export class SupervisorSocket {
  readonly #server: Server;
  readonly #path: string;

  private constructor(server: Server, path: string) {
    this.#server = server;
    this.#path = path;
  }

  static async listen(stateDir: string, env: Environment): Promise<SupervisorSocket> {
    const socketPath = makeSocketPath(stateDir, socketName, env);
    rmSync(socketPath, { force: true });
    const server = createServer((socket) => {
      socket.unref();
      socket.on("error", () => socket.destroy());
      socket.resume();
    });
    server.maxConnections = maxConnections;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    server.listen({ path: socketPath }, resolve);
    await promise;
    chmodSync(socketPath, 0o600);
    server.unref();
    return new SupervisorSocket(server, socketPath);
  }

  close(): void {
    this.#server.close();
    rmSync(this.#path, { force: true });
  }
}

/** A supervisor that runs, and is known for it. */
export class FoundSupervisor implements Disposable {
  readonly pid: number;
  readonly #startTime: string;
  readonly #connection: Socket;
  /** Its end of the connection is open. */
  isConnected = true;

  private constructor(pid: number, startTime: string, connection: Socket) {
    this.pid = pid;
    this.#startTime = startTime;
    this.#connection = connection;
    connection.on("close", () => (this.isConnected = false));
    connection.resume();
  }

  /**
   * Undefined where none listens.
   * @throws {NotOwn} where another user's process does
   */
  static async find(stateDir: string, env: Environment): Promise<FoundSupervisor | undefined> {
    const connection = await connectTo(findSocketPath(stateDir, socketName, env));
    if (connection === undefined) return undefined;
    const peer = unixSocketPeer(descriptorOf(connection));
    if (peer === undefined) {
      connection.destroy();
      throw new NotOwn(`the system does not tell whose the supervisor's socket in ${stateDir} is`);
    }
    const { pid, uid } = peer;
    const startTime = await processStartTime(pid);
    if (uid === ownUid() && startTime !== undefined) return new FoundSupervisor(pid, startTime, connection);
    connection.destroy();
    if (uid !== ownUid()) throw new NotOwn(`the supervisor's socket in ${stateDir} is one of user ${userName(uid)}`);
    return undefined;
  }

  /**
   * To this very process: while its end of the connection is open, its number is nobody else's. One that has just ended
   * gets none.
   */
  signal(signal: NodeJS.Signals): void {
    if (!this.isConnected) return;
    try {
      process.kill(this.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  async isGone(): Promise<boolean> {
    return (await processStartTime(this.pid)) !== this.#startTime;
  }

  [Symbol.dispose](): void {
    this.#connection.destroy();
  }
}

function connectTo(socketPath: string): Promise<Socket | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket | undefined>();
  const socket = connect({ path: socketPath });
  socket.once("connect", () => resolve(socket));
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(undefined);
    else reject(error);
  });
  return promise;
}
