// Namespaces mode: each pod has a network of its own on one of two simulated nodes, and nothing is shared with the
// machine but its published ports, and its way to the world.
import { mkdirSync } from "node:fs";
import path from "node:path";
import { NetworkNamespace } from "@tulle/capture";
import type { EndpointSlice, Service } from "@tulle/config";
import { apiSocketName } from "@tulle/config/api";
import { makeSocketPath } from "@tulle/identity/own";
import { CannotStart } from "../cannot-start.ts";
import { listeningSocket } from "../network/libc.ts";
import type { Address, BoundPort, MeshNetwork, PodNetwork } from "../network/pod-network.ts";
import { stateHome } from "../instance.ts";
import { findProgram } from "../process/has-program.ts";
import type { PodPlan } from "../pod/pod-plan.ts";
import type { SupervisorEvent } from "../supervisor-event.ts";
import { firstPod, insideRanges, lastPod, serviceRanges, supervisorAddress } from "./addresses.ts";
import { ClusterServices } from "./cluster-services.ts";
import { machinesBridge, makeFabric, type Node } from "./fabric.ts";
import { HomeProcesses } from "./home-processes.ts";
import type { MachineNetwork } from "./machine-network.ts";
import { PodNamespace } from "./pod-namespace.ts";
import type { OwnNetwork } from "./own-network.ts";
import { firstUnreadable, installationFolders, type MeshFolders } from "./pod-views.ts";
import { PublicRoots } from "./public-roots.ts";
import { findSystemPrograms, type SystemPrograms } from "./system-programs.ts";
import { WayOut } from "./way-out.ts";

/** The instance, and what it is run by. */
export interface NamespacesOptions {
  readonly stateFolder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Program and first arguments that stand for `tulle`. */
  readonly tulleCommand: readonly string[];
  readonly onEvent: (event: SupervisorEvent) => void;
}

interface Parts extends OwnNetwork {
  readonly nodes: readonly Node[];
  readonly programs: SystemPrograms;
  readonly home: HomeProcesses;
  readonly services: ClusterServices;
  readonly wayOut: WayOut;
  readonly roots: PublicRoots;
  readonly folders: MeshFolders;
  readonly onTrouble: (message: string) => void;
}

export class NamespacesNetwork implements MeshNetwork {
  readonly controlPlaneAddress = supervisorAddress.ipv4;
  readonly controlPlaneArguments = [
    "--service-cluster-ip-range",
    `${serviceRanges.ipv4},${serviceRanges.ipv6}`,
    "--network-mode",
    "namespaces",
  ];
  readonly sharedRange = "";
  readonly machine: MachineNetwork;
  readonly #nodes: readonly NodeOfPods[];
  readonly #programs: SystemPrograms;
  readonly #home: HomeProcesses;
  readonly #userNamespace: string | undefined;
  readonly #roots: PublicRoots;
  readonly #folders: MeshFolders;
  readonly #services: ClusterServices;
  readonly #wayOut: WayOut;
  readonly #hasWayByIpv6: boolean;
  readonly #onTrouble: (message: string) => void;
  #cables = 0;

  private constructor(parts: Parts) {
    const { machine, userNamespace, nodes, programs, home, services, wayOut, roots, folders, onTrouble } = parts;
    this.#onTrouble = onTrouble;
    this.#services = services;
    this.#wayOut = wayOut;
    this.#hasWayByIpv6 = machine.hasWayByIpv6();
    this.#userNamespace = userNamespace;
    this.#roots = roots;
    this.#folders = folders;
    this.#programs = programs;
    this.#home = home;
    this.#nodes = nodes.map((node) => new NodeOfPods(node));
    this.machine = machine;
  }

  /**
   * This process is in a network with nothing in it.
   * @throws {CannotStart}
   */
  static async open(
    { machine, userNamespace }: OwnNetwork,
    { stateFolder, env, tulleCommand, onEvent }: NamespacesOptions,
  ): Promise<NamespacesNetwork> {
    const programs = findSystemPrograms(env["PATH"]);
    const installation = readableInstallation(tulleCommand, env);
    try {
      const roots = new PublicRoots(stateFolder);
      const folders = { ...foldersOf(stateFolder, env), roots: roots.folder, installation };
      const onTrouble = (message: string): void => onEvent({ type: "trouble", message });
      const home = userNamespace === undefined ? HomeProcesses.ofMachine() : await ownHome(programs, onTrouble);
      const nodes = await makeFabric();
      const services = await ClusterServices.start({ nodes, machine, programs, onTrouble });
      using fabric = NetworkNamespace.current();
      const wayOut = await WayOut.open({ machine, fabric, device: machinesBridge, inside: insideRanges });
      const parts = { nodes, programs, home, services, wayOut, roots, folders, onTrouble };
      return new NamespacesNetwork({ machine, userNamespace, ...parts });
    } catch (error) {
      throw new CannotStart(
        `the network of the pods cannot be made: ${(error as Error).message}`,
        "It takes a kernel with veth, bridge and nf_tables. Leave --mode namespaces out: loopback mode needs none of it.",
      );
    }
  }

  get rootsFile(): string {
    return this.#roots.file;
  }

  followServices(services: readonly Service[], endpointSlices: readonly EndpointSlice[]): void {
    this.#services.update(services, endpointSlices);
  }

  /** In the machine's network; at the supervisor's own address gateways alone reach it, and lead machines there. */
  bindJoinPort(address: Address): BoundPort | undefined {
    const { host, port } = address;
    if (host === supervisorAddress.ipv4 || host === supervisorAddress.ipv6) return undefined;
    const descriptor = listeningSocket(host, port, this.machine.openSocket);
    return { descriptor, reachedAt: this.machine.reachableAddresses(address) };
  }

  room(): number {
    return this.#nodes.reduce((sum, { free }) => sum + free, 0);
  }

  /** Of the nodes the one with the fewest pods, the first one of equals. */
  newPod(name: string, plan: PodPlan): PodNetwork {
    const node = this.#nodes.reduce((best, each) => (each.free > best.free ? each : best));
    const number = node.take();
    this.#cables += 1;
    return new PodNamespace({
      name,
      plan,
      node: node.node,
      address: node.node.addresses.pod(number),
      cable: `pod${this.#cables}`,
      programs: this.#programs,
      home: this.#home,
      userNamespace: this.#userNamespace,
      folders: this.#folders,
      hasWayByIpv6: this.#hasWayByIpv6,
      onClose: () => node.release(number),
      onTrouble: this.#onTrouble,
    });
  }

  async close(): Promise<void> {
    this.#roots.close();
    await this.#wayOut[Symbol.asyncDispose]();
    await this.#services.close();
    for (const { node } of this.#nodes) node.network[Symbol.dispose]();
    this.#home.close();
    this.machine[Symbol.dispose]();
  }
}

function ownHome(programs: SystemPrograms, onTrouble: (message: string) => void): Promise<HomeProcesses> {
  return HomeProcesses.ofUserNamespace(programs, () => {
    onTrouble("the first process of the mesh was ended, and all pods with it: run tulle up again");
    process.kill(process.pid, "SIGTERM");
  });
}

/** @throws {CannotStart} where the proxies' user may not read it */
function readableInstallation(tulleCommand: readonly string[], env: NamespacesOptions["env"]): readonly string[] {
  const envoy = findProgram(env["TULLE_ENVOY"] || "envoy", env["PATH"]);
  const folders = installationFolders(tulleCommand, envoy);
  const unreadable = firstUnreadable(folders, [...tulleCommand, ...(envoy === undefined ? [] : [envoy])]);
  if (unreadable === undefined) return folders;
  throw new CannotStart(
    `proxies have a user of their own, who may not read ${unreadable}`,
    `Let others read the programs: chmod -R go+rX ${unreadable}`,
  );
}

/** What pods do not see, and where. */
function foldersOf(state: string, env: NamespacesOptions["env"]): Omit<MeshFolders, "roots" | "installation"> {
  const appCompileCache = path.join(state, "compile-cache");
  mkdirSync(appCompileCache, { recursive: true, mode: 0o700 });
  const sockets = path.dirname(makeSocketPath(state, apiSocketName, env));
  return { state, hidden: [path.join(stateHome(env), "tulle"), sockets], appCompileCache };
}

/** A node, and which of its addresses are whose. */
class NodeOfPods {
  readonly node: Node;
  readonly #taken = new Set<number>();
  /** In turn, so that an address just given back rests as long as possible. */
  #next = firstPod;

  constructor(node: Node) {
    this.node = node;
  }

  get free(): number {
    return lastPod - firstPod + 1 - this.#taken.size;
  }

  /** @throws when none is left */
  take(): number {
    if (this.free === 0) throw new Error(`${this.node.addresses.name} has no address left`);
    while (this.#taken.has(this.#next)) this.#step();
    const number = this.#next;
    this.#taken.add(number);
    this.#step();
    return number;
  }

  release(number: number): void {
    this.#taken.delete(number);
  }

  #step(): void {
    this.#next = this.#next === lastPod ? firstPod : this.#next + 1;
  }
}
