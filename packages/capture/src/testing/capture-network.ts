// A pod and the world outside, two networks joined by two cables, with servers that say who answered and for which
// destination. Clients are curl and Node's resolver of names.
import { createSocket } from "node:dgram";
import { createServer } from "node:http";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { NetworkNamespace } from "../../../../tests/tools/network-namespace.ts";
import { runCommand } from "../../../../tests/tools/run-command.ts";
import { redirectedFrom } from "./redirected-from.ts";

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
    const server = createServer((request, response) => {
      response.setHeader("connection", "close");
      response.end(`${name} ${redirectedFrom(request.socket)}`);
    });
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

  /** The address that a name has by the server that is asked. */
  async lookUp(server: string, who: Who = "app"): Promise<string> {
    const program = `
      const resolver = new (require("node:dns").promises.Resolver)({ timeout: 20_000, tries: 1 });
      resolver.setServers([process.argv[1]]);
      resolver.resolve4("name.test").then(([ip]) => console.log(ip), ({ code }) => console.log(code));`;
    const { stdout, stderr } = await this.pod.within(() =>
      runCommand(process.execPath, ["-e", program, server], identities[who]),
    );
    return stdout.trim() || stderr;
  }
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
