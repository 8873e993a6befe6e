// How pods reach the world in namespaces mode. Nothing of the machine's network is changed for it: connections that are
// for nobody of the mesh come to this process, which makes each a second time in the machine's network.
import { createServer, type Server, type Socket } from "node:net";
import { applyRules, metadataServers, type NetworkNamespace, originalDestination } from "@tulle/capture";
import { acceptBacklog, descriptorOf, joinConnections } from "@tulle/listening";
import type { MachineNetwork } from "./machine-network.ts";

/** Of all pods together; who comes then is refused. */
export const maxConnections = 4096;
/** Of one address of a pod: the others still find a place. */
const maxConnectionsOfPod = 1024;

const table = "tulle_way_out";

/** RFC 3927: no router leads on what is sent there. Of IPv6 the rules leave it out. */
const linkLocal = "169.254.";

export interface WayOutOptions {
  readonly machine: MachineNetwork;
  /** Where pods' packets come in that are for nobody of the mesh, and by which device. */
  readonly fabric: NetworkNamespace;
  readonly device: string;
  /** Ranges of the mesh itself. */
  readonly inside: { readonly ipv4: readonly string[]; readonly ipv6: readonly string[] };
  readonly connectionsOfPod?: number;
}

export class WayOut implements AsyncDisposable {
  readonly #machine: MachineNetwork;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  readonly #connectionsOfPod: number;
  /** How many are open, by the pod's address. */
  readonly #ofPod = new Map<string, number>();

  private constructor({ machine, connectionsOfPod = maxConnectionsOfPod }: WayOutOptions) {
    this.#machine = machine;
    this.#connectionsOfPod = connectionsOfPod;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket),
    );
    this.#server.maxConnections = maxConnections;
  }

  /** @throws {CaptureFailure} where the rules cannot be made */
  static async open(options: WayOutOptions): Promise<WayOut> {
    const { fabric, device, inside } = options;
    const way = new WayOut(options);
    const listening = Promise.withResolvers<void>();
    way.#server.once("error", listening.reject);
    // Without a host: looking it up would be a wait, out of that network.
    fabric.within(() => way.#server.listen({ port: 0, backlog: acceptBacklog }, listening.resolve));
    await listening.promise;
    const address = way.#server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    try {
      await fabric.within(() => applyRules(rules(device, port, inside)));
    } catch (error) {
      await way[Symbol.asyncDispose]();
      throw error;
    }
    return way;
  }

  /** Where it wanted to go is known from the kernel alone: whoever dials this port himself is refused by the rules. */
  #accept(socket: Socket): void {
    const destination = originalDestination(descriptorOf(socket), socket.localAddress ?? "");
    if (destination === undefined || this.#isMachines(destination.ip)) return void socket.resetAndDestroy();
    const pod = socket.remoteAddress ?? "";
    const open = this.#ofPod.get(pod) ?? 0;
    if (open >= this.#connectionsOfPod) return void socket.resetAndDestroy();
    this.#ofPod.set(pod, open + 1);
    socket.once("close", () => this.#left(pod));
    const onward = this.#machine.connect({ host: destination.ip, port: destination.port, allowHalfOpen: true });
    onward.setNoDelay(true);
    for (const each of [socket, onward]) {
      this.#open.add(each);
      each.once("close", () => this.#open.delete(each));
    }
    joinConnections(socket, onward);
  }

  #left(pod: string): void {
    const open = this.#ofPod.get(pod)! - 1;
    if (open > 0) this.#ofPod.set(pod, open);
    else this.#ofPod.delete(pod);
  }

  /**
   * Pods are no programs of the machine: its own servers, and those of its links (a cloud's, which hand out the
   * machine's credentials), may believe who reaches them there.
   */
  #isMachines(ip: string): boolean {
    const isUnspecified = ip === "0.0.0.0" || ip === "::";
    if (isUnspecified || ip.startsWith(linkLocal) || metadataServers.includes(ip)) return true;
    return this.#machine.isDeliveredHere(ip) !== false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    for (const socket of this.#open) socket.destroy();
    await closed.promise;
  }
}

function rules(device: string, port: number, { ipv4, ipv6 }: WayOutOptions["inside"]): string {
  const nowhere = { ipv4: ["127.0.0.0/8", "224.0.0.0/4"], ipv6: ["fe80::/10", "ff00::/8", "::ffff:0:0/96"] };
  return `
table inet ${table}
delete table inet ${table}
table inet ${table} {
  chain lead_out {
    type nat hook prerouting priority dstnat;
    iifname != "${device}" return
    ip daddr { ${[...ipv4, ...nowhere.ipv4].join(", ")} } return
    ip6 daddr { ${[...ipv6, ...nowhere.ipv6].join(", ")} } return
    meta l4proto tcp redirect to :${port}
  }
  chain keep_shut {
    type filter hook input priority filter;
    tcp dport ${port} ct status dnat accept
    tcp dport ${port} reject with tcp reset
  }
}
`;
}
