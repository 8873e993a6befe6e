// One pod in namespaces mode: a network with a cable to its node's bridge, files of its own, and the rules that lead
// its connections through its sidecar. Everything is there before a program starts, or nothing is.
import { closeSync } from "node:fs";
import path from "node:path";
import { type CapturePlan, installCapture, NetworkNamespace, planOfAnnotations } from "@tulle/capture";
import { WayIn } from "@tulle/listening";
import type { PodPlan } from "../pod/pod-plan.ts";
import { secondDescriptor } from "../network/libc.ts";
import type { PodAddresses, PodNetwork, ProgramEntry, ProgramStart, PublishedSocket } from "../network/pod-network.ts";
import { type AddressPair, insideRanges } from "./addresses.ts";
import { type Node, podsBridge } from "./fabric.ts";
import type { HomeProcesses } from "./home-processes.ts";
import { ipBatch, setSysctls } from "./ip-batch.ts";
import { lastId } from "./last-id.ts";
import { giveToProxy, makeGivenFolder, writePodFiles } from "./pod-files.ts";
import { PodKeeper } from "./pod-keeper.ts";
import { appReplaced, type MeshFolders, proxyReplaced, viewSteps } from "./pod-views.ts";
import { programEntry, proxyUser } from "./program-start.ts";
import type { SystemPrograms } from "./system-programs.ts";

export interface PodNamespaceOptions {
  readonly name: string;
  readonly plan: PodPlan;
  readonly node: Node;
  readonly address: AddressPair;
  /** Of the cable's end at the node; no two pods of a node have the same. */
  readonly cable: string;
  readonly programs: SystemPrograms;
  readonly home: HomeProcesses;
  readonly folders: MeshFolders;
  /** Who is outside of it enters it first. */
  readonly userNamespace: string | undefined;
  /** Without it, names with addresses of both families are called by IPv4. */
  readonly hasWayByIpv6: boolean;
  readonly onClose: () => void;
  /** A whole sentence, for people. */
  readonly onTrouble: (message: string) => void;
}

/** Ports below 1024 take no right here, as in containers, and ping takes none either. */
const podSysctls = {
  "net.ipv4.ip_unprivileged_port_start": "0",
  "net.ipv4.conf.all.accept_redirects": "0",
  "net.ipv6.conf.all.accept_redirects": "0",
};

interface Made {
  readonly network: NetworkNamespace;
  readonly keeper: PodKeeper;
  /** Descriptor of the mount namespace of the proxy; the apps' where there is none. */
  readonly proxyFiles: number;
}

export class PodNamespace implements PodNetwork {
  readonly addresses: PodAddresses;
  readonly ips: readonly string[];
  readonly node: PodNetwork["node"];
  readonly interceptionMode = "REDIRECT";
  readonly proxyAt = "127.0.0.1";
  readonly appAt: string;
  readonly listenAt = "0.0.0.0";
  readonly leadIn?: NonNullable<PodNetwork["leadIn"]>;
  readonly #options: PodNamespaceOptions;
  #made: Made | undefined;
  #isClosed = false;

  constructor(options: PodNamespaceOptions) {
    const { address, node, plan } = options;
    this.#options = options;
    // A gateway takes them itself, and so sees who comes.
    if (plan.injection !== "gateway") this.leadIn = (ports) => this.#leadIn(ports);
    this.addresses = { pod: address.ipv4, app: address.ipv4 };
    this.ips = [address.ipv4, address.ipv6];
    this.appAt = address.ipv4;
    this.node = { name: node.addresses.name, address: node.addresses.address.ipv4 };
  }

  get ways(): PodNetwork["ways"] {
    if (this.#made === undefined) return undefined;
    const { programs, userNamespace } = this.#options;
    const user = userNamespace === undefined ? [] : [`--user=${userNamespace}`];
    const processes = `--pid=${pathOf(this.#made.keeper.processes)}`;
    return {
      fromOutside: [programs.nsenter, ...user, processes, "--"],
      toNetwork: [programs.nsenter, ...user, `--net=${this.#made.network.path}`, "--"],
    };
  }

  proxyFolder(podFolder: string): string {
    return path.join(podFolder, "proxy");
  }

  tokenFile(podFolder: string): string {
    return path.join(givenFolder(podFolder), "token");
  }

  readonly writeToken = giveToProxy;

  async prepare(podFolder: string, onLost: () => void): Promise<void> {
    const { plan, programs } = this.#options;
    const capture = capturePlanOf(plan);
    requireUsers(plan);
    const network = NetworkNamespace.create();
    try {
      await this.#connect(network);
      setSysctls(network, { ...podSysctls, "net.ipv4.ping_group_range": `0 ${Math.min(lastId("gid"), 2 ** 31 - 1)}` });
      if (capture !== undefined) {
        await installCapture(capture, { prefix: [programs.nsenter, `--net=${network.path}`, "--"] });
      }
      this.#made = { network, ...(await this.#makeViews(podFolder)) };
    } catch (error) {
      network[Symbol.dispose]();
      throw error;
    }
    void this.#made.keeper.ended.then(() => this.#lose(onLost));
    // The pod was told to go meanwhile.
    if (this.#isClosed) this.#dispose();
  }

  /** Nothing can be started in the pod any more: where it has not been closed, somebody has ended its first process. */
  #lose(onLost: () => void): void {
    if (this.#made === undefined) return;
    this.#options.onTrouble(
      `the first process of ${this.#options.name} was ended, and the pod with it: another one takes its place`,
    );
    onLost();
  }

  async #makeViews(podFolder: string): Promise<Omit<Made, "network">> {
    const { name, plan, programs, home, folders } = this.#options;
    const given = givenFolder(podFolder);
    makeGivenFolder(given);
    const files = writePodFiles(path.join(podFolder, "etc"), { name, namespace: plan.namespace, ips: this.ips });
    const stage = path.join(podFolder, "view");
    const keeper = await PodKeeper.start(programs, home, viewSteps({ files, replaced: appReplaced(folders) }, stage));
    if (plan.injection === "none") return { keeper, proxyFiles: keeper.files };
    try {
      const own = { folder: this.proxyFolder(podFolder), user: proxyUser };
      const steps = viewSteps({ files, replaced: proxyReplaced(folders, given, own) }, stage);
      return { keeper, proxyFiles: await keeper.makeView(programs, steps) };
    } catch (error) {
      keeper.close();
      throw error;
    }
  }

  async #connect(network: NetworkNamespace): Promise<void> {
    const { node, address, cable, hasWayByIpv6 } = this.#options;
    const { gateway } = node.addresses;
    await ipBatch(network, [
      "link set lo up",
      // From where a sidecar calls its application over IPv6, as from 127.0.0.6.
      "address add ::6/128 dev lo nodad preferred_lft 0",
      `link add eth0 type veth peer name ${cable} netns ${node.network.path}`,
      "link set eth0 up",
      // Nobody is a neighbour but the node: an answer that went past it to a pod of the same node would come from the
      // pod's address, where a Service was called.
      `address add ${address.ipv4}/32 dev eth0`,
      `address add ${address.ipv6}/128 dev eth0 nodad`,
      `route add ${gateway.ipv4} dev eth0 scope link`,
      `route add ${gateway.ipv6} dev eth0`,
      `route add default via ${gateway.ipv4}`,
      ...(hasWayByIpv6 ? ["::/0"] : insideRanges.ipv6).map((range) => `route replace ${range} via ${gateway.ipv6}`),
    ]);
    await ipBatch(node.network, [
      `link set ${cable} master ${podsBridge} up`,
      // A pod may reach itself by an address that its node leads back.
      `link set ${cable} type bridge_slave hairpin on`,
    ]);
  }

  connect: PodNetwork["connect"] = (to) => this.#require().network.connect(to);

  enter(start: ProgramStart): ProgramEntry {
    const { network, keeper, proxyFiles } = this.#require();
    const files = start.user === "proxy" ? proxyFiles : keeper.files;
    const spaces = { network: network.path, mounts: pathOf(files) };
    return { ...programEntry(this.#options.programs, spaces, start), within: keeper.within };
  }

  /**
   * As on Kubernetes a node leads to a pod what comes from outside: from the node's own address. So it passes the
   * sidecar; what a program of the pod itself connects to would not.
   */
  #leadIn(ports: readonly PublishedSocket[]): WayIn {
    const { address, node, name, onTrouble } = this.#options;
    const byPort = Map.groupBy(ports, ({ targetPort }) => targetPort);
    return new WayIn({
      descriptors: new Map(
        [...byPort].map(([port, each]) => [port, each.map(({ descriptor }) => secondDescriptor(descriptor))]),
      ),
      connect: (port) => node.network.connect({ host: address.ipv4, port, allowHalfOpen: true }),
      log: { error: (message) => onTrouble(`published ports of ${name}: ${message}`), info: () => undefined },
    });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#dispose();
    this.#options.onClose();
  }

  /** What still runs of it ends at once. */
  #dispose(): void {
    if (this.#made === undefined) return;
    const { network, keeper, proxyFiles } = this.#made;
    this.#made = undefined;
    network[Symbol.dispose]();
    if (proxyFiles !== keeper.files) closeSync(proxyFiles);
    keeper.close();
  }

  #require(): Made {
    if (this.#made === undefined) throw new Error(`the network of ${this.#options.name} is not there`);
    return this.#made;
  }
}

/** For other programs of this user. */
function pathOf(descriptor: number): string {
  return `/proc/${process.pid}/fd/${descriptor}`;
}

function givenFolder(podFolder: string): string {
  return path.join(podFolder, "given");
}

/** @throws in words for people, where a container asks for a user whom a user namespace does not have */
function requireUsers({ containers }: PodPlan): void {
  for (const { name, user } of containers) {
    for (const [field, kind, id] of [
      ["runAsUser", "uid", user.uid],
      ["runAsGroup", "gid", user.gid],
    ] as const) {
      if (id === undefined || id <= lastId(kind)) continue;
      throw new Error(
        `container ${name} cannot have ${field} ${id}: here the highest is ${lastId(kind)} (/etc/sub${kind})`,
      );
    }
  }
}

/** Undefined where nothing is captured. @throws in words for people */
function capturePlanOf({ injection, annotations }: PodPlan): CapturePlan | undefined {
  if (injection !== "sidecar") return undefined;
  const { plan, problems } = planOfAnnotations(annotations, { dns: "all" });
  if (plan === "none") return undefined;
  // Its sockets would have to be transparent, by a right with which the proxy could change the pod's rules, too.
  if (plan?.mode === "TPROXY") {
    throw new Error("its connections cannot be captured: interceptionMode TPROXY is not carried here, REDIRECT is");
  }
  if (plan !== undefined) return plan;
  const texts = problems.map(
    ({ place, message }) => `${"annotation" in place ? place.annotation : place.setting} ${message}`,
  );
  throw new Error(`its connections cannot be captured: ${texts.join("; ")}`);
}
