// Two nodes with pods and a client outside, as networks of this process: each node has a bridge of its pods, and all
// stand on one bridge of machines. Servers say which pod they are, and whom they see.
import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, isIPv6, type LookupFunction, type Socket } from "node:net";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { NetworkNamespace } from "../../../../tests/tools/network-namespace.ts";
import { inTime } from "../../../../tests/tools/processes.ts";

export type Protocol = "tcp" | "udp";

/** Where what stands: 192.0.2 and fd02 are the machines', 10.244.N and fd44:N a node's pods'. */
export const machine = {
  node1: { 4: "192.0.2.1", 6: "fd02::1" },
  node2: { 4: "192.0.2.2", 6: "fd02::2" },
  client: { 4: "192.0.2.9", 6: "fd02::9" },
  fabric: { 4: "192.0.2.254", 6: "fd02::fe" },
} as const;
export const podAddress = {
  one: { 4: "10.244.1.11", 6: "fd44:1::11" },
  two: { 4: "10.244.2.12", 6: "fd44:2::12" },
  three: { 4: "10.244.2.13", 6: "fd44:2::13" },
  caller: { 4: "10.244.1.99", 6: "fd44:1::99" },
} as const;
export type PodName = keyof typeof podAddress;
/** What a pod sees of a call that has taken its node's address on the way. */
export const gateway = {
  node1: { 4: "10.244.1.1", 6: "fd44:1::1" },
  node2: { 4: "10.244.2.1", 6: "fd44:2::1" },
} as const;
export type NodeName = keyof typeof gateway;

export const nodeOf = { one: "node1", two: "node2", three: "node2", caller: "node1" } as const;
/** At it all pods serve, by both protocols. */
export const podPort = 8080;

export class NodeNetwork {
  readonly nodes: Readonly<Record<NodeName, NetworkNamespace>>;
  readonly client: NetworkNamespace;
  readonly pods: Readonly<Record<PodName, NetworkNamespace>>;
  /** Where the bridge of machines is. */
  readonly fabric: NetworkNamespace;

  private constructor(all: readonly NetworkNamespace[]) {
    const [fabric, node1, node2, client, one, two, three, caller] = all;
    this.fabric = fabric!;
    this.nodes = { node1: node1!, node2: node2! };
    this.client = client!;
    this.pods = { one: one!, two: two!, three: three!, caller: caller! };
  }

  /** @throws {ToolUnavailable} */
  static async open(): Promise<NodeNetwork> {
    for (const tool of ["nftables", "iproute2", "conntrack"] as const) await debianTool(tool);
    const all: NetworkNamespace[] = [];
    while (all.length < 8) all.push(await NetworkNamespace.create());
    const network = new NodeNetwork(all);
    await network.#connect();
    for (const name of ["one", "two", "three"] as const) await network.#serve(name);
    return network;
  }

  async #connect(): Promise<void> {
    const ip = (network: NetworkNamespace, ...lines: readonly string[]): Promise<string> =>
      network.mustRun("sh", "-ec", lines.map((line) => (line.startsWith("echo") ? line : `ip ${line}`)).join("\n"));
    const fabric = this.fabric;
    await ip(
      fabric,
      "link add machines type bridge",
      "link set machines up",
      `address add ${machine.fabric[4]}/24 dev machines`,
      `address add ${machine.fabric[6]}/64 dev machines nodad`,
    );
    for (const [name, network] of [
      ["node1", this.nodes.node1],
      ["node2", this.nodes.node2],
      ["client", this.client],
    ] as const) {
      await network.connect(fabric, name);
      await ip(fabric, `link set ${name} master machines`);
      await ip(
        network,
        `address add ${machine[name][4]}/24 dev ${name}`,
        `address add ${machine[name][6]}/64 dev ${name} nodad`,
      );
    }
    for (const [name, other, number] of [
      ["node1", "node2", 1],
      ["node2", "node1", 2],
    ] as const) {
      const node = this.nodes[name];
      await ip(
        node,
        "link add pods type bridge",
        "link set pods up",
        `address add ${gateway[name][4]}/24 dev pods`,
        `address add ${gateway[name][6]}/64 dev pods nodad`,
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
        `route add 10.244.${3 - number}.0/24 via ${machine[other][4]}`,
        `-6 route add fd44:${3 - number}::/64 via ${machine[other][6]}`,
        // Addresses of Services lead somewhere before they are looked at.
        `route add default via ${machine[other][4]}`,
        `-6 route add default via ${machine[other][6]}`,
      );
      await ip(
        fabric,
        `route add 10.244.${number}.0/24 via ${machine[name][4]}`,
        `-6 route add fd44:${number}::/64 via ${machine[name][6]}`,
      );
    }
    for (const [name, pod] of Object.entries(this.pods) as readonly (readonly [PodName, NetworkNamespace])[]) {
      const [node, addresses] = [nodeOf[name], podAddress[name]];
      await pod.connect(this.nodes[node], name);
      // Where the kernel looks at bridged packets, too, a pod's call to itself goes back by the port that it came from.
      await ip(this.nodes[node], `link set ${name} master pods`, `link set ${name} type bridge_slave hairpin on`);
      // Alone in its network: what goes to another pod, and its answers, go by the node, which has changed addresses.
      await ip(
        pod,
        `address add ${addresses[4]}/32 dev ${name}`,
        `address add ${addresses[6]}/128 dev ${name} nodad`,
        `route add default via ${gateway[node][4]} dev ${name} onlink`,
        `-6 route add default via ${gateway[node][6]} dev ${name} onlink`,
        "echo 0 > /proc/sys/net/ipv4/conf/all/accept_redirects",
        `echo 0 > /proc/sys/net/ipv4/conf/${name}/accept_redirects`,
        `echo 0 > /proc/sys/net/ipv6/conf/${name}/accept_redirects`,
      );
    }
    // The client's way to Services' addresses is by the first node, as a route to a cluster may be.
    await ip(
      this.client,
      `route add 10.96.0.0/16 via ${machine.node1[4]}`,
      `-6 route add fd96::/108 via ${machine.node1[6]}`,
      `route add 203.0.113.0/24 via ${machine.node1[4]}`,
    );
  }

  async #serve(name: PodName): Promise<void> {
    const pod = this.pods[name];
    const server = createServer((socket) => {
      socket.on("error", () => undefined).end(`${name} sees ${plain(socket.remoteAddress)}`);
    });
    pod.within(() => server.listen(podPort));
    server.unref();
    for (const family of [4, 6] as const) {
      const socket = await datagramSocket(pod, podAddress[name][family], podPort);
      socket.on("message", (_message, { address, port }) => {
        socket.send(`${name} sees ${address}`, port, address);
      });
    }
  }

  /** What a program of that network gets at an address, or the code of why it gets nothing. */
  async call(from: NetworkNamespace, address: string, port: number, protocol: Protocol = "tcp"): Promise<string> {
    if (protocol === "tcp") {
      await using connection = new Connection(from, address, port);
      return await connection.answer();
    }
    using flow = await Flow.open(from, address, port);
    return await flow.ask();
  }
}

function plain(address = ""): string {
  return address.replace("::ffff:", "");
}

/** A socket is made at once where looking up is no wait. */
const lookUpNothing: LookupFunction = (host, _options, done) =>
  done(null, host.replace(/^at /, ""), isIPv6(host.replace(/^at /, "")) ? 6 : 4);

/** A connection to somebody who says something and ends it. */
export class Connection implements AsyncDisposable {
  readonly #socket: Socket;
  readonly #result: Promise<string>;
  isDone = false;

  constructor(from: NetworkNamespace, address: string, port: number, localAddress?: string) {
    const where = { host: `at ${address}`, port, lookup: lookUpNothing, autoSelectFamily: false };
    this.#socket = from.within(() => connect(localAddress === undefined ? where : { ...where, localAddress }));
    const { promise, resolve } = Promise.withResolvers<string>();
    let text = "";
    this.#socket.setEncoding("utf8").on("data", (part: string) => (text += part));
    this.#socket.on("end", () => resolve(text));
    this.#socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    this.#result = promise;
    void promise.then(() => (this.isDone = true));
  }

  answer(): Promise<string> {
    return inTime(this.#result, "an answer");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
    if (!this.#socket.closed) await once(this.#socket, "close");
  }
}

/** Bound to an address of that network. */
export async function datagramSocket(
  network: NetworkNamespace,
  address: string,
  port: number,
): Promise<DatagramSocket> {
  const lookup = (host: string, _options: unknown, done: (error: null, ip: string, family: number) => void): void =>
    done(null, host, isIPv6(host) ? 6 : 4);
  const socket = createSocket({ type: isIPv6(address) ? "udp6" : "udp4", lookup } as Parameters<
    typeof createSocket
  >[0]);
  const listening = once(socket, "listening");
  network.within(() => socket.bind(port, address));
  await listening;
  socket.unref();
  return socket;
}

/** Datagrams from one port to another. */
export class Flow implements Disposable {
  readonly #socket: DatagramSocket;

  private constructor(socket: DatagramSocket) {
    this.#socket = socket;
  }

  static async open(from: NetworkNamespace, address: string, port: number): Promise<Flow> {
    const socket = await datagramSocket(from, isIPv6(address) ? "::" : "0.0.0.0", 0);
    const connected = once(socket, "connect");
    socket.connect(port, address);
    await connected;
    return new Flow(socket);
  }

  /**
   * The next answer, or the code of why there is none. It asks again, as resolvers do: the kernel bounds how often it
   * says that a port is closed.
   */
  async ask(): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const onError = (error: NodeJS.ErrnoException): void => resolve(error.code ?? error.message);
    this.#socket.once("message", (message) => resolve(message.toString())).once("error", onError);
    const send = (): void => this.#socket.send("hello", () => undefined);
    const again = setInterval(send, 1000);
    send();
    try {
      return await inTime(promise, "an answer");
    } finally {
      clearInterval(again);
      this.#socket.removeAllListeners("message").removeAllListeners("error");
    }
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}
