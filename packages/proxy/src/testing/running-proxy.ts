// A data path on real sockets for tests: hand-built routes behind a free port, back ends that do what the test says,
// and the access log as a list.
import net from "node:net";
import type { TestContext } from "node:test";
import { Logging } from "@tulle/telemetry";
import { inTime } from "../../../../tests/tools/processes.ts";
import type { Clock } from "../worker/clock.ts";
import { DataPath } from "../worker/data-path.ts";
import type { HttpFilter } from "../http/filter.ts";
import { responseFlagsText } from "../http/response-flags.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import { ListenerHost } from "../listener/listener-host.ts";
import type { RouteAction } from "../route/route-table.ts";
import type { HttpConnectionManagerConfig } from "../http-connection-manager/http-connection-manager-config.ts";
import { handBuiltConnectionManager, handBuiltListener, prefixRoutes } from "./hand-built-runtime.ts";

/** Longest wait for anything in a test: on a busy machine another process may be late. */
const patienceMs = 60_000;
/** After so many turns of the event loop it is another process that is waited for, and needs the core. */
const eagerTurns = 100;

export interface RunningProxy {
  readonly port: number;
  readonly host: ListenerHost;
  readonly config: HttpConnectionManagerConfig;
  readonly dataPath: DataPath;
  /** `<code> <flags> <details>` of each request that has ended. */
  readonly log: string[];
  readonly infos: StreamInfo[];
}

export interface RunningProxyOptions {
  readonly routes: Readonly<Record<string, RouteAction>>;
  readonly config?: Partial<HttpConnectionManagerConfig>;
  readonly filters?: readonly HttpFilter[];
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly bufferLimitBytes?: number;
}

/** What ends with a test, or with a part of it. */
export interface Scope {
  after(end: () => void | Promise<unknown>): void;
}

export async function runProxy(t: Scope, options: RunningProxyOptions): Promise<RunningProxy> {
  const log: string[] = [];
  const infos: StreamInfo[] = [];
  const record = (info: StreamInfo): void => {
    infos.push(info);
    log.push(`${info.responseCode} ${responseFlagsText(info.responseFlags)} ${info.responseCodeDetails}`);
  };
  const routes = prefixRoutes(options.routes);
  const config = handBuiltConnectionManager(routes, { log: record }, options.config, options.filters);
  const dataPath = new DataPath({
    logging: new Logging({ level: "off" }),
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    random: options.random ?? (() => 0.5),
  });
  const host = new ListenerHost({ dataPath, inheritedDescriptors: new Map() });
  const perConnectionBufferLimitBytes = options.bufferLimitBytes ?? 1024 * 1024;
  const fault = await host.apply({ ...handBuiltListener(config), perConnectionBufferLimitBytes });
  if (fault !== undefined) throw new Error(fault);
  const port = host.boundAddresses().get("hand-built")![0]!.port;
  t.after(() =>
    inTime(host.stop(), "the proxy to let its connections go").catch((error: Error) => {
      // A hook that fails is the last: what is open would keep the process, and its failure to itself.
      for (const socket of openSockets) socket.destroy();
      throw error;
    }),
  );
  return { port, host, config, dataPath, log, infos };
}

export interface Backend {
  readonly port: number;
  /** All that has arrived, `<FIN>` and `<CLOSED>` where a connection ended, in order of events. */
  readonly seen: string[];
  readonly sockets: net.Socket[];
}

/** `act` runs for each piece that arrives on a connection; `turn` counts the pieces of that connection. */
export async function runBackend(
  t: TestContext,
  act: (socket: net.Socket, data: string, turn: number) => void,
): Promise<Backend> {
  const seen: string[] = [];
  const sockets: net.Socket[] = [];
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    let turn = 0;
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      seen.push(data.toString("latin1"));
      act(socket, data.toString("latin1"), turn);
      turn += 1;
    });
    socket.on("end", () => {
      seen.push("<FIN>");
      socket.end();
    });
    socket.on("close", () => seen.push("<CLOSED>"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as net.AddressInfo).port, seen, sockets };
}

/** Of clients. */
const openSockets = new Set<net.Socket>();

export class Client {
  readonly socket: net.Socket;
  received = "";
  ended = false;

  private constructor(socket: net.Socket) {
    this.socket = socket;
    socket.on("data", (data) => (this.received += data.toString("latin1")));
    socket.on("end", () => (this.ended = true));
    socket.on("close", () => (this.ended = true));
    socket.on("error", () => undefined);
  }

  static async connect(t: TestContext, port: number): Promise<Client> {
    const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    openSockets.add(socket);
    socket.once("close", () => openSockets.delete(socket));
    t.after(() => socket.destroy());
    const client = new Client(socket);
    await new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return client;
  }

  send(text: string): void {
    this.socket.write(Buffer.from(text, "latin1"));
  }

  /** Waits until what has come matches; gives it and forgets it. */
  async receive(pattern: RegExp): Promise<string> {
    await until(
      () => pattern.test(this.received),
      () => `${String(pattern)} in ${JSON.stringify(this.received)}`,
    );
    const text = this.received;
    this.received = "";
    return text;
  }

  async receiveEnd(): Promise<string> {
    await until(
      () => this.ended,
      () => `the end behind ${JSON.stringify(this.received)}`,
    );
    return this.received;
  }
}

/** Waits for a condition, looking at every turn of the event loop at first. */
export async function until(condition: () => boolean, what: () => string): Promise<void> {
  const endMs = performance.now() + patienceMs;
  for (let turn = 0; !condition(); turn += 1) {
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what()}`);
    await new Promise((resolve) => {
      if (turn < eagerTurns) setImmediate(resolve);
      else setTimeout(resolve, 1);
    });
  }
}
