// How a test reaches what is within a shop, in either mode of `tulle up`: in loopback mode everything has an address of
// the machine; in namespaces mode a test goes to where a program of the pod, or of a neighbour of the nodes, is.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { NetworkNamespace } from "@tulle/capture";
import type { PodRow as Pod } from "@tulle/cli/pod-row";
import type { ApiClient } from "@tulle/config";
import { joinConnections } from "@tulle/listening";
import { type Answer, httpRequest, type RequestOptions } from "./http-request.ts";
import type { MeshVariant } from "./mesh-variant.ts";

/** What of a shop is asked. */
interface ReachedShop {
  readonly up: { readonly pid: number };
  api(): ApiClient;
  processes(): Promise<ReadonlyMap<string, number>>;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

const connectHere = ({ host, port }: Place): Socket => connect({ host, port, allowHalfOpen: true });

const outboundPort = 15_007;
const adminPort = 15_000;

export class ShopReach implements Disposable {
  readonly #shop: ReachedShop;
  readonly #mode: MeshVariant["mode"];
  /** Of namespaces mode, by pod; that of `tulle up` itself by the empty name. */
  readonly #networks = new Map<string, NetworkNamespace>();

  constructor(shop: ReachedShop, mode: MeshVariant["mode"]) {
    this.#shop = shop;
    this.#mode = mode;
  }

  /** A page of the pod's proxy. */
  async admin(pod: Pod, target: string): Promise<string> {
    const place = { host: this.#mode === "loopback" ? pod.address : "127.0.0.1", port: adminPort };
    const open = await this.#within(pod);
    const { body } = await httpRequest(`http://${place.host}:${place.port}${target}`, { connect: () => open(place) });
    return body;
  }

  /** A request of a program that is no part of the mesh, straight to a port of the pod's app. */
  fromOutside(pod: Pod, target: string): Promise<Answer> {
    const place = { host: pod.address, port: pod.app!.port! };
    const open = this.#mode === "loopback" ? connectHere : this.#network("", this.#shop.up.pid);
    return httpRequest(`http://${place.host}:${place.port}${target}`, { connect: () => open(place) });
  }

  /** A request of a program of the pod, through its sidecar. */
  async from(pod: Pod, service: Place, target: string, options: RequestOptions = {}): Promise<Answer> {
    const open = await this.#within(pod);
    const place = await this.#wayOut(pod, service);
    const url = `http://${service.host}:${service.port}${target}`;
    return httpRequest(url, { ...options, connect: () => open(place) });
  }

  /**
   * What HTTP_PROXY says to a program of the pod, or what stands in for it: a port of the machine whose connections are
   * made within the pod, to the Service.
   */
  async proxyOf(pod: Pod, service: Place): Promise<{ readonly proxy: string; close(): void }> {
    const place = await this.#wayOut(pod, service);
    if (this.#mode === "loopback") return { proxy: `http://${place.host}:${place.port}`, close: () => undefined };
    const open = await this.#within(pod);
    const server = createServer({ allowHalfOpen: true }, (socket) => joinConnections(socket, open(place)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return { proxy: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => void server.close() };
  }

  /** The words before a command that run it in the pod's network; none where that is the machine's. */
  async enter(pod: Pod): Promise<readonly string[]> {
    return this.#mode === "loopback" ? [] : ["nsenter", `--net=/proc/${await this.#pidOf(pod)}/ns/net`, "--"];
  }

  /** Where a program of the pod connects to reach a Service by its sidecar. */
  async #wayOut(pod: Pod, { host, port }: Place): Promise<Place> {
    if (this.#mode === "loopback") return { host: pod.address, port: outboundPort };
    const [name = "", namespace = ""] = host.split(".");
    const service = await this.#shop.api().get("Service", namespace, name);
    return { host: service!.spec.clusterIP!, port };
  }

  async #within(pod: Pod): Promise<(to: Place) => Socket> {
    if (this.#mode === "loopback") return connectHere;
    return this.#network(pod.name, this.#networks.has(pod.name) ? 0 : await this.#pidOf(pod));
  }

  #network(name: string, pid: number): (to: Place) => Socket {
    let network = this.#networks.get(name);
    if (network === undefined) {
      network = NetworkNamespace.at(`/proc/${pid}/ns/net`);
      this.#networks.set(name, network);
    }
    const found = network;
    return (to) => found.connect({ ...to, allowHalfOpen: true });
  }

  async #pidOf(pod: Pod): Promise<number> {
    const pid = (await this.#shop.processes()).get(`${pod.name} proxy`);
    if (pid === undefined) throw new Error(`no proxy of ${pod.name} runs`);
    return pid;
  }

  [Symbol.dispose](): void {
    for (const network of this.#networks.values()) network[Symbol.dispose]();
    this.#networks.clear();
  }
}
