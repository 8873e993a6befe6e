// Somebody outside of a mesh in namespaces mode: a network of his own on the bridge where the nodes are, as a neighbour
// of them. He sees what a load balancer's health checks, or a machine of the same network, would.
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { NetworkNamespace } from "@tulle/capture";
import { waitFor } from "../tools/processes.ts";
import { runCommand } from "../tools/run-command.ts";

export const outsideAddresses = { ipv4: "172.31.255.77", ipv6: "fd00:172:31:255::77" } as const;

export class OutsideClient implements Disposable {
  readonly #network: NetworkNamespace;

  private constructor(network: NetworkNamespace) {
    this.#network = network;
  }

  /** `supervisor` is the process of `tulle up`, which lives where the nodes are connected. */
  static async connect(supervisor: number): Promise<OutsideClient> {
    const network = NetworkNamespace.create();
    const { ipv4, ipv6 } = outsideAddresses;
    try {
      using fabric = await fabricOf(supervisor);
      await ip(fabric, `link add outside type veth peer name eth0 netns ${network.path}`);
      await ip(fabric, "link set outside master machines up");
      await ip(network, "link set eth0 up");
      await ip(network, `address add ${ipv4}/24 dev eth0`);
      await ip(network, `address add ${ipv6}/64 dev eth0 nodad`);
      return new OutsideClient(network);
    } catch (error) {
      network[Symbol.dispose]();
      throw error;
    }
  }

  /** The status, or the code of the error that ended it; "silence" where nothing came for that long. */
  async get(host: string, port: number, path: string, silenceMs: number): Promise<number | string> {
    const { promise, resolve } = Promise.withResolvers<number | string>();
    const asked = request({ createConnection: () => this.#network.connect({ host, port }), host, port, path });
    const silence = setTimeout(() => {
      resolve("silence");
      asked.destroy();
    }, silenceMs);
    void promise.then(() => clearTimeout(silence));
    asked.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    asked.once("response", async (response) => {
      await text(response).catch(() => "");
      resolve(response.statusCode ?? 0);
    });
    asked.end();
    return promise;
  }

  [Symbol.dispose](): void {
    this.#network[Symbol.dispose]();
  }
}

/** For a moment the supervisor is in a pod's network, whenever it starts a program there or connects to one. */
async function fabricOf(supervisor: number): Promise<NetworkNamespace> {
  return waitFor(
    async () => {
      const network = NetworkNamespace.at(`/proc/${supervisor}/ns/net`);
      const { code } = await network.within(() => runCommand("ip", ["link", "show", "machines"]));
      if (code === 0) return network;
      network[Symbol.dispose]();
      return undefined;
    },
    { what: "the network of the supervisor" },
  );
}

async function ip(network: NetworkNamespace, command: string): Promise<void> {
  const { code, stderr } = await network.within(() => runCommand("ip", command.split(" ")));
  if (code !== 0) throw new Error(`ip ${command}: ${stderr}`);
}
