// A pod and the world outside, two networks joined by two cables, with servers that say who answered and for which
// destination. Clients are curl and Node's resolver of names.
import { createSocket } from "node:dgram";
import { createServer } from "node:http";
import { connect, type LookupFunction, type Socket } from "node:net";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { NetworkNamespace } from "../../../../tests/tools/network-namespace.ts";
import { inTime } from "../../../../tests/tools/processes.ts";
import { runCommand } from "../../../../tests/tools/run-command.ts";
import { originalDestination } from "../kernel.ts";

/** Addresses at the cables: 10.77 and fd77 at the first, 10.78 and fd78 at the second; `far` is behind the world. */
export const world = { ip: "10.77.0.1", ip6: "[fd77::1]", second: "10.78.0.1", far: "10.88.0.1", far6: "[fd88::1]" };
export const own = { ip: "10.77.0.2", ip6: "[fd77::2]", second: "10.78.0.2" };

export const proxyUser = 1337;
const nobody = 65_534;

/** Whose program: any one, one of the proxy's user, or one of its group alone. */
export type Who = "app" | "proxy" | "proxy-group";

const identities = {
  app: { uid: nobody, gid: nobody },
  proxy: { uid: proxyUser, gid: nobody },
  "proxy-group": { uid: nobody, gid: proxyUser },
} as const;

/** What the servers of DNS say to every question. */
export const dnsAnswers = { proxy: "192.0.2.53", world: "192.0.2.1" } as const;

const worldPorts = [53, 80, 443, 5000, 15_001];
const appPorts = [8080, 9090, 15_008, 15_020];

export class CaptureNetwork {
  readonly pod: NetworkNamespace;
  readonly world: NetworkNamespace;

  private constructor(pod: NetworkNamespace, outside: NetworkNamespace) {
    this.pod = pod;
    this.world = outside;
  }

  /** With all servers but the proxy's. @throws {ToolUnavailable} */
  static async open(): Promise<CaptureNetwork> {
    await debianTool("nftables");
    await debianTool("curl");
    const network = new CaptureNetwork(await NetworkNamespace.create(), await NetworkNamespace.create());
    await network.pod.connect(network.world, "eth0");
    await network.pod.connect(network.world, "eth1");
    await network.#giveAddresses();
    for (const port of worldPorts) network.#listen(network.world, port, "world");
    for (const port of appPorts) network.#listen(network.pod, port, "app");
    for (const ip of [world.ip, "fd77::1", world.far, "fd88::1"]) {
      network.#answerDns(network.world, ip, 53, dnsAnswers.world);
    }
    return network;
  }

  async #giveAddresses(): Promise<void> {
    const ip = (network: NetworkNamespace, line: string): Promise<string> => network.mustRun("ip", ...line.split(" "));
    const ends = [
      [this.world, 1],
      [this.pod, 2],
    ] as const;
    for (const [network, last] of ends) {
      for (const cable of [0, 1]) {
        await ip(network, `address add 10.${77 + cable}.0.${last}/24 dev eth${cable}`);
        await ip(network, `address add fd${77 + cable}::${last}/64 dev eth${cable} nodad`);
      }
    }
    await ip(this.world, `address add ${world.far}/32 dev lo`);
    await ip(this.world, "address add fd88::1/128 dev lo nodad");
    await ip(this.pod, `route add default via ${world.ip}`);
    await ip(this.pod, "-6 route add default via fd77::1");
  }

  /** The proxy's ports, which can be closed as if it had ended. */
  serveProxy(): Disposable {
    const proxy = new DisposableStack();
    proxy.use(this.#listen(this.pod, 15_001, "outbound"));
    proxy.use(this.#listen(this.pod, 15_006, "inbound"));
    proxy.use(this.#listen(this.pod, 15_053, "dns"));
    // At "::" the kernel would answer from the asker's own address, and he would not know whose answer it is.
    for (const ip of ["127.0.0.1", "::1"]) proxy.use(this.#answerDns(this.pod, ip, 15_053, dnsAnswers.proxy));
    return proxy;
  }

  /** Whoever asks is told the server's name and where the connection was going. */
  #listen(network: NetworkNamespace, port: number, name: string): Disposable {
    const server = createServer((request, response) => response.end(`${name} ${destinationOf(request.socket)}`));
    network.within(() => server.listen(port));
    server.unref();
    const closed = new DisposableStack();
    closed.defer(() => {
      server.close();
      server.closeAllConnections();
    });
    return closed;
  }

  #answerDns(network: NetworkNamespace, at: string, port: number, answer: string): Disposable {
    const [type, family] = at.includes(":") ? (["udp6", 6] as const) : (["udp4", 4] as const);
    // It binds at once where looking up is no wait.
    const socket = createSocket({ type, lookup: (host, _options, done) => done(null, host, family) });
    socket.on("message", (question, asker) => {
      socket.send(dnsAnswer(question, answer), asker.port, asker.address);
    });
    network.within(() => socket.bind(port, at));
    socket.unref();
    const closed = new DisposableStack();
    closed.defer(() => socket.close());
    return closed;
  }

  /** What a program of the pod gets at an address, or why it gets nothing. */
  call(at: string, who: Who = "app", ...args: readonly string[]): Promise<string> {
    return curl(this.pod, at, who, args);
  }

  callFromOutside(at: string): Promise<string> {
    return curl(this.world, at, "app", []);
  }

  /** A connection that stays open, which asks again and again. */
  connect(from: "pod" | "world", ip: string, port: number): OpenConnection {
    return new OpenConnection(this[from], ip, port);
  }

  /** The address that a name has by the server that is asked. */
  lookUp(server: string, who: Who = "app"): Promise<string> {
    return this.#runProgram(
      who,
      server,
      `
      const resolver = new (require("node:dns").promises.Resolver)({ timeout: 20_000, tries: 1 });
      resolver.setServers([process.argv[1]]);
      resolver.resolve4("name.test").then(([ip]) => console.log(ip), ({ code }) => console.log(code));`,
    );
  }

  /** The same, by a question from a port that is chosen (IPv4 alone). */
  lookUpFromPort(server: string, port: number, who: Who): Promise<string> {
    const question = "0000010000010000000000000000010001";
    return this.#runProgram(
      who,
      server,
      `
      const socket = require("node:dgram").createSocket("udp4");
      socket.on("message", (answer) => { console.log(answer.subarray(-4).join(".")); socket.close(); });
      socket.bind(${port}, () => socket.send(Buffer.from("${question}", "hex"), 53, process.argv[1]));`,
    );
  }

  async #runProgram(who: Who, argument: string, program: string): Promise<string> {
    const args = ["-e", program, argument];
    const { stdout, stderr } = await this.pod.within(() => runCommand(process.execPath, args, identities[who]));
    return stdout.trim() || stderr;
  }
}

export class OpenConnection implements Disposable {
  readonly #socket: Socket;
  /** Its error, which may come while nobody asks: a late acknowledgement is enough for the other side to end it. */
  readonly #error: Promise<string>;

  constructor(network: NetworkNamespace, ip: string, port: number) {
    // It is opened at once where looking up is no wait.
    const lookup: LookupFunction = (host, _options, done) => done(null, host.slice(3), ip.includes(":") ? 6 : 4);
    this.#socket = network.within(() => connect({ host: `at ${ip}`, port, lookup, autoSelectFamily: false }));
    this.#socket.setNoDelay();
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#error = promise;
    this.#socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  }

  /** What the server says, or why it says nothing any more. */
  async ask(): Promise<string> {
    const socket = this.#socket;
    const { promise, resolve } = Promise.withResolvers<string>();
    let text = "";
    const take = (part: Buffer): void => {
      text += part.toString();
      const [head = "", body = ""] = text.split("\r\n\r\n");
      if (body.length > 0 && body.length === Number(/content-length: (\d+)/i.exec(head)?.[1])) resolve(body);
    };
    socket.on("data", take);
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    try {
      return await inTime(Promise.race([this.#error, promise]), "an answer");
    } finally {
      socket.off("data", take);
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** `10.0.0.1:80`, `[fd00::1]:80`: where a connection was going; its own address where nothing redirected it. */
function destinationOf(socket: Socket): string {
  const { localAddress = "", localPort } = socket;
  const descriptor = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle.fd;
  // In a network without rules that need it the kernel follows no connection.
  const direct = { ip: localAddress.replace("::ffff:", ""), port: localPort };
  const { ip, port } = originalDestination(descriptor, localAddress) ?? direct;
  return ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`;
}

async function curl(network: NetworkNamespace, at: string, who: Who, args: readonly string[]): Promise<string> {
  const all = ["-sS", "-g", "--noproxy", "*", "--max-time", "30", ...args, `http://${at}/`];
  const { code, stdout, stderr } = await network.within(() => runCommand("curl", all, identities[who]));
  if (code === 0) return stdout;
  // 7: no connection; 28, that nobody answered in time, is another one.
  return code === 7 ? "refused" : stderr.trim();
}

/** The question with one answer behind it (RFC 1035 §4.1). */
function dnsAnswer(question: Buffer, address: string): Buffer {
  const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split(".").map(Number)]);
  // Behind the name's end, its type and class; what else the resolver sent (EDNS) is left out.
  const asked = question.subarray(0, question.indexOf(0, 12) + 5);
  const message = Buffer.concat([asked, answer]);
  message.writeUInt16BE(0x81_80, 2); // a response, without an error
  for (const [field, count] of [1, 1, 0, 0].entries()) message.writeUInt16BE(count, 4 + field * 2);
  return message;
}
