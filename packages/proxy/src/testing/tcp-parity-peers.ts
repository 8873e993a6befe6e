// The two ends of a connection in TCP parity tables: hosts that behave in known ways, and a client that does what a
// scenario says. Both write down what they see.
import net from "node:net";
import { freePort, waitFor } from "../../../../tests/tools/processes.ts";

/** What a host does with a connection. */
const behaviours = {
  /** Sends everything back, and its own end when the client ends. */
  echo: (socket) => {
    socket.on("data", (data) => socket.write(data));
    socket.on("end", () => socket.end());
  },
  /** Speaks first. */
  banner: (socket) => {
    socket.write("hello\n");
    socket.on("end", () => socket.end());
  },
  /** Answers once and ends its side; goes on reading. */
  closer: (socket) => {
    socket.once("data", () => socket.end("bye"));
  },
  /** Answers and breaks off once the client has had the answer. */
  resetter: (socket) => {
    socket.on("data", (data) => {
      if (data.includes("now")) socket.resetAndDestroy();
      else socket.write("partial");
    });
  },
  /** Speaks when the client has ended. */
  counter: (socket) => {
    let bytes = 0;
    socket.on("data", (data) => (bytes += data.length));
    socket.on("end", () => socket.end(`got ${bytes}`));
  },
  /** Sends more than fits into any buffer. */
  source: (socket) => {
    socket.once("data", () => socket.end(Buffer.alloc(3_000_000, "x")));
  },
} as const satisfies Record<string, (socket: net.Socket) => void>;

export type HostName = keyof typeof behaviours;

export interface Hosts {
  readonly ports: Readonly<Record<HostName, number>>;
  /** A port where nobody listens. */
  readonly deadPort: number;
  /** How each connection since the last call ended, once all have. */
  endings(): Promise<readonly string[]>;
  stop(): void;
}

export async function startHosts(): Promise<Hosts> {
  const servers: net.Server[] = [];
  const open = new Set<net.Socket>();
  let ended: string[] = [];
  const listen = async (act: (socket: net.Socket) => void): Promise<number> => {
    const server = net.createServer({ allowHalfOpen: true }, (socket) => {
      open.add(socket);
      let bytes = 0;
      let ending = "closed";
      socket.on("data", (data) => (bytes += data.length));
      socket.on("end", () => (ending = "end"));
      socket.on("error", () => (ending = "reset"));
      socket.on("close", () => {
        open.delete(socket);
        ended.push(`${bytes} bytes, ${ending}`);
      });
      act(socket);
    });
    servers.push(server);
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    return (server.address() as net.AddressInfo).port;
  };
  const ports = {} as Record<HostName, number>;
  for (const [name, act] of Object.entries(behaviours)) ports[name as HostName] = await listen(act);
  // Nobody listens there, and no test is given it for a server of its own.
  const deadPort = await freePort();
  return {
    ports,
    deadPort,
    async endings() {
      await waitFor(() => open.size === 0, { what: "the hosts' connections to end" });
      const endings = ended;
      ended = [];
      return endings.sort();
    },
    stop() {
      for (const server of servers) server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

export class TcpClient {
  readonly #socket: net.Socket;
  readonly #port: number;
  #received = "";
  #ending: "open" | "end" | "reset" = "open";
  #closed = false;

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    this.#port = socket.localPort!;
    socket.on("data", (data) => (this.#received += data.toString("latin1")));
    socket.on("end", () => (this.#ending = "end"));
    socket.on("error", () => (this.#ending = "reset"));
    socket.on("close", () => (this.#closed = true));
  }

  static async connect(host: string, port: number): Promise<TcpClient> {
    const socket = net.connect({ host, port, allowHalfOpen: true });
    await new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new TcpClient(socket);
  }

  get port(): number {
    return this.#port;
  }

  send(text: string): void {
    this.#socket.write(text);
  }

  end(): void {
    this.#socket.end();
  }

  reset(): void {
    this.#socket.resetAndDestroy();
  }

  async receive(text: string): Promise<void> {
    await waitFor(() => this.#received.includes(text), { what: `${text} after ${this.#received.slice(0, 80)}` });
  }

  async receiveBytes(count: number): Promise<void> {
    await waitFor(() => this.#received.length >= count, { what: `${count} bytes` });
  }

  /** The other side has ended, in whatever way. */
  async receiveEnd(): Promise<void> {
    await waitFor(() => this.#ending !== "open" || this.#closed, { what: "the end" });
  }

  /** Ends what is still open, and tells what has come. */
  async finish(): Promise<string> {
    this.#socket.destroySoon();
    await waitFor(() => this.#closed, { what: "the client's socket to close" });
    const { length } = this.#received;
    return `${length > 100 ? `${length} bytes` : JSON.stringify(this.#received)}, ${this.#ending}`;
  }
}
