// How `tulle down` finds the supervisor that it may signal: not by what a file says, but by who listens on the socket
// in the state directory. The kernel tells, and a process that holds a connection open is no other one that got its
// number. Who asks it something there (`tulle exec`) sends a line of JSON and gets one.
import { chmodSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { descriptorOf } from "@tulle/listening";
import { findSocketPath, makeSocketPath, NotOwn, ownUid, userName } from "@tulle/identity/own";
import { unixSocketPeer } from "@tulle/capture";
import { processStartTime } from "./process-start-time.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const socketName = "supervisor.sock";
const maxConnections = 16;
const maxQuestionCharacters = 64 * 1024;
/** A supervisor from before there were questions says nothing. */
const answerTimeoutMs = 60_000;

/** Says nothing unless it is asked; that it is there is what it is for. */
export class SupervisorSocket {
  readonly #server: Server;
  readonly #path: string;

  private constructor(server: Server, path: string) {
    this.#server = server;
    this.#path = path;
  }

  /** A question that `answer` gives nothing for ends its connection. */
  static async listen(
    stateDir: string,
    env: Environment,
    answer: (asked: unknown) => unknown,
  ): Promise<SupervisorSocket> {
    const socketPath = makeSocketPath(stateDir, socketName, env);
    rmSync(socketPath, { force: true });
    const server = createServer((socket) => {
      socket.unref();
      socket.on("error", () => socket.destroy());
      answerLines(socket, answer);
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

  /**
   * The answer to one question.
   * @throws {Error} with a message for people where there is none
   */
  async ask(question: unknown): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const fail = (): void => reject(new Error("the supervisor has not answered: it ends, or is of an older version"));
    const timer = setTimeout(fail, answerTimeoutMs);
    let text = "";
    const take = (chunk: string): void => {
      text += chunk;
      if (text.endsWith("\n")) resolve(JSON.parse(text));
    };
    this.#connection.setEncoding("utf8").on("data", take).once("close", fail);
    if (this.isConnected) this.#connection.write(`${JSON.stringify(question)}\n`);
    else fail();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#connection.off("data", take).off("close", fail);
    }
  }

  async isGone(): Promise<boolean> {
    return (await processStartTime(this.pid)) !== this.#startTime;
  }

  [Symbol.dispose](): void {
    this.#connection.destroy();
  }
}

/** What is no JSON, or longer than any question, ends the connection. */
function answerLines(socket: Socket, answer: (asked: unknown) => unknown): void {
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      const answered = answerTo(text.slice(0, end), answer);
      text = text.slice(end + 1);
      if (answered === undefined) socket.destroy();
      else socket.write(`${answered}\n`);
    }
    if (text.length > maxQuestionCharacters) socket.destroy();
  });
}

function answerTo(line: string, answer: (asked: unknown) => unknown): string | undefined {
  let asked: unknown;
  try {
    asked = JSON.parse(line);
  } catch {
    return undefined;
  }
  const answered = answer(asked);
  return answered === undefined ? undefined : JSON.stringify(answered);
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
