// What the two modes of `tulle up` differ in: which addresses pods have, how what runs in them is started, and how it
// is asked. In loopback mode pods share the machine's network, each at addresses of its own; in namespaces mode each
// has a network of its own. Nothing else asks for the mode.
import { connect, type Socket } from "node:net";
import type { SocketKind } from "@tulle/capture";
import type { EndpointSlice, Service } from "@tulle/config";
import type { PodPlan } from "../pod/pod-plan.ts";
import { holderText, isKeptByClosedConnections } from "./port-holder.ts";

export interface PodAddresses {
  /** Of the pod: where its sidecar listens, or its app when it has none. */
  readonly pod: string;
  readonly app: string;
}

/** Opens a connection to an address. */
export type Connect = (to: { readonly host: string; readonly port: number }) => Socket;

/** As whom a program runs. Who names no user is the one who called `tulle up`. */
export type ProgramUser = "proxy" | { readonly uid?: number | undefined; readonly gid?: number | undefined };

export interface ProgramStart {
  readonly user: ProgramUser;
  readonly cwd: string;
  /** The program's. */
  readonly env: Readonly<Record<string, string>>;
}

/** How a program gets where it belongs: words before its own, and what the first of them has as its environment. */
export interface ProgramEntry {
  readonly enter: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The program is spawned within the call. */
  readonly within?: <T>(make: () => T) => T;
}

/** Words by which programs of this user get in that the supervisor has not started. */
export interface WaysIn {
  /** Before those of `enter`. */
  readonly fromOutside: readonly string[];
  /** To the network alone. */
  readonly toNetwork: readonly string[];
}

/** One pod's. */
export interface PodNetwork {
  readonly addresses: PodAddresses;
  /** All that others reach the pod at, IPv4 first. */
  readonly ips: readonly string[];
  readonly node: { readonly name: string; readonly address: string };
  /** Istio's word for how connections come to the proxy. */
  readonly interceptionMode: "NONE" | "REDIRECT";
  /** Where the supervisor asks the proxy, and the app, by `connect`. */
  readonly proxyAt: string;
  readonly appAt: string;
  /** Where an app listens that takes notice of HOST. */
  readonly listenAt: string;
  readonly connect: Connect;
  /** Into a network that is the pod's alone; undefined where there is none, or it is not made yet. */
  readonly ways: WaysIn | undefined;
  /** Folder of the proxy, within the pod's. */
  proxyFolder(podFolder: string): string;
  /** The proxy's proof of who its pod is, within the pod's folder. */
  tokenFile(podFolder: string): string;
  /** Writes it so that the proxy may read it; missing where that is the same user. */
  readonly writeToken?: (file: string, text: string) => Promise<void>;
  /**
   * Makes what has to be there before anything of the pod starts. Rejects in words for people; nothing stays then.
   * `onLost` is called when it is not there any more, and the pod's programs have ended with it.
   */
  readonly prepare?: (podFolder: string, onLost: () => void) => Promise<void>;
  /** Called once everything is prepared. */
  enter(start: ProgramStart): ProgramEntry;
  /** Where a proxy does not take published ports itself: leads them to the pod until it is closed. */
  readonly leadIn?: (ports: readonly PublishedSocket[]) => { close(): void };
  close(): void;
}

/** A socket of the machine that stands for a port of a pod. */
export interface PublishedSocket {
  readonly targetPort: number;
  readonly descriptor: number;
}

/** The machine's own network. */
export interface Machine {
  readonly connect: Connect;
  /** Descriptor of a new socket of it; missing where this process is in that network itself. */
  readonly openSocket?: (kind: SocketKind) => number;
  /** As port-holder.ts has them. */
  readonly holderText: (address: string, port: number) => string;
  readonly isKeptByClosedConnections: (address: string, port: number) => boolean;
}

export const connectHere: Connect = (to) => connect(to);

export const machineHere: Machine = { connect: connectHere, holderText, isKeptByClosedConnections };

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface BoundPort {
  readonly descriptor: number;
  /** `host:port` each. */
  readonly reachedAt: readonly string[];
}

/** An instance's. */
export interface MeshNetwork {
  readonly controlPlaneAddress: string;
  /** What the control plane is told of it. */
  readonly controlPlaneArguments: readonly string[];
  /** Addresses of the instance that programs of other users could reach; empty where none could. */
  readonly sharedRange: string;
  /** Where proxies read the mesh's roots, where it is not the authority's own file. */
  readonly rootsFile?: string;
  /** How many more pods of the plan find addresses. */
  room(plan: PodPlan): number;
  /** @throws when there is no room */
  newPod(name: string, plan: PodPlan): PodNetwork;
  /** Told of all Services and endpoints at each change, where the network itself leads to them. */
  readonly followServices?: (services: readonly Service[], endpointSlices: readonly EndpointSlice[]) => void;
  /**
   * Binds the port that machines join at, where the control plane itself is in another network than they are.
   * @throws {SystemCallFailed}
   */
  readonly bindJoinPort?: (address: Address) => BoundPort | undefined;
  /** Where published ports are. */
  readonly machine: Machine;
  close(): void | Promise<void>;
}
